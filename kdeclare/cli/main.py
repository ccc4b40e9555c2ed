"""The entry point: builds the application, runs one command line and determines the exit code."""

import functools
import importlib
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from kdeclare.cli.command import build_internal_error, is_debugging
from kdeclare.cli.habits import suggest_command
from kdeclare.cli.help_groups import (
    HELP_GROUPS,
    INSPECT,
    PROJECT,
    TOOLS,
    WORKFLOW,
    RootGroup,
    get_help_group,
)
from kdeclare.cli.installed_commands import build_command, find_commands, remove_options
from kdeclare.cli.invocation import Invocation, ShellContext
from kdeclare.cli.redaction import redact_arguments
from kdeclare.cli.terminal_text import sanitize_for_terminal, write_traceback
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.temporary_folders import delete_temporary_folders
from kdeclare.version import VERSION

_COMMANDS_BY_GROUP: Mapping[str, Mapping[str, str]] = {
    WORKFLOW: {
        "init": "init",
        "validate": "validate",
        "plan": "plan",
        "apply": "apply",
        "rollback": "rollback",
        "fleet": "fleet",
    },
    INSPECT: {
        "show": "plan",
        "show-manifest": "manifests.show_manifest",
        "catalog": "manifests.catalog",
        "status": "status",
        "history": "history",
        "doctor": "doctor",
    },
    PROJECT: {
        "new": "new",
        "import": "import_live",
        "convert": "convert",
        "fmt": "validate",
        "schema": "schema",
        "policy": "policy",
        "state": "state",
        "lock": "lock",
    },
    TOOLS: {"shell": "shell", "sandbox": "sandbox", "providers": "providers"},
}
"""kdeclare's own commands by help group, with their modules. Commands of providers come from entry points."""

_OWN_COMMANDS = {
    name: module for commands in _COMMANDS_BY_GROUP.values() for name, module in commands.items()
}
"""The modules of kdeclare's own commands by command name.

Only the requested command is built: building all commands would double the startup time of most commands.
"""

_RESERVED = frozenset(_OWN_COMMANDS)

_HELP_OPTIONS = frozenset({"-h", "--help"})

_COMPLETION_VARIABLE = "_KDECLARE_COMPLETE"
"""The environment variable that a shell, such as bash, sets to request completions."""

_HELP = "Manage Apache Kafka from manifests in git. Start with 'kdeclare init'."


def run() -> NoReturn:
    """Run the command line of this process and exit with the exit code of the command."""
    # Pydantic's search for plugins takes a tenth of the startup time.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _exit_immediately(main(sys.argv[1:]))


def main(arguments: Sequence[str], shell: ShellContext | None = None) -> int:
    """Run one command line and return its exit code.

    shell: the kdeclare shell in which the command line was typed; None outside of a kdeclare shell.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names that cannot be encoded are escaped
    try:
        return _run(arguments, shell)
    except typer.TyperException as usage_error:
        return _report_usage_error(usage_error, next(iter(arguments), ""))
    except KdeclareError as problem:  # the command cannot be loaded
        if is_debugging():
            write_traceback(problem)
        for diagnostic in problem.diagnostics:
            _print_error(_format_diagnostic(diagnostic))
        return problem.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as exception:  # noqa: BLE001  raised before or after the command itself
        if is_debugging():
            write_traceback(exception)
        _print_error(_format_diagnostic(build_internal_error(exception)))
        return ExitCode.ERROR


@dataclass(frozen=True, slots=True)
class Application:
    """The command-line application.

    root: the Click group that runs a command line. problems: the errors of commands that cannot be used.
    """

    root: Any
    problems: tuple[Diagnostic, ...] = ()


def build_application(command_name: str = "", *, is_listing: bool = False) -> Application:
    """Build an application with only the named command, or with all commands if the name is unknown.

    is_listing: whether the application only lists its commands. They then have no options, because reading
    the options of all commands takes most of the time of ``kdeclare --help``.

    Raises KdeclareError if the requested command exists and cannot be used.
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
    adapt = remove_options if is_listing else _keep_options
    root = _build_root(dict.fromkeys(_OWN_COMMANDS.values()), adapt)
    problems = [*installed.collisions.values()]
    for command in installed.usable.values():
        try:
            # commands of other packages are built completely, because that finds their errors
            root.add_command(build_command(command, adapt if command.is_own else _keep_options))
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


def _keep_options(app: typer.Typer) -> None:
    """Do nothing. Used in place of `remove_options` if the commands keep their options."""


def _build_root(modules: Iterable[str], adapt: Callable[[typer.Typer], None] = _keep_options) -> Any:
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
    adapt(app)
    return typer.main.get_command(app)


