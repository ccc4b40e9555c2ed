"""The entry point: builds the application, runs one command line and maps its outcome to an exit code."""

import functools
import gc
import importlib
import os
import shlex
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer

from kdeclare.cli.command import build_internal_error, is_debugging
from kdeclare.cli.help_groups import (
    FLEET,
    HELP_GROUPS,
    INSPECT,
    PROJECT,
    TOOLS,
    WORKFLOW,
    RootGroup,
    get_help_group,
)
from kdeclare.cli.installed_commands import build_command, find_commands
from kdeclare.cli.invocation import Invocation, ShellContext
from kdeclare.cli.redaction import redact_arguments
from kdeclare.cli.terminal_text import sanitize_for_terminal
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.version import VERSION

_COMMANDS_BY_GROUP: Mapping[str, Mapping[str, str]] = {
    WORKFLOW: {
        "init": "init",
        "validate": "validate",
        "plan": "plan",
        "apply": "apply",
        "rollback": "rollback",
    },
    INSPECT: {
        "show": "plan",
        "show-manifest": "show_manifest",
        "status": "status",
        "history": "history",
        "doctor": "doctor",
    },
    FLEET: {"fleet": "fleet"},
    PROJECT: {"new": "new", "import": "import_live", "schema": "schema", "policy": "policy", "lock": "lock"},
    TOOLS: {"shell": "shell", "sandbox": "sandbox", "providers": "providers"},
}
"""kdeclare's own commands and their modules, by help group. Entry points name the commands of providers."""

_OWN_COMMANDS = {
    name: module for commands in _COMMANDS_BY_GROUP.values() for name, module in commands.items()
}
"""The modules by command. Building all commands would double the startup time of most of them, so only the
requested one is built."""

_RESERVED = frozenset(_OWN_COMMANDS)

_HELP_OPTIONS = frozenset({"-h", "--help"})

_COMPLETION_VARIABLE = "_KDECLARE_COMPLETE"
"""The variable with which shells request completions."""

_GC_THRESHOLD = 500_000
"""Number of new objects that triggers a garbage collection. A plan creates many long-lived objects and hardly
any cycles: with Python's default, the collector takes a fifth of the total time."""

_HELP = "Manage Apache Kafka from manifests in git. Start with 'kdeclare init'."


def run() -> NoReturn:
    """Run the command line of the process and exit with its exit code."""
    gc.set_threshold(_GC_THRESHOLD)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # the search takes a tenth of the startup
    _exit_immediately(main(sys.argv[1:]))


