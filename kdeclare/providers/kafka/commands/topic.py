"""``kdeclare topic``: topics by hand, with Kafka's flags (TopicCommand) and KIP-4's rules."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.adhoc import run_and_show
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Careful, DeleteByName, Format, Overriding, Reach, Yes, read_settings
from kdeclare.core.exits import ExitCode
from kdeclare.providers.kafka.commands import topic_describe
from kdeclare.providers.kafka.commands.options import (
    Afterwards,
    ConfigChanges,
    Configs,
    TopicNames,
    replica_assignment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdeclare.providers.kafka.topic.asked import Asked

_CODES = (0, 1, 3, 5, 6, 64, 130)
_CREATE = epilog(
    "kdeclare topic create orders --partitions 12 --replication-factor 3 --config retention.ms=604800000",
    "kdeclare topic create a b c                         the brokers' defaults",
    "kdeclare topic create --from-file topics.yaml --yes",
    codes=_CODES,
)
_ALTER = epilog(
    "kdeclare topic alter orders --partitions 24",
    "kdeclare topic alter orders --replication-factor 3   moves the least, rack-aware",
    "kdeclare topic alter orders --replica-assignment 1:2,2:3,3:1",
    "kdeclare topic alter 'payments\\..*' --append-config cleanup.policy=compact",
    codes=_CODES,
)
_DELETE = epilog("kdeclare topic delete orders", "kdeclare topic delete 'test-.*'", codes=_CODES)

Partitions = Annotated[int | None, typer.Option(metavar="N", min=1, help="How many partitions.")]
Factor = Annotated[int | None, typer.Option(metavar="N", min=1, max=32767, help="How many replicas of each.")]
Assignment = Annotated[
    str | None,
    typer.Option(
        metavar="B:B,B:B…",
        help="The brokers of partition 0, of partition 1 …; the first of each is its preferred leader.",
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A YAML or JSON file with a list 'topics' of {topic, partitions, replicationFactor, "
        "assignments, configs}; what a topic does not say there is taken from the flags.",
    ),
]


def register(app: typer.Typer) -> None:
    """Put the commands into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "create", epilog=_CREATE)(create)
    command(group, "alter", epilog=_ALTER)(alter)
    command(group, "delete", epilog=_DELETE)(delete)
    topic_describe.register(group)
    app.add_typer(group, name="topic", help="Topics by hand: create, alter, delete, describe, list.")


def create(
    *,
    names: TopicNames,
    partitions: Partitions = None,
    replication_factor: Factor = None,
    replica_assignment: Assignment = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An override. Repeatable.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave out what is there already.")
    ] = False,
    from_file: FromFile = None,
    yes: Yes = False,
    output: Format = "text",
    afterwards: Afterwards,
    careful: Careful,
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Create topics, as many as are named, each with a result of its own.

    What is not said is the brokers' default. Shows the plan and asks first; 'kdeclare rollback' deletes
    again what is still empty. Nothing is owned through it: see --write-manifest.
    """
    from kdeclare.providers.kafka.commands.changes import create_topics

    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise typer.BadParameter(
            "says the number of partitions and of replicas, too; leave --partitions and --replication-factor "
            "out.",
            param_hint="--replica-assignment",
        )
    configs = read_settings("--config", config)
    asked = _asked(names.given(), from_file, partitions, replication_factor, replica_assignment, configs)
    workspace, options = reach.workspace(), afterwards.options(careful.scope(), console)
    return run_and_show(
        console,
        "Create these topics?",
        lambda how: create_topics(workspace, asked, options, how, if_not_exists=if_not_exists),
        careful.overrides(),
        yes=yes,
    )


def alter(
    *,
    names: TopicNames,
    partitions: Partitions = None,
    replication_factor: Factor = None,
    replica_assignment: Assignment = None,
    changes: ConfigChanges,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Leave out what is not there.")] = False,
    throttle: Annotated[
        int | None, typer.Option(metavar="BYTES", min=1, help="Of moves between brokers, a second, at most.")
    ] = None,
    from_file: FromFile = None,
    yes: Yes = False,
    output: Format = "text",
    afterwards: Afterwards,
    careful: Careful,
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Change topics: partitions, replicas, configs.

    As KIP-4 has it: a replica assignment says all, for the partitions that it names; those that are not there
    yet are added, and counts beside it are ignored. Else a replication factor places the replicas of all
    partitions anew, moving the least, those that --partitions adds among them. Else --partitions adds some;
    fewer than there are is an error. Shows the plan and asks first.
    """
    from kdeclare.providers.kafka.commands.changes import alter_topics

    asked = _asked(
        names.given(), from_file, partitions, replication_factor, replica_assignment, changes.configs()
    )
    if all(item.says_nothing for item in asked):
        raise typer.BadParameter(
            "say what is to change: --partitions, --replication-factor, --replica-assignment or configs.",
            param_hint="alter",
        )
    workspace = reach.workspace()
    scope = careful.scope()
    if throttle is not None:
        from kdeclare.providers.kafka.plan_options import with_pace
        from kdeclare.providers.kafka.reassignment.pace import Pace

        scope = replace(scope, options=with_pace(scope.options, Pace(throttle=throttle)))
    options = afterwards.options(scope, console)
    return run_and_show(
        console,
        "Change these topics?",
        lambda how: alter_topics(workspace, asked, options, how, if_exists=if_exists),
        careful.overrides(),
        yes=yes,
        wait=not afterwards.no_wait,
    )


