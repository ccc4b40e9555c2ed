"""The entry point: the commands together, and what their ending means to the shell."""

import functools
import gc
import importlib
import os
import shlex
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NoReturn

import typer

from kdeclare.cli.command import build_internal_error, is_debugging
from kdeclare.cli.installed_commands import build_command, find_commands
from kdeclare.cli.invocation import Invocation, ShellContext
from kdeclare.cli.redaction import redact_arguments
from kdeclare.cli.terminal_text import sanitize_for_terminal
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.version import VERSION

_OWN_COMMANDS = {
    "init": "init",
    "new": "new",
    "validate": "validate",
    "plan": "plan",
    "show": "plan",
    "show-manifest": "show_manifest",
    "apply": "apply",
    "rollback": "rollback",
    "policy": "policy",
    "fleet": "fleet",
    "status": "status",
    "history": "history",
    "import": "import_live",
    "lock": "lock",
    "schema": "schema",
    "doctor": "doctor",
    "providers": "providers",
    "sandbox": "sandbox",
    "shell": "shell",
}
"""kdeclare's own commands and where they are; building them all would double the time that most commands take
to begin, so only the one that is asked for is built. Those of providers are found by entry points."""

_RESERVED = frozenset(_OWN_COMMANDS)

_BEFORE_PROVIDERS = "rollback"
"""The own command after which those of providers are listed."""

_HELP_OPTIONS = frozenset({"-h", "--help"})

_COMPLETION_VARIABLE = "_KDECLARE_COMPLETE"
"""The variable by which shells ask for completions."""

_GC_THRESHOLD = 500_000
"""How many objects more call for the collector. A plan makes many that live to its end and hardly a
cycle: looking for some as often as Python does by itself takes a fifth of all the time."""

_HELP = """Apache Kafka from manifests in git: plan, apply, roll back.

"plan" shows what would change, "apply" does it, "rollback" undoes it.
"""
_EPILOG = """\b
Start here:
  kdeclare sandbox start                 three brokers of your own on this machine
  kdeclare init                          a project to begin with
  kdeclare import --out manifests        a cluster as it is, as manifests
  kdeclare plan                          what would change, and why
"""


def run() -> NoReturn:
    """``kdeclare``: run what the command line says and leave with its exit code."""
    gc.set_threshold(_GC_THRESHOLD)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them costs a tenth of a start
    _exit_immediately(main(sys.argv[1:]))


def main(arguments: Sequence[str], shell: ShellContext | None = None) -> int:
    """The exit code of one command line; ``shell`` is of the shell that it was typed into."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # no name is a reason to fail
    try:
        return _run(arguments, shell)
    except typer.TyperException as usage_error:
        return _report_usage_error(usage_error, next(iter(arguments), ""))
    except KdeclareError as problem:  # of the command as a whole: it cannot be loaded
        if is_debugging():
            traceback.print_exc(file=sys.stderr)
        for diagnostic in problem.diagnostics:
            _print_error(_format_diagnostic(diagnostic))
        return problem.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as exception:  # noqa: BLE001  before or after the command itself
        if is_debugging():
            traceback.print_exc(file=sys.stderr)
        _print_error(_format_diagnostic(build_internal_error(exception)))
        return ExitCode.ERROR


@dataclass(frozen=True, slots=True)
class Application:
    """root: the Click group that runs a command line. problems: of commands that cannot be used."""

    root: Any
    problems: tuple[Diagnostic, ...] = ()


def build_application(command_name: str = "") -> Application:
    """Build the command called ``command_name``; all commands if there is none of that name.

    Raises KdeclareError where the one that is asked for cannot be used.
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
    # as Typer has it: first the commands that do something, then the groups
    positions = {name: place for place, name in enumerate(_OWN_COMMANDS)}
    sorted_names = sorted(
        root.commands,
        key=lambda name: (
            hasattr(root.commands[name], "commands"),
            positions.get(name, positions[_BEFORE_PROVIDERS] + 0.5),
        ),
    )
    root.commands = {name: root.commands[name] for name in sorted_names}
    return Application(root, tuple(problems))


def _build_root(modules: Iterable[str]) -> Any:
    app = typer.Typer(
        name="kdeclare",
        help=_HELP,
        epilog=_EPILOG,
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
    """Whether there is a command of that name, be it one that cannot be used."""
    if name in _OWN_COMMANDS:
        return True
    installed = find_commands(_RESERVED)
    return name in installed.usable or name in installed.collisions


def _report_problems(application: Application) -> None:
    """Name the commands that cannot be used, where all commands are listed."""
    if not os.environ.get(_COMPLETION_VARIABLE):  # words on the screen would be taken for what is offered
        for problem in application.problems:
            _print_error(_format_diagnostic(problem))


def _reject_single_dash(click_command: Any, arguments: Sequence[str]) -> None:
    """Refuse ``-out=x``, which would mean ``-o`` with the value ``ut=x``. Raises BadParameter.

    Terraform takes long options with one dash, so fingers know that form.
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
            raise typer.BadParameter(f"'{argument}' has one dash too few: write -{argument}.")


@functools.cache
def _build_cached_application(command_name: str) -> Application:
    """What runs a command line. A shell would build it for every line, and many lines run in less time."""
    application = build_application(command_name)
    _hide_argument_types(application.root)
    return application


def _hide_argument_types(click_command: Any) -> None:
    """In the help an argument is called what its metavar says; Python's name of its type helps nobody."""
    for param in click_command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""
    for subcommand in getattr(click_command, "commands", {}).values():
        _hide_argument_types(subcommand)


def _show_version(wanted: bool) -> None:
    if wanted:
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
    """To stderr; what was typed may come from a script, and so from anywhere."""
    text = sanitize_for_terminal(text)
    printable = "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)
    print(printable, file=sys.stderr)


def _exit_immediately(code: int) -> NoReturn:
    """End at once: neither a thread that waits for a broker nor tidying up must hold the shell up."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads any more
            continue
    os._exit(code)
