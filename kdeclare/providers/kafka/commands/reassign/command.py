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
    from kdeclare.providers.kafka.commands.reassign.assignments_file import Assignment

_EPILOG = build_epilog(
    "kdeclare reassign --generate --topics-to-move-json-file topics.json --broker-list 1,2,3",
    "kdeclare reassign --execute --reassignment-json-file moves.json --throttle 50000000",
    "kdeclare reassign --verify --reassignment-json-file moves.json",
    "kdeclare rollback                    undo the last --execute or --cancel",
    codes=(0, 1, 3, 5, 6, 64, 130),
)
_ALL = ("generate", "execute", "verify", "cancel", "list")
_FILE = ("execute", "verify", "cancel")
_FITS = {
    "reassignment_json_file": _FILE,
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
_NEEDED = {
    "generate": ("topics_to_move_json_file", "broker_list"),
    **dict.fromkeys(_FILE, ("reassignment_json_file",)),
}
_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Action:
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
        chosen = [name for name in _ALL if getattr(self, name)]
        if len(chosen) != 1:
            raise typer.BadParameter(
                f"Command must include exactly one action: {', '.join(map(_option, _ALL))}.",
                param_hint=" ".join(map(_option, chosen)) or "action",
            )
        return chosen[0]


@dataclass(frozen=True, slots=True)
class Details:
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
        for name in _NEEDED.get(action, ()):
            if name not in given:
                raise typer.BadParameter(f"{_option(action)} needs it.", param_hint=_option(name))
        for name in given:
            if action not in _FITS[name]:
                text = f'Option "[{_bare(name)}]" can\'t be used with action "[{action}]".'
                raise typer.BadParameter(text, param_hint=_option(name))

    def rate(self, name: str) -> int | None:
        """A throttle; Kafka's default of -1 is none. Raises BadParameter for one that lets nothing pass."""
        value: int | None = getattr(self, name)
        if value == 0:
            raise typer.BadParameter("0 would stop the moves; leave it out.", param_hint=_option(name))
        return value if value is not None and value > 0 else None


def register(app: typer.Typer) -> None:
    """Put the command into the application."""
    command(app, "reassign", epilog=_EPILOG)(reassign)


def reassign(
    *,
    action: Action,
    details: Details,
    yes: Yes = False,
    overriding: PolicyOverrideOptions,
    servers: ClusterOptions,
    console: Console,
) -> ExitCode:
    """Move replicas as kafka-reassign-partitions does.

    Takes the options and files of that tool, and prints what it prints. Beyond that --execute and
    --cancel show a plan and ask first, stand in the history, and can be rolled back.
    """
    chosen = action.name
    details.check(chosen)
    overrides = overriding.overrides()
    if overrides and chosen not in ("execute", "cancel"):
        raise typer.BadParameter(f"--{chosen} changes no replicas.", param_hint="--override-policy")
    if chosen == "generate":
        return _generate(console, details, servers)
    if chosen == "list":
        from kdeclare.providers.kafka.commands.reassign.actions import list_moves

        console.out(list_moves(servers.workspace()))
        return ExitCode.OK
    if chosen == "verify":
        return _verify(console, details, servers)
    if chosen == "execute":
        asking = ConfirmationPrompt(console, "Move these replicas?", yes, plan_to_stderr=True)
        return _execute(console, details, overrides, servers, asking)
    asking = ConfirmationPrompt(console, "Cancel these moves?", yes, plan_to_stderr=True)
    return _cancel(console, details, overrides, servers, asking)


def _generate(console: Console, details: Details, servers: ClusterOptions) -> ExitCode:
    from kdeclare.providers.kafka.commands.reassign.actions import generate
    from kdeclare.providers.kafka.commands.reassign.assignments_file import (
        parse_broker_list,
        parse_topics_to_move,
    )

    file, listed = details.topics_to_move_json_file, details.broker_list
    assert file is not None  # see `Details.check`
    assert listed is not None
    brokers = parse_broker_list(listed)
    topics = parse_topics_to_move(_read(file), str(file))
    console.progress("Connecting", 0, 0)
    text, notices = generate(servers.workspace(), topics, brokers, rack_aware=not details.disable_rack_aware)
    console.notices(notices)
    console.out(text)
    return ExitCode.OK


def _verify(console: Console, details: Details, servers: ClusterOptions) -> ExitCode:
    from kdeclare.providers.kafka.commands.reassign.actions import verify

    assignments = _assignments(details)
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
    details: Details,
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
    assignments = _assignments(details)
    workspace = servers.workspace()
    return _run(
        console, asking, overrides, lambda how: execute(workspace, assignments, options, how, console.out)
    )


def _cancel(
    console: Console,
    details: Details,
    overrides: Mapping[str, str],
    servers: ClusterOptions,
    asking: ConfirmationPrompt,
) -> ExitCode:
    from kdeclare.providers.kafka.commands.reassign.actions import cancel

    keep = details.preserve_throttles
    assignments = _assignments(details)
    workspace = servers.workspace()
    return _run(
        console,
        asking,
        overrides,
        lambda how: cancel(workspace, assignments, how, console.out, console.notices, keep_throttles=keep),
    )


def _run(
    console: Console,
    asking: ConfirmationPrompt,
    overrides: Mapping[str, str],
    act: "Callable[[ApplyOptions], ReassignResult]",
) -> ExitCode:
    """One run that waits for nothing; what the tool says of it has been printed by then."""

    def once(how: "ApplyOptions") -> "ReassignResult | None":
        ended = act(how)
        return ended if ended.run is not None else None

    return execute_run(
        console,
        asking,
        ApplyFlags(wait=False, overrides=overrides),
        once,
        lambda ended, _: _show_result(console, ended),
    )


def _show_result(console: Console, ended: "ReassignResult") -> ExitCode:
    from kdeclare.report.outcome import run_outcome

    run, problems = ended.run, ended.problems
    assert run is not None  # see `_run`
    code = run_outcome(run).exit_code
    if code is ExitCode.OK and problems:
        code = ExitCode.PARTIAL
    if problems:
        console.fail(problems, code)
    if run.run_id is not None:
        console.note(f"Run {run.run_id}; kdeclare rollback undoes it.")
    return code


def _assignments(details: Details) -> "tuple[Assignment, ...]":
    from kdeclare.providers.kafka.commands.reassign.assignments_file import parse_reassignment

    file = details.reassignment_json_file
    assert file is not None  # see `Details.check`
    return parse_reassignment(_read(file), str(file))


def _read(file: Path) -> str:
    """The text of a file. Raises KdeclareError."""
    try:
        return file.read_bytes().decode()
    except OSError as problem:
        why = problem.strerror or str(problem)
    except UnicodeDecodeError:
        why = "It is not UTF-8 text"
    raise KdeclareError(error("unreadable-file", "The file cannot be read", f"{file}: {why}."))


def _option(name: str) -> str:
    return f"--{_bare(name)}"


def _bare(name: str) -> str:
    return name.replace("_", "-")
