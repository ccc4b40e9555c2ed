"""Turns a function into a command: its option groups into options, its errors into messages."""

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any, get_type_hints

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.line import Line
from kdeclare.cli.options import Talk
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exits import ExitCode

Command = Callable[..., ExitCode]

_LINE = "line"
"""The field of a group of options that is none, but the `Line` (``Context.obj``) that they stand on."""


def command(app: typer.Typer, name: str, *, epilog: str | None = None) -> Callable[[Command], Command]:
    """Register a function as a command; its docstring is the help.

    A parameter that is a dataclass stands for the options that are its fields, and a `Console` for
    those of `Talk`. A parameter called ``output`` says what the console's stdout is for.
    """

    def register(function: Command) -> Command:
        hints = get_type_hints(function, include_extras=True)
        parameters: dict[str, inspect.Parameter] = {}
        groups: dict[str, Any] = {}
        for given in inspect.signature(function).parameters.values():
            kind = hints[given.name]
            group = Talk if kind is Console else kind
            if is_dataclass(group):
                groups[given.name] = kind
                parameters |= {p.name: p for p in _options(group)}
            else:
                default = given.default
                parameters[given.name] = _parameter(given.name, kind, default)

        def run(context: typer.Context, **values: Any) -> ExitCode:
            line: Line = context.obj
            arguments = {key: value for key, value in values.items() if key in hints}
            for key, kind in groups.items():
                if kind is not Console:
                    arguments[key] = _made(kind, values | {_LINE: line})
            console = _console(line, _made(Talk, values), values.get("output", "text"))
            for key, kind in groups.items():
                if kind is Console:
                    arguments[key] = console
            return _answered(console, partial(function, **arguments))

        context = _parameter("context", typer.Context, inspect.Parameter.empty)
        run.__signature__ = inspect.Signature([context, *parameters.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (context, *parameters.values())}
        app.command(name, help=inspect.getdoc(function), epilog=epilog)(run)
        return function

    return register


def _console(line: Line, talk: Talk, output: str) -> Console:
    if line.shared is None:
        return Console(talk, output, line.typed)
    return Console(talk.over(line.shared.talk), output, line.typed, line.shared.pager)


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return bool(os.environ.get("KDECLARE_DEBUG"))


def _answered(console: Console, act: Callable[[], ExitCode]) -> ExitCode:
    try:
        return act()
    except KdeclareError as problem:
        return console.fail(problem.diagnostics, problem.exit_code)
    except KeyboardInterrupt:
        return console.fail([error("interrupted", "Interrupted")], ExitCode.INTERRUPTED)
    except (typer.Exit, typer.Abort, typer.TyperException):
        raise
    except Exception as bug:  # noqa: BLE001  the last resort: a person must not see a traceback
        console.progress.hide()
        if console.verbose or debugging():
            traceback.print_exc(file=sys.stderr)
        return console.fail([internal_error(bug)], ExitCode.ERROR)
    finally:
        console.progress.hide()


def internal_error(bug: Exception) -> Any:
    """What to say of an exception that nobody expected."""
    return error(
        "internal-error",
        "Internal error",
        f"This should not have happened: {type(bug).__name__}: {bug}".rstrip(": "),
        hint="KDECLARE_DEBUG=1 shows where; please report it.",
    )


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _parameter(f.name, hints[f.name], inspect.Parameter.empty if f.default is MISSING else f.default)
        for f in fields(group)
        if f.name != _LINE
    ]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _made(group: Any, values: dict[str, Any]) -> Any:
    return group(**{f.name: values[f.name] for f in fields(group)})
