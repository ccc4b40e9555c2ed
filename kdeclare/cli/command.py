"""Turn functions into commands: expand dataclasses into command-line options, and report errors."""

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.invocation import Invocation
from kdeclare.cli.options.option_groups import OutputOptions
from kdeclare.cli.options.single_options import ProviderOptionsMarker
from kdeclare.cli.terminal_text import write_traceback
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.extras import explain_missing_extra

if TYPE_CHECKING:
    from kdeclare.core.provider.plan_options import OfferedOption

Command = Callable[..., ExitCode]

_LINE = "line"
"""The field of an options dataclass that contains the `Invocation`. Every other field is an option."""


def command(
    app: typer.Typer, name: str, *, epilog: str | None = None, help_group: str | None = None
) -> Callable[[Command], Command]:
    """Return a decorator that registers a function as a command; the function's docstring is the help.

    The decorator expands some parameters of the function into options:

    - a dataclass: one option for each of its fields
    - a `Console`: the options of `OutputOptions`
    - a parameter annotated with `ProviderOptionsMarker`: the options that installed providers offer

    If the function has a parameter ``output``, its value is the format of stdout. help_group: the group of
    ``kdeclare --help`` that lists the command (see `help_groups`).
    """

    def register(function: Command) -> Command:
        hints = get_type_hints(function, include_extras=True)
        parameters: dict[str, inspect.Parameter] = {}
        groups: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            annotation = hints[parameter.name]
            group = OutputOptions if annotation is Console else annotation
            if is_dataclass(group):
                groups[parameter.name] = annotation
                parameters |= {p.name: p for p in _build_parameters(group)}
            else:
                default = parameter.default
                parameters[parameter.name] = _build_parameter(parameter.name, annotation, default)
        offered_options = {
            name: _find_offered_options(p.annotation)
            for name, p in parameters.items()
            if _find_marker(p.annotation)
        }
        parameters, collisions = _expand_offered(parameters, offered_options)

        def run(context: typer.Context, **values: Any) -> ExitCode:
            invocation: Invocation = context.obj
            values |= {name: _collect_chosen(options, values) for name, options in offered_options.items()}
            arguments = {key: value for key, value in values.items() if key in hints}
            for key, kind in groups.items():
                if kind is not Console:
                    arguments[key] = _build_group(kind, values | {_LINE: invocation})
            console = _console(invocation, _build_group(OutputOptions, values), values.get("output", "text"))
            for key, kind in groups.items():
                if kind is Console:
                    arguments[key] = console
            call_command = partial(function, **arguments)
            return _run_reporting_errors(
                console, partial(_reject, collisions) if collisions else call_command
            )

        context = _build_parameter("context", typer.Context, inspect.Parameter.empty)
        run.__signature__ = inspect.Signature([context, *parameters.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (context, *parameters.values())}
        app.command(name, help=inspect.getdoc(function), epilog=epilog, rich_help_panel=help_group)(run)
        return function

    return register


def _console(invocation: Invocation, output_options: OutputOptions, output: str) -> Console:
    if invocation.shared is None:
        return Console(output_options, output, invocation.command_line)
    return Console(
        output_options.over(invocation.shared.output_options),
        output,
        invocation.command_line,
        invocation.shared.pager,
    )


def is_debugging() -> bool:
    """Return whether KDECLARE_DEBUG is set, so that errors are shown with their tracebacks."""
    return bool(os.environ.get("KDECLARE_DEBUG"))


def _run_reporting_errors(console: Console, call_command: Callable[[], ExitCode]) -> ExitCode:
    try:
        return call_command()
    except KdeclareError as problem:
        if problem.__cause__ is not None and is_debugging():
            console.progress.hide()
            write_traceback(problem.__cause__)
        return console.fail(problem.diagnostics, problem.exit_code)
    except KeyboardInterrupt:
        return console.fail([error("interrupted", "Interrupted")], ExitCode.INTERRUPTED)
    except (typer.Exit, typer.Abort, typer.TyperException):
        raise
    except Exception as exception:  # noqa: BLE001  the last resort: users must not see a traceback
        console.progress.hide()
        if console.verbose or is_debugging():
            write_traceback(exception)
        return console.fail([build_internal_error(exception)], ExitCode.ERROR)
    finally:
        console.progress.hide()


def build_internal_error(exception: Exception) -> Any:
    """Build the error for an unexpected exception.

    If a provider's code raised the exception, the error names the provider. If an optional package is
    missing, the error names the extra that installs it.
    """
    if isinstance(exception, ImportError):
        missing_extra = explain_missing_extra(exception)
        if missing_extra is not None:
            return missing_extra
    # imported here because most commands do not need this module
    from kdeclare.core.provider.installed_providers import find_raising_provider

    exception_text = f"{type(exception).__name__}: {exception}".rstrip(": ")
    provider = find_raising_provider(exception)
    if provider is None:
        return error(
            "internal-error",
            "Internal error",
            f"An unexpected exception was raised: {exception_text}",
            hint="Run the command again with KDECLARE_DEBUG=1 to see the traceback, and report the error to "
            "the authors of kdeclare.",
        )
    authors = provider.distribution or provider.name
    return error(
        "internal-error",
        "Internal error in a provider",
        f"The provider '{provider.name}' raised an unexpected exception: {exception_text}",
        hint="Run the command again with KDECLARE_DEBUG=1 to see the traceback, and report the error to the "
        f"authors of {authors}.",
    )


def _build_parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _build_parameter(
            f.name, hints[f.name], inspect.Parameter.empty if f.default is MISSING else f.default
        )
        for f in fields(group)
        if f.name != _LINE
    ]


