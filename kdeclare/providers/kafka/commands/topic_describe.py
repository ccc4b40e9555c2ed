"""``kdeclare topic list`` and ``kdeclare topic describe``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Format, Reach
from kdeclare.core.exits import ExitCode
from kdeclare.providers.kafka.commands.options import TopicNames

if TYPE_CHECKING:
    from kdeclare.providers.kafka.commands.describe_topics import WhichTopics
    from kdeclare.providers.kafka.health import Condition

_LIST_EPILOG = epilog(
    "kdeclare topic list --sizes                          and how big they are",
    "kdeclare topic list 'payments\\..*' --format names    a name a line, for scripts",
    codes=(0, 1, 64, 130),
)
_DESCRIBE_EPILOG = epilog(
    "kdeclare topic describe orders",
    "kdeclare topic describe --under-replicated-partitions    of all topics",
    "kdeclare topic describe --not-preferred-leader --format json",
    codes=(0, 1, 64, 130),
)
ListFormat = Annotated[
    Literal["text", "json", "names"],
    typer.Option(
        "--format",
        metavar="text|json|names",
        help="What stdout is for: people, scripts, or a name a line.",
    ),
]
_NO_INTERNAL = "Without the topics that Kafka keeps for itself."
_SIZES = "Also how many bytes; every broker is asked."
ExcludeInternal = Annotated[bool, typer.Option("--exclude-internal", help=_NO_INTERNAL)]
IfExists = Annotated[bool, typer.Option("--if-exists", help="A topic that is not there is no error.")]
WithSizes = Annotated[bool, typer.Option("--sizes", help=_SIZES)]


@dataclass(frozen=True)
class Only:
    """Which partitions are wanted; with several options, those that are any of it."""

    under_replicated_partitions: Annotated[
        bool,
        typer.Option(
            "--under-replicated-partitions",
            help="Only partitions with fewer replicas in sync than there are.",
        ),
    ] = False
    under_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--under-min-isr-partitions",
            help="Only partitions with fewer replicas in sync than min.insync.replicas, or no leader.",
        ),
    ] = False
    at_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--at-min-isr-partitions", help="Only partitions with just min.insync.replicas in sync."
        ),
    ] = False
    unavailable_partitions: Annotated[
        bool, typer.Option("--unavailable-partitions", help="Only partitions that are offline: no leader.")
    ] = False
    not_preferred_leader: Annotated[
        bool,
        typer.Option(
            "--not-preferred-leader", help="Only partitions that another replica leads than the first one."
        ),
    ] = False

    def conditions(self) -> "frozenset[Condition]":
        """As the use-cases want it."""
        from kdeclare.providers.kafka.health import Condition

        given = {
            Condition.UNDER_REPLICATED: self.under_replicated_partitions,
            Condition.UNDER_MIN_ISR: self.under_min_isr_partitions,
            Condition.AT_MIN_ISR: self.at_min_isr_partitions,
            Condition.OFFLINE: self.unavailable_partitions,
            Condition.NOT_PREFERRED: self.not_preferred_leader,
        }
        return frozenset(condition for condition, wanted in given.items() if wanted)


def register(group: typer.Typer) -> None:
    """Put the commands into the group ``topic``."""
    command(group, "list", epilog=_LIST_EPILOG)(list_topics)
    command(group, "describe", epilog=_DESCRIBE_EPILOG)(describe)


def list_topics(
    *,
    topics: TopicNames,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    configs: Annotated[bool, typer.Option("--configs", help="Also what is set on each topic.")] = False,
    sizes: WithSizes = False,
    output: ListFormat = "text",
    reach: Reach,
    console: Console,
) -> ExitCode:
    """List topics: partitions, replicas and health, a line each."""
    from kdeclare.providers.kafka.commands.describe_topics import list_topics as look

    which = _which(topics, exclude_internal, if_exists)
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = look(workspace, which, configs=configs, sizes=sizes)
    if console.is_json:
        from kdeclare.providers.kafka.commands.documents import topic_list_document

        console.out_json(topic_list_document(view))
        return ExitCode.OK
    from kdeclare.providers.kafka.commands.topic_text import topic_list_text, topic_names_text

    console.notices(view.diagnostics)
    if output == "names":
        console.out(topic_names_text(view))
    else:
        console.out(topic_list_text(view, console.width, console.style))
    return ExitCode.OK


def describe(
    *,
    topics: TopicNames,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    only: Only,
    topics_with_overrides: Annotated[
        bool, typer.Option("--topics-with-overrides", help="Only topics on which configs are set.")
    ] = False,
    sizes: WithSizes = False,
    output: Format = "text",
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Show topics with their configs and partitions.

    Leader, replicas and ISR of each partition, and how far it is from what it should be. The ISR is what
    the leader sees; replicas on their way in or out are marked with + and -.
    """
    from kdeclare.providers.kafka.commands.describe_topics import describe_topics

    which = _which(topics, exclude_internal, if_exists)
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_topics(workspace, which, only.conditions(), overridden=topics_with_overrides, sizes=sizes)
    if console.is_json:
        from kdeclare.providers.kafka.commands.documents import topics_document

        console.out_json(topics_document(view))
        return ExitCode.OK
    from kdeclare.providers.kafka.commands.topic_text import topics_text

    console.notices(view.diagnostics)
    console.out(topics_text(view, console.width, console.style))
    return ExitCode.OK


def _which(topics: TopicNames, exclude_internal: bool, if_exists: bool) -> "WhichTopics":
    from kdeclare.providers.kafka.commands.describe_topics import WhichTopics

    return WhichTopics(topics.given(), exclude_internal, if_exists)
