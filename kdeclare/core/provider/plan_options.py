"""The options of plans that providers declare, for command lines and for programs.

A provider declares one frozen dataclass, whose fields all have defaults. A field that people can choose is
annotated with a `PlanOption`. The value becomes a part of `PlanOptions`, which the provider finds by its
class. Entry points lead to the classes, not to the `Provider`: every ``--help`` reads them, so their modules
import nothing that takes time.
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
"""The group of entry points. The name of one is its provider's; it leads to a dataclass of options."""

_BUILT_IN_PREFIX = "kdeclare."


@dataclass(frozen=True, slots=True)
class PlanOption:
    """How people choose a field: an annotation of it.

    help: what it does, in a sentence. metavar: what stands for the value in a help; empty for a flag.
    is_about_deletions: whether it matters only where something is deleted. Such an option stands beside the
        others about deletions, and rollbacks offer it as well.
    """

    help: str
    metavar: str = ""
    is_about_deletions: bool = False


@dataclass(frozen=True, slots=True)
class OfferedOption:
    """One option of an installed provider.

    name: of the field; the command line has dashes for its underscores. annotation: the type of its values.
    model: the class of the part of `PlanOptions`.
    """

    name: str
    annotation: object
    default: object
    about: PlanOption
    provider: str
    model: type[object]

    @property
    def flag(self) -> str:
        """As a command line has it."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class OfferedOptions:
    """usable: by name; those of one provider in the order of its fields. problems: why others are not."""

    usable: Mapping[str, OfferedOption]
    problems: tuple[Diagnostic, ...] = ()


@cache
def find_plan_options() -> OfferedOptions:
    """Find the options of all installed providers.

    No plan can be made while one of them cannot be used, or two have the same name; help is shown without it.
    """
    usable: dict[str, OfferedOption] = {}
    problems: list[Diagnostic] = []
    points = dict.fromkeys(find_entry_points(GROUP))
    for point in sorted(points, key=lambda point: (not point.value.startswith(_BUILT_IN_PREFIX), point.name)):
        try:
            options = collect_options(point.name, point.load())
        except Exception as cause:  # noqa: BLE001  whatever the code of a provider raises
            problems.append(_report_broken_options(point, f"{type(cause).__name__}: {cause}"))
            continue
        problems += [_report_ambiguous_option(option, point) for option in options if option.name in usable]
        usable |= {option.name: option for option in options if option.name not in usable}
    return OfferedOptions(usable, tuple(problems))


def collect_options(provider: str, model: object) -> tuple[OfferedOption, ...]:
    """Read the options that a dataclass declares. Raises TypeError for a class that declares none."""
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
    """Return the options of a plan with these values, by the names that providers gave them.

    Each stands for the option of the command line with that name: ``await_reassignments=True`` for
    ``--await-reassignments``. What is not named stays at its default. Raises KdeclareError for an option that
    no installed provider has, for a value that is not one of its type, and where the options of a provider
    cannot be used.
    """
    return choose_from_offered(find_plan_options(), values)


def choose_from_offered(offered: OfferedOptions, values: Mapping[str, object]) -> PlanOptions:
    """Return the options of a plan with these values, of those that are offered. Raises KdeclareError."""
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
            error("bad-plan-option", "Value is not one of the option", f"{reason}."), exit_code=ExitCode.USAGE
        ) from None


def _report_unknown_option(name: str, usable: Mapping[str, OfferedOption]) -> Diagnostic:
    hint = format_suggestion(name, usable) or f"The options are {', '.join(usable)}."
    return error("unknown-plan-option", "Unknown option", f"No provider has an option '{name}'.", hint=hint)


def _report_ambiguous_option(option: OfferedOption, point: InstalledEntryPoint) -> Diagnostic:
    return error(
        "option-collision",
        "Two options have the same name",
        f"The option '{option.flag}' of {point.origin} has the name of another provider's.",
        hint="Uninstall that distribution, or ask its author to rename the option.",
    )


def _report_broken_options(point: InstalledEntryPoint, reason: str) -> Diagnostic:
    return error(
        "provider-broken",
        "Provider cannot be loaded",
        f"The options of {point.origin} cannot be loaded: {reason}.",
        hint="Install another version of the distribution, or uninstall it.",
    )
