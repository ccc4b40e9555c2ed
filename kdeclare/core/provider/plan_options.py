"""The plan options that providers declare, for the command line and the Python API.

A provider declares one frozen dataclass whose fields all have defaults. Fields that users can set are
annotated with a `PlanOption`. `PlanOptions` contains an instance of the dataclass, which the provider looks
up by class.

An entry point refers to the dataclass, so that the help text can list the options without importing the
provider. The module of the dataclass must therefore be fast to import.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import get_args, get_type_hints

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import PlanOptions
from kdeclare.core.provider.entry_points import InstalledEntryPoint, find_entry_points
from kdeclare.core.suggestions import format_suggestion

GROUP = "kdeclare.plan_options"
"""The entry point group. An entry point has the name of its provider and refers to a dataclass of options."""

_BUILT_IN_PREFIX = "kdeclare."


@dataclass(frozen=True, slots=True)
class PlanOption:
    """An annotation for a field that users can set as an option.

    help: a sentence that describes the option.
    metavar: the placeholder for the value in the help text; empty for a flag.
    permits_loss: whether the option permits the loss of a resource or of kdeclare's own permissions. The help
        text groups these options, and rollbacks accept them, too.
    """

    help: str
    metavar: str = ""
    permits_loss: bool = False


@dataclass(frozen=True, slots=True)
class OfferedOption:
    """One option of an installed provider.

    name: the name of the field. On the command line, dashes replace the underscores of the name.
    annotation: the type of the option's values.
    model: the dataclass that declares the option.
    """

    name: str
    annotation: object
    default: object
    about: PlanOption
    provider: str
    model: type[object]

    @property
    def flag(self) -> str:
        """The option as written on the command line."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class OfferedOptions:
    """The options that can be used, by name, and diagnostics about options that cannot be used."""

    usable: Mapping[str, OfferedOption]
    problems: tuple[Diagnostic, ...] = ()


@cache
def find_plan_options() -> OfferedOptions:
    """Find the options of all installed providers.

    If an option cannot be used, or has the same name as an earlier option, commands cannot make plans. The
    help text omits the option.
    """
    usable: dict[str, OfferedOption] = {}
    problems: list[Diagnostic] = []
    points = dict.fromkeys(find_entry_points(GROUP))
    for point in sorted(points, key=lambda point: (not point.value.startswith(_BUILT_IN_PREFIX), point.name)):
        try:
            options = collect_options(point.name, point.load())
        except Exception as cause:  # noqa: BLE001  provider code can raise any exception
            problems.append(_report_broken_options(point, f"{type(cause).__name__}: {cause}"))
            continue
        problems += [_report_ambiguous_option(option, point) for option in options if option.name in usable]
        usable |= {option.name: option for option in options if option.name not in usable}
    return OfferedOptions(usable, tuple(problems))


def collect_options(provider: str, model: object) -> tuple[OfferedOption, ...]:
    """Return the options that a dataclass declares.

    Raises TypeError if ``model`` is not a dataclass or an option has no default.
    """
    if not (isinstance(model, type) and is_dataclass(model)):
        raise TypeError(f"{model!r} is not a dataclass")
    hints = get_type_hints(model, include_extras=True)
    options = []
    for field in fields(model):
        annotation, *metadata = get_args(hints[field.name]) or (hints[field.name],)
        plan_option = next((item for item in metadata if isinstance(item, PlanOption)), None)
        if plan_option is None:
            continue
        if field.default is MISSING:
            raise TypeError(f"{model.__name__}.{field.name} has no default")
        options.append(OfferedOption(field.name, annotation, field.default, plan_option, provider, model))
    return tuple(options)


def choose_options(**values: object) -> PlanOptions:
    """Return the options of a plan, given the values by option name.

    The names are those of the command-line options, with underscores instead of dashes:
    ``await_reassignments=True`` for ``--await-reassignments``. Options without a value keep their defaults.

    Raises KdeclareError if no installed provider has the option, if a value has the wrong type, or if the
    options of a provider cannot be used.
    """
    return choose_from_offered(find_plan_options(), values)


def choose_from_offered(offered: OfferedOptions, values: Mapping[str, object]) -> PlanOptions:
    """Return the options of a plan, given all available options and the values. Raises KdeclareError."""
    if offered.problems:
        raise KdeclareError(*offered.problems)
    if not values:
        return PlanOptions()
    values_by_model: dict[type[object], dict[str, object]] = {}
    for name, value in values.items():
        option = offered.usable.get(name)
        if option is None:
            raise KdeclareError(_report_unknown_option(name, offered.usable), exit_code=ExitCode.USAGE)
        values_by_model.setdefault(option.model, {})[name] = value
    return PlanOptions(*(_build_options(model, chosen) for model, chosen in values_by_model.items()))


def _build_options(model: type[object], values: Mapping[str, object]) -> object:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(model).validate_python(dict(values))
    except ValidationError as problem:
        reason = "; ".join(f"{item['loc'][0]}: {item['msg']}" for item in problem.errors(include_url=False))
        raise KdeclareError(
            error(
                "bad-plan-option",
                "Invalid option value",
                f"{reason}.",
                hint="Run kdeclare plan --help to see the values that the option accepts.",
            ),
            exit_code=ExitCode.USAGE,
        ) from None


def _report_unknown_option(name: str, usable: Mapping[str, OfferedOption]) -> Diagnostic:
    hint = format_suggestion(name, usable) or f"Use one of the options {', '.join(usable)}."
    return error("unknown-plan-option", "Unknown option", f"No provider has an option '{name}'.", hint=hint)


def _report_ambiguous_option(option: OfferedOption, point: InstalledEntryPoint) -> Diagnostic:
    return error(
        "option-collision",
        "Two options have the same name",
        f"The option '{option.flag}' of {point.origin} has the same name as an option of another provider.",
        hint=f"Uninstall {point.origin}, or ask its author to rename the option.",
    )


def _report_broken_options(point: InstalledEntryPoint, reason: str) -> Diagnostic:
    return error(
        "provider-broken",
        "Provider cannot be loaded",
        f"The options of {point.origin} cannot be loaded: {reason}.",
        hint="Install a different version of the provider's package, or uninstall the package.",
    )
