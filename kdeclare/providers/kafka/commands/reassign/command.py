"""The command ``kdeclare reassign``, with the options, files and output of kafka-reassign-partitions."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import ConfirmationPrompt
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ClusterOptions, PolicyOverrideOptions
from kdeclare.cli.options.single_options import Yes
from kdeclare.cli.run_output import ApplyFlags, execute_run
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.apply import ApplyOptions
    from kdeclare.providers.kafka.commands.reassign.actions import ReassignResult
    from kdeclare.providers.kafka.commands.reassign.assignments_file import PartitionAssignment

_EPILOG = build_epilog(
    "kdeclare reassign --generate --topics-to-move-json-file topics.json --broker-list 1,2,3",
    "kdeclare reassign --execute --reassignment-json-file moves.json --throttle 50000000",
    "kdeclare reassign --verify --reassignment-json-file moves.json",
    "kdeclare rollback                    undo the last --execute or --cancel",
    codes=(0, 1, 3, 5, 6, 64, 130),
)
_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_FILE_ACTIONS = ("execute", "verify", "cancel")
_ACTIONS_BY_OPTION = {
    "reassignment_json_file": _FILE_ACTIONS,
    "topics_to_move_json_file": ("generate",),
    "broker_list": ("generate",),
    "disable_rack_aware": ("generate",),
    "throttle": ("execute",),
    "replica_alter_log_dirs_throttle": ("execute",),
    "additional": ("execute",),
    "disallow_replication_factor_change": ("execute",),
    "preserve_throttles": ("verify", "cancel"),
    "timeout": ("execute", "cancel"),
}
"""The actions that accept each option, keyed by the name of the option."""
_REQUIRED_OPTIONS = {
    "generate": ("topics_to_move_json_file", "broker_list"),
    **dict.fromkeys(_FILE_ACTIONS, ("reassignment_json_file",)),
}
_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class ReassignAction:
    """The options that select an action. Exactly one action is required."""

    generate: Annotated[
        bool,
        typer.Option(
            "--generate", help="Propose an assignment of replicas to brokers without changing anything."
        ),
    ] = False
    execute: Annotated[bool, typer.Option("--execute", help="Start to move replicas.")] = False
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Show the progress of the moves. Remove kdeclare's throttles once the moves have finished.",
        ),
    ] = False
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the given moves that are in progress.")] = (
        False
    )
    list: Annotated[bool, typer.Option("--list", help="List all moves in progress.")] = False

    @property
    def name(self) -> str:
        """The chosen action. Raises BadParameter unless there is exactly one action."""
        chosen_actions = [name for name in _ACTIONS if getattr(self, name)]
        if len(chosen_actions) != 1:
            raise typer.BadParameter(
                f"Command must include exactly one action: {', '.join(map(_format_option, _ACTIONS))}.",
                param_hint=" ".join(map(_format_option, chosen_actions)) or "action",
            )
        return chosen_actions[0]


@dataclass(frozen=True, slots=True)
class ReassignDetails:
    """The options that the actions accept."""

    reassignment_json_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the target replicas (--execute, --verify, --cancel)."),
    ] = None
    topics_to_move_json_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the topics to move (--generate).")
    ] = None
    broker_list: Annotated[
        str | None, typer.Option(metavar="ID[,…]", help="Brokers to move the topics to (--generate).")
    ] = None
    disable_rack_aware: Annotated[
        bool, typer.Option("--disable-rack-aware", help="Ignore racks (--generate).")
    ] = False
    throttle: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES", help="Limit replication between brokers, in bytes per second (--execute)."
        ),
    ] = None
    replica_alter_log_dirs_throttle: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Limit copying between log directories of a broker, in bytes per second (--execute).",
        ),
    ] = None
    additional: Annotated[
        bool,
        typer.Option(
            "--additional",
            help="Start even if moves are in progress. Can change the targets and the throttle of these "
            "moves (--execute).",
        ),
    ] = False
    disallow_replication_factor_change: Annotated[
        bool,
        typer.Option(
            "--disallow-replication-factor-change",
            help="Skip partitions whose replication factor would change (--execute).",
        ),
    ] = False
    preserve_throttles: Annotated[
        bool, typer.Option("--preserve-throttles", help="Keep the throttles in place (--verify, --cancel).")
    ] = False
    timeout: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            help="How long to wait for moves between log directories to start (default: 10000 ms).",
        ),
    ] = None

    def check(self, action: str) -> None:
        """Raise BadParameter if the action does not accept an option, or if a required option is missing."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        given = [name for name, value in values.items() if value is not None and value is not False]
        for name in _REQUIRED_OPTIONS.get(action, ()):
            if name not in given:
                raise typer.BadParameter(
                    f"{_format_option(action)} requires this option.", param_hint=_format_option(name)
                )
        for name in given:
            if action not in _ACTIONS_BY_OPTION[name]:
                text = f'Option "[{_format_name(name)}]" can\'t be used with action "[{action}]".'
                raise typer.BadParameter(text, param_hint=_format_option(name))

    def rate(self, name: str) -> int | None:
        """Return a throttle, or None for Kafka's default of -1. Raises BadParameter if the throttle is 0."""
        value: int | None = getattr(self, name)
        if value == 0:
            raise typer.BadParameter(
                "0 would stop the moves; omit the option to move without a throttle.",
                param_hint=_format_option(name),
            )
        return value if value is not None and value > 0 else None


def register(app: typer.Typer) -> None:
    """Register the command with the application."""
    command(app, "reassign", epilog=_EPILOG)(reassign)