def main(arguments: Sequence[str], shell: ShellContext | None = None) -> int:
    """Run one command line and return its exit code.

    shell: the shell into which the line was typed; None outside of a shell.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that cannot be encoded must not fail
    try:
        return _run(arguments, shell)
    except typer.TyperException as usage_error:
        return _report_usage_error(usage_error, next(iter(arguments), ""))
    except KdeclareError as problem:  # the command cannot be loaded
        if is_debugging():
            traceback.print_exc(file=sys.stderr)
        for diagnostic in problem.diagnostics:
            _print_error(_format_diagnostic(diagnostic))
        return problem.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as exception:  # noqa: BLE001  raised before or after the command itself
        if is_debugging():
            traceback.print_exc(file=sys.stderr)
        _print_error(_format_diagnostic(build_internal_error(exception)))
        return ExitCode.ERROR


@dataclass(frozen=True, slots=True)
class Application:
    """root: the Click group that runs a command line. problems: why some commands cannot be used."""

    root: Any
    problems: tuple[Diagnostic, ...] = ()


def build_application(command_name: str = "") -> Application:
    """Build the command ``command_name``, or all commands if no command has that name.

    Raises KdeclareError if the requested command cannot be used.
    """
    if command_name in _OWN_COMMANDS:
        return Application(_build_root((_OWN_COMMANDS[command_name],)))
    installed = find_commands(_RESERVED)
    if command_name in installed.usable:
        root = _build_root(())
        root.add_command(build_command(installed.usable[command_name]))
        return Application(root)
    if command_name in installed.collisions:
        raise KdeclareError(installed.collisions[command_name])
    root, problems = _build_root(dict.fromkeys(_OWN_COMMANDS.values())), [*installed.collisions.values()]
    for command in installed.usable.values():
        try:
            root.add_command(build_command(command))
        except KdeclareError as problem:
            problems += problem.diagnostics
    for group, names in _COMMANDS_BY_GROUP.items():
        for name in names:
            root.commands[name].rich_help_panel = group
    positions = {name: position for position, name in enumerate(_OWN_COMMANDS)}
    sorted_names = sorted(
        root.commands,
        key=lambda name: (
            HELP_GROUPS.index(get_help_group(root.commands[name])),
            positions.get(name, len(positions)),
            name,
        ),
    )
    root.commands = {name: root.commands[name] for name in sorted_names}
    return Application(root, tuple(problems))


def _build_root(modules: Iterable[str]) -> Any:
    app = typer.Typer(
        name="kdeclare",
        cls=RootGroup,
        help=_HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": sorted(_HELP_OPTIONS, key=len), "max_content_width": 110},
    )
    app.callback()(_root)
    for module in modules:
        importlib.import_module(f"kdeclare.cli.commands.{module}").register(app)
    return typer.main.get_command(app)


def _run(arguments: Sequence[str], shell: ShellContext | None) -> int:
    command_name = next(iter(arguments), "")
    application = _build_cached_application(command_name if _is_command(command_name) else "")
    if not command_name.startswith("-") or _HELP_OPTIONS & set(arguments):
        _report_problems(application)
    click_command = application.root
    _reject_single_dash(click_command, arguments)
    invocation = Invocation(shlex.join(["kdeclare", *redact_arguments(arguments)]), shell)
    exit_code = click_command.main(
        list(arguments), prog_name="kdeclare", standalone_mode=False, obj=invocation
    )
    return int(exit_code or 0)


def _is_command(name: str) -> bool:
    """Return whether a command has that name, including commands that cannot be used."""
    if name in _OWN_COMMANDS:
        return True
    installed = find_commands(_RESERVED)
    return name in installed.usable or name in installed.collisions


def _report_problems(application: Application) -> None:
    """Report the commands that cannot be used; done whenever all commands are listed."""
    if not os.environ.get(_COMPLETION_VARIABLE):  # the shell would take the output for completions
        for problem in application.problems:
            _print_error(_format_diagnostic(problem))


def _reject_single_dash(click_command: Any, arguments: Sequence[str]) -> None:
    """Reject ``-out=x``, which would mean ``-o`` with the value ``ut=x``. Raises BadParameter.

    Terraform accepts long options with a single dash, so users type that form out of habit.
    """
    option_names: set[str] = set()
    for argument in arguments:
        if argument == "--":
            return
        subcommand = getattr(click_command, "commands", {}).get(argument)
        if subcommand is not None:
            click_command = subcommand
        if not option_names or subcommand is not None:
            option_names = {name for param in click_command.params for name in getattr(param, "opts", ())}
        name = argument.partition("=")[0]
        if len(name) > 2 and name[0] == "-" and name[1] != "-" and f"-{name}" in option_names:
            raise typer.BadParameter(f"'{argument}' needs two dashes. Write -{argument}.")


@functools.cache
def _build_cached_application(command_name: str) -> Application:
    """Build and cache an application: in a shell, building it for each line can take longer than the line."""
    application = build_application(command_name)
    _hide_argument_types(application.root)
    return application


def _hide_argument_types(click_command: Any) -> None:
    """Hide the Python types of arguments from the help, which shows their metavars."""
    for param in click_command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""
    for subcommand in getattr(click_command, "commands", {}).values():
        _hide_argument_types(subcommand)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        print(f"kdeclare {VERSION}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


def _report_usage_error(usage_error: typer.TyperException, command_name: str) -> ExitCode:
    if usage_error.exit_code != 2:
        _print_error(f"error: {usage_error.format_message()}")
        return ExitCode.ERROR
    context = getattr(usage_error, "ctx", None)
    message = usage_error.format_message().replace("Value error, ", "")  # pydantic's words
    if context is None:
        program_name = f"kdeclare {command_name}" if _is_command(command_name) else "kdeclare"
        _print_error(f"error: {message}\nTry '{program_name} --help'.")
    elif message == context.get_help():  # no arguments at all
        print(message, file=sys.stderr)
    else:
        _print_error(f"{context.get_usage()}\n")
        _print_error(f"error: {message}\nTry '{context.command_path} --help'.")
    return ExitCode.USAGE


def _format_diagnostic(problem: Diagnostic) -> str:
    return f"error: {problem.summary}\n  {problem.detail}\n  hint: {problem.hint}"


def _print_error(text: str) -> None:
    """Print to stderr with unprintable characters escaped: the text can quote input from a script."""
    text = sanitize_for_terminal(text)
    printable = "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)
    print(printable, file=sys.stderr)


def _exit_immediately(code: int) -> NoReturn:
    """Exit immediately, without waiting for threads that wait for a broker or for cleanup at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader has closed the stream
            continue
    os._exit(code)
