"""The command ``kdeclare topic``: manage topics with the options of TopicCommand and the rules of KIP-4."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.commands.options import TopicNames

if TYPE_CHECKING:
    from kdeclare.providers.kafka.commands.describe_topics import TopicQuery
    from kdeclare.providers.kafka.live import PartitionCondition
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kdeclare.cli.adhoc import run_and_show
from kdeclare.cli.options.option_groups import PolicyOverrideOptions
from kdeclare.cli.options.option_values import parse_settings
from kdeclare.cli.options.single_options import Yes
from kdeclare.providers.kafka.commands.options import (
    AfterChangeOptions,
    ConfigChangeOptions,
    Configs,
    Deletions,
    GuardOptions,
    parse_replica_assignment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdeclare.providers.kafka.topic.adhoc_request import AdhocTopicRequest


_LIST_EPILOG = build_epilog(
    "kdeclare topic list --sizes                          with their sizes",
    "kdeclare topic list 'payments\\..*' --format names    one name per line, for scripts",
    codes=(0, 1, 64, 130),
)
_DESCRIBE_EPILOG = build_epilog(
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
        help="Output format: text for people, JSON for scripts, or one name per line.",
    ),
]
_EXCLUDE_INTERNAL_HELP = "Exclude Kafka's internal topics."
_SIZES_HELP = "Also show sizes in bytes. This queries every broker."
ExcludeInternal = Annotated[bool, typer.Option("--exclude-internal", help=_EXCLUDE_INTERNAL_HELP)]
IfExists = Annotated[bool, typer.Option("--if-exists", help="Ignore topics that do not exist.")]
WithSizes = Annotated[bool, typer.Option("--sizes", help=_SIZES_HELP)]


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """The options that select partitions. A partition is shown if it matches any of the options."""

    under_replicated_partitions: Annotated[
        bool,
        typer.Option(
            "--under-replicated-partitions",
            help="Only partitions with replicas that are not in sync.",
        ),
    ] = False
    under_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--under-min-isr-partitions",
            help="Only partitions with fewer in-sync replicas than min.insync.replicas, or without a leader.",
        ),
    ] = False
    at_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--at-min-isr-partitions",
            help="Only partitions whose number of in-sync replicas equals min.insync.replicas.",
        ),
    ] = False
    unavailable_partitions: Annotated[
        bool,
        typer.Option("--unavailable-partitions", help="Only partitions that are offline (without a leader)."),
    ] = False
    not_preferred_leader: Annotated[
        bool,
        typer.Option(
            "--not-preferred-leader",
            help="Only partitions that are not led by their first replica.",
        ),
    ] = False

    def conditions(self) -> "frozenset[PartitionCondition]":
        """Return the partition conditions that the options select. The set is empty without options."""
        from kdeclare.providers.kafka.live import PartitionCondition

        given = {
            PartitionCondition.UNDER_REPLICATED: self.under_replicated_partitions,
            PartitionCondition.UNDER_MIN_ISR: self.under_min_isr_partitions,
            PartitionCondition.AT_MIN_ISR: self.at_min_isr_partitions,
            PartitionCondition.OFFLINE: self.unavailable_partitions,
            PartitionCondition.NOT_PREFERRED: self.not_preferred_leader,
        }
        return frozenset(condition for condition, wanted in given.items() if wanted)


def register_descriptions(group: typer.Typer) -> None:
    """Register the commands with the group ``topic``."""
    command(group, "list", epilog=_LIST_EPILOG)(list_topics)
    command(group, "describe", epilog=_DESCRIBE_EPILOG)(describe)


def list_topics(
    *,
    topics: TopicNames,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    configs: Annotated[
        bool, typer.Option("--configs", help="Also show the config overrides of each topic.")
    ] = False,
    sizes: WithSizes = False,
    output: ListFormat = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """List topics with their partitions, replicas and health."""
    from kdeclare.providers.kafka.commands.describe_topics import list_topics as look

    topic_query = _build_topic_query(topics, exclude_internal, if_exists)
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = look(workspace, topic_query, configs=configs, sizes=sizes)
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    from kdeclare.providers.kafka.commands.topic_text import render_topic_list, render_topic_names

    console.notices(view.diagnostics)
    if output == "names":
        console.out(render_topic_names(view))
    else:
        console.out(render_topic_list(view, console.width, console.style))
    return ExitCode.OK


def describe(
    *,
    topics: TopicNames,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    only: PartitionFilter,
    topics_with_overrides: Annotated[
        bool, typer.Option("--topics-with-overrides", help="Only topics with config overrides.")
    ] = False,
    sizes: WithSizes = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show topics with their configs and partitions.

    Shows the leader, replicas, ISR and health of each partition. The ISR comes from the leader. Replicas that
    are being added or removed are marked with + and -.
    """
    from kdeclare.providers.kafka.commands.describe_topics import describe_topics

    topic_query = _build_topic_query(topics, exclude_internal, if_exists)
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_topics(
        workspace, topic_query, only.conditions(), overridden=topics_with_overrides, sizes=sizes
    )
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    from kdeclare.providers.kafka.commands.topic_text import render_topics

    console.notices(view.diagnostics)
    console.out(render_topics(view, console.width, console.style))
    return ExitCode.OK