def _find_marker(annotation: Any) -> ProviderOptionsMarker | None:
    return next((item for item in get_args(annotation) if isinstance(item, ProviderOptionsMarker)), None)


def _find_offered_options(annotation: Any) -> tuple["OfferedOption", ...]:
    """Return the provider options that replace a parameter marked with `ProviderOptionsMarker`."""
    from kdeclare.core.provider.plan_options import find_plan_options

    marker = _find_marker(annotation)
    return tuple(
        option
        for option in find_plan_options().usable.values()
        if marker is not None
        and option.about.permits_loss == marker.deletions
        and marker.provider in (None, option.provider)
    )


def _expand_offered(
    parameters: dict[str, inspect.Parameter], offered_options: "dict[str, tuple[OfferedOption, ...]]"
) -> tuple[dict[str, inspect.Parameter], list[Diagnostic]]:
    """Expand each parameter that `ProviderOptionsMarker` marks into the options of installed providers.

    Return the new parameters, and an error for each provider option that has the name of another parameter.
    """
    expanded: dict[str, inspect.Parameter] = {}
    collisions = []
    for name, parameter in parameters.items():
        if name not in offered_options:
            expanded[name] = parameter
            continue
        for option in offered_options[name]:
            if option.name in parameters:
                collisions.append(option)
            else:
                expanded[option.name] = _build_provider_parameter(option)
    return expanded, [_build_collision_error(option) for option in collisions]


def _build_provider_parameter(option: "OfferedOption") -> inspect.Parameter:
    typer_option = typer.Option(option.flag, metavar=option.about.metavar or None, help=option.about.help)
    return _build_parameter(option.name, Annotated[option.annotation, typer_option], option.default)


def _collect_chosen(options: "Iterable[OfferedOption]", values: dict[str, Any]) -> dict[str, object]:
    """Return the values of all provider options that do not have their default values."""
    return {
        option.name: values[option.name] for option in options if values.get(option.name) != option.default
    }


def _reject(problems: Sequence[Diagnostic]) -> ExitCode:
    raise KdeclareError(*problems)


def _build_collision_error(option: "OfferedOption") -> Diagnostic:
    return error(
        "option-collision",
        "Option name conflicts with a kdeclare option",
        f"The provider '{option.provider}' adds the option '{option.flag}', but this command already has an "
        "option with that name.",
        hint="Uninstall the provider, or ask its author to rename the option.",
    )


def _build_parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _build_group(group: Any, values: dict[str, Any]) -> Any:
    return group(**{f.name: values[f.name] for f in fields(group)})