def delete(
    *,
    names: TopicNames,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Leave out what is not there.")] = False,
    delete_by_name: DeleteByName = False,
    yes: Yes = False,
    output: Format = "text",
    afterwards: Afterwards,
    overriding: Overriding,
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Delete topics with all their records. Nothing brings those back.

    Kafka's internal topics, and those whose manifest says preventDestroy, are never deleted. Topics are
    deleted by id: one that is created again under the same name meanwhile stays. Shows the plan and asks
    first.
    """
    from kdeclare.app.scope import Scope
    from kdeclare.providers.kafka.commands.changes import delete_topics

    overrides = overriding.overrides()
    wanted = _some(names.given())
    scope = Scope(overrides=overrides, delete_by_name=delete_by_name)
    workspace, options = reach.workspace(), afterwards.options(scope, console)
    return run_and_show(
        console,
        "Delete these topics, and their records?",
        lambda how: delete_topics(workspace, wanted, options, how, if_exists=if_exists),
        overrides,
        yes=yes,
    )


def _asked(
    names: "Sequence[str]",
    file: Path | None,
    partitions: int | None,
    factor: int | None,
    assignment: str | None,
    configs: "Configs | Mapping[str, str]",
) -> "list[Asked]":
    """One instruction for each name, and for each entry of a file; the flags say what an entry does not."""
    from kdeclare.providers.kafka.topic.asked import Asked

    replicas = replica_assignment(assignment)
    flags = Asked("", partitions, factor, replicas, configs)
    entries = []
    if file is not None:
        from kdeclare.providers.kafka.commands.topics_file import read_requests

        entries = [_completed(entry, flags) for entry in read_requests(file)]
    return [*(replace(flags, topic=name) for name in _some(names, entries)), *entries]


def _completed(entry: "Asked", flags: "Asked") -> "Asked":
    """Assignments and counts exclude each other, so those of an entry keep the flags' others out."""
    partitions, factor = entry.partitions, entry.replication_factor
    if entry.assignments:
        flags = replace(flags, partitions=None, replication_factor=None, assignments={})
    elif partitions is not None or factor is not None:
        flags = replace(flags, assignments={})
    return replace(
        entry,
        partitions=flags.partitions if partitions is None else partitions,
        replication_factor=flags.replication_factor if factor is None else factor,
        assignments=entry.assignments or flags.assignments,
        configs={**flags.configs, **entry.configs},
    )


def _some(names: "Sequence[str]", others: "Sequence[object]" = ()) -> "Sequence[str]":
    if not (names or others):
        raise typer.BadParameter("name the topics.", param_hint="NAME")
    return names