def _build_topic_query(topics: TopicNames, exclude_internal: bool, if_exists: bool) -> "TopicQuery":
    from kdeclare.providers.kafka.commands.describe_topics import TopicQuery

    return TopicQuery(topics.given(), exclude_internal, if_exists)


_CODES = (0, 1, 3, 5, 6, 64, 130)
_CREATE_EPILOG = build_epilog(
    "kdeclare topic create orders --partitions 12 --replication-factor 3 --config retention.ms=604800000",
    "kdeclare topic create a b c                         with the brokers' defaults",
    "kdeclare topic create --from-file topics.yaml --yes",
    codes=_CODES,
)
_ALTER_EPILOG = build_epilog(
    "kdeclare topic alter orders --partitions 24",
    "kdeclare topic alter orders --replication-factor 3   minimal, rack-aware moves",
    "kdeclare topic alter orders --replica-assignment 1:2,2:3,3:1",
    "kdeclare topic alter 'payments\\..*' --append-config cleanup.policy=compact",
    codes=_CODES,
)
_DELETE_EPILOG = build_epilog("kdeclare topic delete orders", "kdeclare topic delete 'test-.*'", codes=_CODES)

_MAX_PARTITIONS = 200_000
"""The largest number of partitions that an option accepts.

No cluster supports more partitions, and placing their replicas would take minutes.
"""
PartitionsOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, max=_MAX_PARTITIONS, help="Number of partitions.")
]
FactorOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, max=32767, help="Number of replicas of each partition.")
]
ReplicaAssignmentOption = Annotated[
    str | None,
    typer.Option(
        metavar="B:B,B:B…",
        help="Brokers for partition 0, partition 1, and so on. The first broker of each partition is the "
        "preferred leader.",
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A YAML or JSON file with a list 'topics' of {topic, partitions, replicationFactor, "
        "assignments, configs}. Options set the fields that a topic in the file omits.",
    ),
]


def register(app: typer.Typer) -> None:
    """Register the commands with the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "create", epilog=_CREATE_EPILOG)(create)
    command(group, "alter", epilog=_ALTER_EPILOG)(alter)
    command(group, "delete", epilog=_DELETE_EPILOG)(delete)
    register_descriptions(group)
    app.add_typer(group, name="topic", help="Create, alter, delete, describe and list topics.")


def create(
    *,
    names: TopicNames,
    partitions: PartitionsOption = None,
    replication_factor: FactorOption = None,
    replica_assignment: ReplicaAssignmentOption = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Config override. Repeatable.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Skip topics that already exist.")
    ] = False,
    from_file: FromFile = None,
    yes: Yes = False,
    output: Format = "text",
    afterwards: AfterChangeOptions,
    careful: GuardOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Create topics, with a separate result for each topic.

    If you omit an option, the default of the brokers applies. Shows the plan and asks for confirmation.
    'kdeclare rollback' deletes the created topics that are still empty. kdeclare does not take ownership of
    the topics. To also write a manifest for each topic, pass --write-manifest.
    """
    from kdeclare.providers.kafka.commands.adhoc_changes import create_topics

    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise typer.BadParameter(
            "sets the number of partitions and replicas; omit --partitions and --replication-factor.",
            param_hint="--replica-assignment",
        )
    configs = parse_settings("--config", config)
    requests = _build_requests(
        names.given(), from_file, partitions, replication_factor, replica_assignment, configs
    )
    workspace, options = reach.workspace(), afterwards.options(careful.scope(), console)
    return run_and_show(
        console,
        "Create these topics?",
        lambda how: create_topics(workspace, requests, options, how, if_not_exists=if_not_exists),
        careful.overrides(),
        yes=yes,
    )


def alter(
    *,
    names: TopicNames,
    partitions: PartitionsOption = None,
    replication_factor: FactorOption = None,
    replica_assignment: ReplicaAssignmentOption = None,
    changes: ConfigChangeOptions,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip topics that do not exist.")] = False,
    throttle: Annotated[
        int | None,
        typer.Option(metavar="BYTES", min=1, help="Limit moves between brokers, in bytes per second."),
    ] = None,
    from_file: FromFile = None,
    yes: Yes = False,
    output: Format = "text",
    afterwards: AfterChangeOptions,
    careful: GuardOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Change topics: partitions, replicas, configs.

    Follows KIP-4: --replica-assignment sets the replicas of the listed partitions, adds missing partitions,
    and overrides --partitions and --replication-factor. --replication-factor changes the number of replicas
    of all partitions and moves as few replicas as possible. --partitions adds partitions; a number below the
    current number is an error. Shows the plan and asks for confirmation.
    """
    from kdeclare.providers.kafka.commands.adhoc_changes import alter_topics

    requests = _build_requests(
        names.given(), from_file, partitions, replication_factor, replica_assignment, changes.configs()
    )
    if all(item.is_empty for item in requests):
        raise typer.BadParameter(
            "specify a change: --partitions, --replication-factor, --replica-assignment or configs.",
            param_hint="alter",
        )
    workspace = reach.workspace()
    scope = careful.scope()
    if throttle is not None:
        from kdeclare.providers.kafka.reassignment.pace import Pace

        scope = replace(scope, options=scope.options.with_part(Pace(throttle=throttle)))
    options = afterwards.options(scope, console)
    return run_and_show(
        console,
        "Change these topics?",
        lambda how: alter_topics(workspace, requests, options, how, if_exists=if_exists),
        careful.overrides(),
        yes=yes,
        wait=not afterwards.no_wait,
    )


def delete(
    *,
    names: TopicNames,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip topics that do not exist.")] = False,
    deletions: Deletions,
    yes: Yes = False,
    output: Format = "text",
    afterwards: AfterChangeOptions,
    overriding: PolicyOverrideOptions,
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Delete topics with all their records. The records cannot be restored.

    Internal topics of Kafka and topics whose manifest sets preventDestroy are never deleted. Topics are
    deleted by id, so a topic that is re-created under the same name in the meantime is not deleted. Shows the
    plan and asks for confirmation.
    """
    from kdeclare.core.provider.plan_options import choose_options
    from kdeclare.engine.planning.request import PlanScope
    from kdeclare.providers.kafka.commands.adhoc_changes import delete_topics

    overrides = overriding.overrides()
    topic_names = _require_names(names.given())
    scope = PlanScope(overrides=overrides, options=choose_options(**deletions))
    workspace, options = reach.workspace(), afterwards.options(scope, console)
    return run_and_show(
        console,
        "Delete these topics and their records?",
        lambda how: delete_topics(workspace, topic_names, options, how, if_exists=if_exists),
        overrides,
        yes=yes,
    )


def _build_requests(
    names: "Sequence[str]",
    file: Path | None,
    partitions: int | None,
    factor: int | None,
    assignment: str | None,
    configs: "Configs | Mapping[str, str]",
) -> "list[AdhocTopicRequest]":
    """Build a request for each name and each entry of the file. The options fill in unset fields."""
    from kdeclare.providers.kafka.topic.adhoc_request import AdhocTopicRequest

    replicas = parse_replica_assignment(assignment)
    flags = AdhocTopicRequest("", partitions, factor, replicas, configs)
    entries = []
    if file is not None:
        from kdeclare.providers.kafka.commands.topic_selection import load_requests

        entries = [_complete_request(entry, flags) for entry in load_requests(file)]
    return [*(replace(flags, topic=name) for name in _require_names(names, entries)), *entries]


def _complete_request(entry: "AdhocTopicRequest", defaults: "AdhocTopicRequest") -> "AdhocTopicRequest":
    """Use the options to fill in the fields that are unset in an entry.

    Assignments and counts are mutually exclusive. If the entry has assignments, the counts in the options are
    ignored. If the entry has counts, the assignments in the options are ignored.
    """
    partitions, factor = entry.partitions, entry.replication_factor
    if entry.assignments:
        defaults = replace(defaults, partitions=None, replication_factor=None, assignments={})
    elif partitions is not None or factor is not None:
        defaults = replace(defaults, assignments={})
    return replace(
        entry,
        partitions=defaults.partitions if partitions is None else partitions,
        replication_factor=defaults.replication_factor if factor is None else factor,
        assignments=entry.assignments or defaults.assignments,
        configs={**defaults.configs, **entry.configs},
    )


def _require_names(names: "Sequence[str]", entries: "Sequence[object]" = ()) -> "Sequence[str]":
    if not (names or entries):
        raise typer.BadParameter("name at least one topic.", param_hint="NAME")
    return names
