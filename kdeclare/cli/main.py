"""The entry point: the commands together, and what their ending means to the shell."""

import functools
import gc
import importlib
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from kdeclare.cli.command import debugging, internal_error
from kdeclare.cli.line import Line, Shared
from kdeclare.cli.redaction import without_secrets
from kdeclare.cli.terminal_text import sanitize_for_terminal
from kdeclare.core.exits import ExitCode
from kdeclare.version import VERSION

_MODULES = {
    "init": "init",
    "new": "new",
    "validate": "validate",
    "plan": "plan",
    "show": "plan",
    "show-manifest": "show_manifest",
    "apply": "apply",
    "rollback": "rollback",
    "reassign": "reassign",
    "topic": "topic",
    "config": "config",
    "policy": "policy",
    "fleet": "fleet",
    "status": "status",
    "history": "history",
    "import": "importing",
    "lock": "lock",
    "schema": "schema",
    "connect": "connect",
    "doctor": "doctor",
    "providers": "providers",
    "sandbox": "sandbox",
    "shell": "shell",
}
"""The commands and where they are; building them all would double the time that most commands take to
begin, so only the one that is asked for is built."""

_ALLOCATIONS = 200_000
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
    gc.set_threshold(_ALLOCATIONS)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them costs a tenth of a start
    _leave(main(sys.argv[1:]))


def main(arguments: Sequence[str], shared: Shared | None = None) -> int:
    """The exit code of one command line; ``shared`` is of the shell that it was typed into."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # no name is a reason to fail
    try:
        return _run(arguments, shared)
    except typer.TyperException as wrong:
        return _wrong_usage(wrong, next(iter(arguments), ""))
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as bug:  # noqa: BLE001  before or after the command itself
        if debugging():
            traceback.print_exc(file=sys.stderr)
        problem = internal_error(bug)
        _say(f"error: {problem.summary}\n  {problem.detail}\n  hint: {problem.hint}")
        return ExitCode.ERROR


def application(first: str = "") -> typer.Typer:
    """All commands; only that called ``first`` if there is one."""
    app = typer.Typer(
        name="kdeclare",
        help=_HELP,
        epilog=_EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(_root)
    modules = [_MODULES[first]] if first in _MODULES else dict.fromkeys(_MODULES.values())
    for module in modules:
        importlib.import_module(f"kdeclare.cli.{module}").register(app)
    return app


def _run(arguments: Sequence[str], shared: Shared | None) -> int:
    first = next(iter(arguments), "")
    click_command = _built(first if first in _MODULES else "")
    _refuse_single_dash(click_command, arguments)
    line = Line(shlex.join(["kdeclare", *without_secrets(arguments)]), shared)
    code = click_command.main(list(arguments), prog_name="kdeclare", standalone_mode=False, obj=line)
    return int(code or 0)


def _refuse_single_dash(click_command: Any, arguments: Sequence[str]) -> None:
    """Refuse ``-out=x``, which would mean ``-o`` with the value ``ut=x``. Raises BadParameter.

    Terraform takes long options with one dash, so fingers know that form.
    """
    known: set[str] = set()
    for argument in arguments:
        if argument == "--":
            return
        inner = getattr(click_command, "commands", {}).get(argument)
        if inner is not None:
            click_command = inner
        if not known or inner is not None:
            known = {name for param in click_command.params for name in getattr(param, "opts", ())}
        name = argument.partition("=")[0]
        if len(name) > 2 and name[0] == "-" and name[1] != "-" and f"-{name}" in known:
            raise typer.BadParameter(f"'{argument}' has one dash too few: write -{argument}.")


@functools.cache
def _built(first: str) -> Any:
    """What runs a command line. A shell would build it for every line, and many lines run in less time."""
    click_command = typer.main.get_command(application(first))
    _without_types(click_command)
    return click_command


def _without_types(click_command: Any) -> None:
    """In the help an argument is called what its metavar says; Python's name of its type helps nobody."""
    for param in click_command.params:
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: ""
    for inner in getattr(click_command, "commands", {}).values():
        _without_types(inner)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"kdeclare {VERSION}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _wrong_usage(wrong: typer.TyperException, first: str) -> ExitCode:
    if wrong.exit_code != 2:
        _say(f"error: {wrong.format_message()}")
        return ExitCode.ERROR
    context = getattr(wrong, "ctx", None)
    message = wrong.format_message().replace("Value error, ", "")  # pydantic's words
    if context is None:
        name = f"kdeclare {first}" if first in _MODULES else "kdeclare"
        _say(f"error: {message}\nTry '{name} --help'.")
    elif message == context.get_help():  # no arguments at all
        print(message, file=sys.stderr)
    else:
        _say(f"{context.get_usage()}\n")
        _say(f"error: {message}\nTry '{context.command_path} --help'.")
    return ExitCode.USAGE


def _say(text: str) -> None:
    """To stderr; what was typed may come from a script, and so from anywhere."""
    text = sanitize_for_terminal(text)
    shown = "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)
    print(shown, file=sys.stderr)


def _leave(code: int) -> NoReturn:
    """End at once: neither a thread that waits for a broker nor tidying up must hold the shell up."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads any more
            continue
    os._exit(code)
