"""Find the completions at the cursor.

The values offered for a parameter depend on its name, metavar and type. Providers can offer additional
values.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from kdeclare.cli.interactive.grammar import CursorContext, Parameter
from kdeclare.cli.interactive.names import Names, list_files
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.entry_points import find_entry_points
from kdeclare.core.provider.registry import KINDS


@dataclass(frozen=True, slots=True)
class CompletionValue:
    """A possible value of an option or argument, with a short description."""

    text: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class CompletionOffer:
    """The values that can complete the typed text.

    values: possible values, most likely first, including values that do not match the typed text. begun: the
    typed prefix; only values with this prefix are shown. lead: the typed text before the prefix, which
    completion does not replace.
    """

    values: Iterable[CompletionValue]
    begun: str
    lead: str = ""


CompletionRule = Callable[[CursorContext, Names], CompletionOffer]


def make_plain_rule(
    list_values: Callable[[CursorContext, Names], Iterable[CompletionValue]],
) -> CompletionRule:
    """Return a completion rule whose values replace everything that the user typed for the parameter."""
    return lambda place, names: CompletionOffer(list_values(place, names), place.text)


_LOG = logging.getLogger(__name__)

GROUP = "kdeclare.completions"
"""The entry point group for functions that complete the parameters of provider commands."""

ProviderCompletion = Callable[[CursorContext, Names], CompletionOffer | None]
"""A provider's completion function. It returns None for commands and parameters that it does not complete."""

_MAX_CANDIDATES = 500
"""The maximum number of candidates in a menu."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry of the completion menu.

    text: the text that replaces the word at the cursor. shown: the label in the menu. about: a short
    description.
    """

    text: str
    shown: str
    about: str = ""


def find_candidates(context: CursorContext, names: Names) -> list[Candidate]:
    """Return the candidates that match the word at the cursor, at most `_MAX_CANDIDATES`."""
    offer = _build_offer(context, names)
    lead = context.lead + offer.lead
    matching = (
        Candidate(lead + value.text, value.text, value.about)
        for value in offer.values
        if value.text.startswith(offer.begun)
    )
    return [candidate for candidate, _ in zip(matching, range(_MAX_CANDIDATES), strict=False)]


@cache
def load_completions() -> tuple[ProviderCompletion, ...]:
    """Import the completion functions of providers. Log and skip functions that cannot be imported."""
    completions: list[ProviderCompletion] = []
    for point in dict.fromkeys(find_entry_points(GROUP)):
        try:
            complete = point.load()
        except Exception:  # noqa: BLE001  a provider can raise anything; it is logged
            _LOG.info("completion function %s cannot be imported", point.value, exc_info=True)
        else:
            completions += [complete] if callable(complete) else []
    return tuple(completions)


def _build_offer(context: CursorContext, names: Names) -> CompletionOffer:
    if context.wanted is not None:
        for complete in load_completions():
            offer = complete(context, names)
            if offer is not None:
                return offer
        return _find_rule(context.wanted)(context, names)
    if context.is_option:
        return CompletionOffer(_list_options(context), context.text)
    commands = [CompletionValue(name, command.about) for name, command in context.command.commands.items()]
    return CompletionOffer(commands, context.text)


def _list_options(context: CursorContext) -> Iterator[CompletionValue]:
    if context.path[:1] == ("help",):
        return
    for option in context.command.options:
        if option.is_repeatable or option.name not in context.given:
            yield from (
                CompletionValue(name, option.about) for name in option.spellings if name.startswith("--")
            )


def _find_rule(parameter: Parameter) -> CompletionRule:
    if parameter.choices:
        return make_plain_rule(lambda place, names: map(CompletionValue, parameter.choices))
    for spelling in parameter.spellings:
        if spelling in _BY_OPTION:
            return _BY_OPTION[spelling]
    if parameter.metavar in _BY_METAVAR:
        return _BY_METAVAR[parameter.metavar]
    return (
        make_plain_rule(_list_files)
        if parameter.paths or parameter.metavar == "DIR|URI"
        else make_plain_rule(_list_nothing)
    )


def _list_environments(context: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return map(CompletionValue, names.environments())


def _list_runs(context: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return map(CompletionValue, names.runs())


def _list_runs_to_compare(context: CursorContext, names: Names) -> Iterable[CompletionValue]:
    words = context.given.get(context.wanted.name, ()) if context.wanted else ()
    if not words:
        yield CompletionValue("diff", "Compare two runs or plan files")
    yield from _list_runs(context, names)
    if words:
        yield from _list_files(context, names)


def _list_resources(context: CursorContext, names: Names) -> Iterable[CompletionValue]:
    kind, slash, _ = context.text.partition("/")
    if not slash:
        return (CompletionValue(f"{name}/") for name in KINDS)
    resource_names = dict.fromkeys((*names.declared(), *(f"{kind}/{name}" for name in names.live(kind))))
    return map(CompletionValue, resource_names)


def _list_files(context: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return map(CompletionValue, list_files(context.text))


def _list_nothing(context: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return ()


_BY_OPTION: Mapping[str, CompletionRule] = {
    "--env": make_plain_rule(_list_environments),
    "--kind": make_plain_rule(lambda place, names: map(CompletionValue, KINDS)),
}
_BY_METAVAR: Mapping[str, CompletionRule] = {
    "KIND/NAME": make_plain_rule(_list_resources),
    "RUN_ID": make_plain_rule(_list_runs),
    "RUN_ID | diff A B": make_plain_rule(_list_runs_to_compare),
}
