"""Turns a function into a command: its option groups into options, its errors into messages."""

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.line import Line
from kdeclare.cli.options import OfProviders, Talk
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.core.provider.plan_options import OfferedOption

Command = Callable[..., ExitCode]

_LINE = "line"
"""The field of a group of options that is none, but the `Line` (``Context.obj``) that they stand on."""


def command(app: typer.Typer, name: str, *, epilog: str | None = None) -> Callable[[Command], Command]:
    """Register a function as a command; its docstring is the help.

    A parameter that is a dataclass stands for the options that are its fields, a `Console` for those of
    `Talk`, and one that is annotated with `OfProviders` for what installed providers offer. A parameter
    called ``output`` says what the console's stdout is for.
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
        chosen = {name: _offered(p.annotation) for name, p in parameters.items() if _mark_of(p.annotation)}
        parameters, collisions = _with_offered(parameters, chosen)

        def run(context: typer.Context, **values: Any) -> ExitCode:
            line: Line = context.obj
            values |= {name: _collect_chosen(options, values) for name, options in chosen.items()}
            arguments = {key: value for key, value in values.items() if key in hints}
            for key, kind in groups.items():
                if kind is not Console:
                    arguments[key] = _made(kind, values | {_LINE: line})
            console = _console(line, _made(Talk, values), values.get("output", "text"))
            for key, kind in groups.items():
                if kind is Console:
                    arguments[key] = console
            act = partial(function, **arguments)
            return _answered(console, partial(_refuse, collisions) if collisions else act)

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
        if problem.__cause__ is not None and debugging():
            console.progress.hide()
            traceback.print_exception(problem.__cause__, file=sys.stderr)
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
    """What to say of an exception that nobody expected; one in a provider's code is not for us to mend."""
    from kdeclare.core.provider.installed_providers import find_raiser  # here: other commands need none

    detail = f"This should not have happened: {type(bug).__name__}: {bug}".rstrip(": ")
    provider = find_raiser(bug)
    if provider is None:
        hint = "KDECLARE_DEBUG=1 shows where; please report it."
        return error("internal-error", "Internal error", detail, hint=hint)
    authors = provider.distribution or provider.name
    return error(
        "internal-error",
        f"Internal error in the provider '{provider.name}'",
        detail,
        hint=f"KDECLARE_DEBUG=1 shows where; please report it to the authors of {authors}.",
    )


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _parameter(f.name, hints[f.name], inspect.Parameter.empty if f.default is MISSING else f.default)
        for f in fields(group)
        if f.name != _LINE
    ]


def _mark_of(annotation: Any) -> OfProviders | None:
    return next((item for item in get_args(annotation) if isinstance(item, OfProviders)), None)


def _offered(annotation: Any) -> tuple["OfferedOption", ...]:
    """The options that a marked parameter stands for."""
    from kdeclare.core.provider.plan_options import find_plan_options

    mark = _mark_of(annotation)
    return tuple(
        option
        for option in find_plan_options().usable.values()
        if mark is not None
        and option.about.is_about_deletions == mark.deletions
        and mark.provider in (None, option.provider)
    )


def _with_offered(
    parameters: dict[str, inspect.Parameter], chosen: "dict[str, tuple[OfferedOption, ...]]"
) -> tuple[dict[str, inspect.Parameter], list[Diagnostic]]:
    """The parameters with the options of providers in place of those that stand for them.

    A command keeps its own options: one of a provider with the name of one of them is a problem.
    """
    found: dict[str, inspect.Parameter] = {}
    collisions = []
    for name, parameter in parameters.items():
        if name not in chosen:
            found[name] = parameter
            continue
        for option in chosen[name]:
            if option.name in parameters:
                collisions.append(option)
            else:
                found[option.name] = _of_provider(option)
    return found, [_collision(option) for option in collisions]


def _of_provider(option: "OfferedOption") -> inspect.Parameter:
    how = typer.Option(option.flag, metavar=option.about.metavar or None, help=option.about.help)
    return _parameter(option.name, Annotated[option.annotation, how], option.default)


def _collect_chosen(options: "Iterable[OfferedOption]", values: dict[str, Any]) -> dict[str, object]:
    """What was given of the options of providers; what was left alone is for the provider to say."""
    return {
        option.name: values[option.name] for option in options if values.get(option.name) != option.default
    }


def _refuse(problems: Sequence[Diagnostic]) -> ExitCode:
    raise KdeclareError(*problems)


def _collision(option: "OfferedOption") -> Diagnostic:
    return error(
        "option-collision",
        "Option has the name of one of kdeclare's own",
        f"The option '{option.flag}' of the provider '{option.provider}' has the name of an option of this "
        "command.",
        hint="Uninstall the provider, or ask its author to rename the option.",
    )


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _made(group: Any, values: dict[str, Any]) -> Any:
    return group(**{f.name: values[f.name] for f in fields(group)})
