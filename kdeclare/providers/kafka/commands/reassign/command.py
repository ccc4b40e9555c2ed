"""``kdeclare reassign``: the options, the files and the output of kafka-reassign-partitions."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import ConfirmationPrompt
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options import ClusterOptions, PolicyOverrideOptions, Yes
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
"""Which actions an option goes with."""
_REQUIRED_OPTIONS = {
    "generate": ("topics_to_move_json_file", "broker_list"),
    **dict.fromkeys(_FILE_ACTIONS, ("reassignment_json_file",)),
}
_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class ReassignAction:
    """What is to be done; one of them."""

    generate: Annotated[
        bool, typer.Option("--generate", help="Propose where topics could be. Changes nothing.")
    ] = False
    execute: Annotated[bool, typer.Option("--execute", help="Begin to move replicas.")] = False
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Say how far moves are; once they are over, take the throttles away that kdeclare has set.",
        ),
    ] = False
    cancel: Annotated[bool, typer.Option("--cancel", help="Stop those moves that go on.")] = False
    list: Annotated[bool, typer.Option("--list", help="List all moves that go on.")] = False

    @property
    def name(self) -> str:
        """The action. Raises BadParameter unless it is exactly one."""
        chosen_actions = [name for name in _ACTIONS if getattr(self, name)]
        if len(chosen_actions) != 1:
            raise typer.BadParameter(
                f"Command must include exactly one action: {', '.join(map(_format_option, _ACTIONS))}.",
                param_hint=" ".join(map(_format_option, chosen_actions)) or "action",
            )
        return chosen_actions[0]


@dataclass(frozen=True, slots=True)
class ReassignDetails:
    """What goes with the actions."""

    reassignment_json_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where partitions are to be (--execute, --verify, --cancel)."),
    ] = None
    topics_to_move_json_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Which topics to move (--generate).")
    ] = None
    broker_list: Annotated[
        str | None, typer.Option(metavar="ID[,…]", help="The brokers to move them to (--generate).")
    ] = None
    disable_rack_aware: Annotated[
        bool, typer.Option("--disable-rack-aware", help="Pay no attention to racks (--generate).")
    ] = False
    throttle: Annotated[
        int | None,
        typer.Option(metavar="BYTES", help="Bytes a second between brokers, at most (--execute)."),
    ] = None
    replica_alter_log_dirs_throttle: Annotated[
        int | None,
        typer.Option(metavar="BYTES", help="The same between a broker's log directories (--execute)."),
    ] = None
    additional: Annotated[
        bool,
        typer.Option(
            "--additional",
            help="Even if moves go on; also changes where those go, and their throttle (--execute).",
        ),
    ] = False
    disallow_replication_factor_change: Annotated[
        bool,
        typer.Option(
            "--disallow-replication-factor-change",
            help="Leave out partitions whose replication factor would change (--execute).",
        ),
    ] = False
    preserve_throttles: Annotated[
        bool, typer.Option("--preserve-throttles", help="Keep the throttles (--verify, --cancel).")
    ] = False
    timeout: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            help="How long to wait until moves between log directories have begun (default: 10000).",
        ),
    ] = None

    def check(self, action: str) -> None:
        """Refuse what does not go with the action, and what is missing. Raises BadParameter."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        given = [name for name, value in values.items() if value is not None and value is not False]
        for name in _REQUIRED_OPTIONS.get(action, ()):
            if name not in given:
                raise typer.BadParameter(
                    f"{_format_option(action)} needs it.", param_hint=_format_option(name)
                )
        for name in given:
            if action not in _ACTIONS_BY_OPTION[name]:
                text = f'Option "[{_format_name(name)}]" can\'t be used with action "[{action}]".'
                raise typer.BadParameter(text, param_hint=_format_option(name))

    def rate(self, name: str) -> int | None:
        """A throttle; Kafka's default of -1 is none. Raises BadParameter for one that lets nothing pass."""
        value: int | None = getattr(self, name)
        if value == 0:
            raise typer.BadParameter("0 would stop the moves; leave it out.", param_hint=_format_option(name))
        return value if value is not None and value > 0 else None


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
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

    Takes the options and files of that tool, and prints what it prints. Beyond that --execute and
    --cancel show a plan and ask first, stand in the history, and can be rolled back.
    """
    action_name = action.name
    details.check(action_name)
    overrides = overriding.overrides()
    if overrides and action_name not in ("execute", "cancel"):
        raise typer.BadParameter(f"--{action_name} changes no replicas.", param_hint="--override-policy")
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
    assert file is not None  # see `Details.check`
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
    """One run that waits for nothing; what the tool says of it has been printed by then."""

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
        console.note(f"Run {run.run_id}; kdeclare rollback undoes it.")
    return code


def _load_assignments(details: ReassignDetails) -> "tuple[PartitionAssignment, ...]":
    from kdeclare.providers.kafka.commands.reassign.assignments_file import parse_assignments

    file = details.reassignment_json_file
    assert file is not None  # see `Details.check`
    return parse_assignments(_read_file(file), str(file))


def _read_file(file: Path) -> str:
    """The text of a file. Raises KdeclareError."""
    try:
        return file.read_bytes().decode()
    except OSError as problem:
        reason = problem.strerror or str(problem)
    except UnicodeDecodeError:
        reason = "It is not UTF-8 text"
    raise KdeclareError(error("unreadable-file", "The file cannot be read", f"{file}: {reason}."))


def _format_option(name: str) -> str:
    return f"--{_format_name(name)}"


def _format_name(name: str) -> str:
    return name.replace("_", "-")