def reassign(
    *,
    action: ReassignAction,
    details: ReassignDetails,
    yes: Yes = False,
    overriding: PolicyOverrideOptions,
    servers: ClusterOptions,
    console: Console,
) -> ExitCode:
    """Move replicas as kafka-reassign-partitions does.

    The command accepts the options and files of kafka-reassign-partitions and prints the same output. In
    addition, --execute and --cancel show a plan and ask for confirmation, are recorded in the history, and
    can be rolled back.
    """
    action_name = action.name
    details.check(action_name)
    overrides = overriding.overrides()
    if overrides and action_name not in ("execute", "cancel"):
        raise typer.BadParameter(
            f"--{action_name} does not move replicas, so no policy applies.", param_hint="--override-policy"
        )
    if action_name == "generate":
        return _generate(console, details, servers)
    if action_name == "list":
        from kdeclare.providers.kafka.commands.reassign.actions import list_moves

        console.out(list_moves(servers.workspace()))
        return ExitCode.OK
    if action_name == "verify":
        return _verify(console, details, servers)
    if action_name == "execute":
        asking = ConfirmationPrompt(console, "Move these replicas?", yes, plan_to_stderr=True)
        return _execute(console, details, overrides, servers, asking)
    asking = ConfirmationPrompt(console, "Cancel these moves?", yes, plan_to_stderr=True)
    return _cancel(console, details, overrides, servers, asking)


def _generate(console: Console, details: ReassignDetails, servers: ClusterOptions) -> ExitCode:
    from kdeclare.providers.kafka.commands.reassign.actions import generate
    from kdeclare.providers.kafka.commands.reassign.assignments_file import (
        parse_broker_list,
        parse_topics_to_move,
    )

    file, broker_list = details.topics_to_move_json_file, details.broker_list
    assert file is not None  # see `ReassignDetails.check`
    assert broker_list is not None
    brokers = parse_broker_list(broker_list)
    topics = parse_topics_to_move(_read_file(file), str(file))
    console.progress("Connecting", 0, 0)
    text, notices = generate(servers.workspace(), topics, brokers, rack_aware=not details.disable_rack_aware)
    console.notices(notices)
    console.out(text)
    return ExitCode.OK


def _verify(console: Console, details: ReassignDetails, servers: ClusterOptions) -> ExitCode:
    from kdeclare.providers.kafka.commands.reassign.actions import verify

    assignments = _load_assignments(details)
    console.progress("Connecting", 0, 0)
    verify(
        servers.workspace(),
        assignments,
        console.command,
        console.out,
        console.notices,
        keep_throttles=details.preserve_throttles,
    )
    return ExitCode.OK


def _execute(
    console: Console,
    details: ReassignDetails,
    overrides: Mapping[str, str],
    servers: ClusterOptions,
    asking: ConfirmationPrompt,
) -> ExitCode:
    from kdeclare.providers.kafka.commands.reassign.actions import ReassignOptions, execute

    timeout_ms = _TIMEOUT_MS if details.timeout is None else details.timeout
    options = ReassignOptions(
        additional=details.additional,
        resize=not details.disallow_replication_factor_change,
        throttle=details.rate("throttle"),
        dirs_throttle=details.rate("replica_alter_log_dirs_throttle"),
        start_timeout_s=timeout_ms / 1000,
    )
    assignments = _load_assignments(details)
    workspace = servers.workspace()
    return _run(
        console, asking, overrides, lambda how: execute(workspace, assignments, options, how, console.out)
    )


def _cancel(
    console: Console,
    details: ReassignDetails,
    overrides: Mapping[str, str],
    servers: ClusterOptions,
    asking: ConfirmationPrompt,
) -> ExitCode:
    from kdeclare.providers.kafka.commands.reassign.actions import cancel

    keep_throttles = details.preserve_throttles
    assignments = _load_assignments(details)
    workspace = servers.workspace()
    return _run(
        console,
        asking,
        overrides,
        lambda how: cancel(
            workspace, assignments, how, console.out, console.notices, keep_throttles=keep_throttles
        ),
    )


def _run(
    console: Console,
    asking: ConfirmationPrompt,
    overrides: Mapping[str, str],
    action: "Callable[[ApplyOptions], ReassignResult]",
) -> ExitCode:
    """Run ``kdeclare reassign`` with --execute or --cancel, and do not wait for the moves to finish.

    action: a function that applies the plan and prints the output of Kafka's tool.
    """

    def run_action(apply_options: "ApplyOptions") -> "ReassignResult | None":
        result = action(apply_options)
        return result if result.run is not None else None

    return execute_run(
        console,
        asking,
        ApplyFlags(wait=False, overrides=overrides),
        run_action,
        lambda ended, _: _show_result(console, ended),
    )


def _show_result(console: Console, result: "ReassignResult") -> ExitCode:
    from kdeclare.report.outcome import run_outcome

    run, problems = result.run, result.problems
    assert run is not None  # see `_run`
    code = run_outcome(run).exit_code
    if code is ExitCode.OK and problems:
        code = ExitCode.PARTIAL
    if problems:
        console.fail(problems, code)
    if run.run_id is not None:
        console.note(f"To undo run {run.run_id}, use kdeclare rollback.")
    return code


def _load_assignments(details: ReassignDetails) -> "tuple[PartitionAssignment, ...]":
    from kdeclare.providers.kafka.commands.reassign.assignments_file import parse_assignments

    file = details.reassignment_json_file
    assert file is not None  # see `ReassignDetails.check`
    return parse_assignments(_read_file(file), str(file))


def _read_file(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except UnicodeDecodeError:
        reason = "the file is not UTF-8 text"
    raise KdeclareError(
        error(
            "unreadable-file",
            "Cannot read the file",
            f"{file}: {reason}.",
            hint="Pass a readable UTF-8 file.",
        )
    )


def _format_option(name: str) -> str:
    return f"--{_format_name(name)}"


def _format_name(name: str) -> str:
    return name.replace("_", "-")