def _run(arguments: Sequence[str], shell: ShellContext | None) -> int:
    command_name = next(iter(arguments), "")
    if command_name == "version":
        arguments, command_name = ["--version", *arguments[1:]], "--version"
    is_listing = not set(arguments) - _HELP_OPTIONS and not os.environ.get(_COMPLETION_VARIABLE)
    application = _build_cached_application(
        command_name if _is_command(command_name) else "", is_listing=is_listing
    )
    if not command_name.startswith("-") or _HELP_OPTIONS & set(arguments):
        _report_problems(application)
    click_command = application.root
    _reject_habits(click_command, arguments)
    invocation = Invocation(shlex.join(["kdeclare", *redact_arguments(arguments)]), shell)
    exit_code = click_command.main(
        list(arguments), prog_name="kdeclare", standalone_mode=False, obj=invocation
    )
    return int(exit_code or 0)


def _is_command(name: str) -> bool:
    """Return whether a command has this name, even if the command cannot be used."""
    if name in _OWN_COMMANDS:
        return True
    installed = find_commands(_RESERVED)
    return name in installed.usable or name in installed.collisions


def _report_problems(application: Application) -> None:
    """Print the errors of the commands that cannot be used. Called when all commands are listed."""
    if not os.environ.get(_COMPLETION_VARIABLE):  # the shell would mistake the output for completions
        for problem in application.problems:
            _print_error(_format_diagnostic(problem))


class _HabitError(typer.BadParameter):
    """Raised for a command line in the style of another tool."""

    def format_message(self) -> str:
        return self.message


def _reject_habits(root: Any, arguments: Sequence[str]) -> None:
    """Raise _HabitError for a command line in the style of another tool, and name the command to type.

    Terraform accepts long options with a single dash, so users type ``-out=x`` out of habit. Click would
    parse it as the option ``-o`` with the value ``ut=x``.
    """
    suggestion = suggest_command(root, arguments)
    if suggestion is not None:
        raise _HabitError(f"{suggestion.reason} {suggestion.message}")


@functools.cache
def _build_cached_application(command_name: str, *, is_listing: bool) -> Application:
    """Build an application and cache it. In a kdeclare shell, rebuilding it for each line would be slow."""
    application = build_application(command_name, is_listing=is_listing)
    _hide_argument_types(application.root)
    _reject_unusable_values(application.root)
    return application


def _hide_argument_types(click_command: Any) -> None:
    """Hide the Python types of arguments in the help, because the help already shows their metavars."""
    for param in click_command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""
    for subcommand in getattr(click_command, "commands", {}).values():
        _hide_argument_types(subcommand)


def _reject_unusable_values(click_command: Any) -> None:
    """Report empty values, and values with a NUL character, as usage errors for all parameters of a command.

    An empty value usually comes from an unset variable of a script. Without this check, `pathlib` would take
    an empty path for the current folder, and an empty ``--env`` would mean the default environment.
    """
    for param in click_command.params:
        param.process_value = functools.partial(_process_usable_value, param, param.process_value)
    for subcommand in getattr(click_command, "commands", {}).values():
        _reject_unusable_values(subcommand)


def _process_usable_value(
    param: Any, process_value: Callable[[typer.Context, Any], Any], context: typer.Context, value: Any
) -> Any:
    """Pass the text from the command line on to Click. Raises BadParameter if it is empty or contains NUL."""
    for text in value if isinstance(value, list | tuple) else (value,):
        if text == "":
            raise typer.BadParameter("The value is empty.", ctx=context, param=param)
        if isinstance(text, str) and "\0" in text:
            raise typer.BadParameter("The value contains a NUL character.", ctx=context, param=param)
    return process_value(context, value)


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
    message = usage_error.format_message().replace("Value error, ", "")  # prefix that pydantic adds
    if context is None:
        program_name = f"kdeclare {command_name}" if _is_command(command_name) else "kdeclare"
        _print_error(f"error: {message}\nTry '{program_name} --help'.")
    elif message == context.get_help():  # the command was called without arguments
        print(message, file=sys.stderr)
    else:
        _print_error(f"{context.get_usage()}\n")
        _print_error(f"error: {message}\nTry '{context.command_path} --help'.")
    return ExitCode.USAGE


def _format_diagnostic(problem: Diagnostic) -> str:
    return f"error: {problem.summary}\n  {problem.detail}\n  hint: {problem.hint}"


def _print_error(text: str) -> None:
    """Print to stderr, and escape unprintable characters, which can come from a script or a file name."""
    text = sanitize_for_terminal(text)
    printable = "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)
    print(printable, file=sys.stderr)


def _exit_immediately(code: int) -> NoReturn:
    """Delete temporary files, flush the output and exit, without waiting for threads or exit handlers."""
    with suppress(KeyboardInterrupt):
        delete_temporary_folders()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader has closed the stream
            continue
    os._exit(code)
