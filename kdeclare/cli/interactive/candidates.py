"""What could stand at the cursor. The rules go by how options are called, whatever the command."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from kdeclare.cli.interactive.grammar import Parameter, Place
from kdeclare.cli.interactive.names import Names, files
from kdeclare.core.frozen import dataclass
from kdeclare.core.provider.entry_points import find_entry_points
from kdeclare.core.provider.registry import KINDS


@dataclass(frozen=True, slots=True)
class Value:
    """A value, and a few words on it."""

    text: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """values: whatever could stand, fitting or not, the likeliest first.

    lead: what of the typed text stays as it is; begun: the rest of it, that a value must begin with.
    """

    values: Iterable[Value]
    begun: str
    lead: str = ""


Rule = Callable[[Place, Names], Offer]


def plainly(values: Callable[[Place, Names], Iterable[Value]]) -> Rule:
    """The rule for values that take up all of the text."""
    return lambda place, names: Offer(values(place, names), place.text)


_LOG = logging.getLogger(__name__)

GROUP = "kdeclare.completions"
"""The group of entry points for what providers offer for the parameters of their commands."""

Complete = Callable[[Place, Names], Offer | None]
"""What such an entry point leads to; None where it has nothing to say of the command or its parameter."""

_MOST = 500
"""More candidates than this help nobody to choose."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """text: what the word at the cursor becomes. shown: what of it is new. about: a few words on it."""

    text: str
    shown: str
    about: str = ""


def candidates(place: Place, names: Names) -> list[Candidate]:
    """What could be typed here and begins as the word does."""
    offer = _offer(place, names)
    lead = place.lead + offer.lead
    found = (
        Candidate(lead + value.text, value.text, value.about)
        for value in offer.values
        if value.text.startswith(offer.begun)
    )
    return [candidate for candidate, _ in zip(found, range(_MOST), strict=False)]


@cache
def load_completions() -> tuple[Complete, ...]:
    """Import what providers offer. One that cannot be imported offers nothing: its command says why."""
    loaded: list[Complete] = []
    for point in dict.fromkeys(find_entry_points(GROUP)):
        try:
            complete = point.load()
        except Exception:  # noqa: BLE001  whatever it is, the log has it
            _LOG.info("no completion from %s", point.value, exc_info=True)
        else:
            loaded += [complete] if callable(complete) else []
    return tuple(loaded)


def _offer(place: Place, names: Names) -> Offer:
    if place.wanted is not None:
        for complete in load_completions():
            offer = complete(place, names)
            if offer is not None:
                return offer
        return _rule(place.wanted)(place, names)
    if place.is_option:
        return Offer(_options(place), place.text)
    commands = [Value(name, command.about) for name, command in place.command.commands.items()]
    return Offer(commands, place.text)


def _options(place: Place) -> Iterator[Value]:
    if place.path[:1] == ("help",):
        return
    for option in place.command.options:
        if option.repeats or option.name not in place.given:
            yield from (Value(name, option.about) for name in option.spellings if name.startswith("--"))


def _rule(wanted: Parameter) -> Rule:
    if wanted.choices:
        return plainly(lambda place, names: map(Value, wanted.choices))
    for spelling in wanted.spellings:
        if spelling in _BY_OPTION:
            return _BY_OPTION[spelling]
    if wanted.metavar in _BY_METAVAR:
        return _BY_METAVAR[wanted.metavar]
    return plainly(_files) if wanted.paths or wanted.metavar == "DIR|URI" else plainly(_nothing)


def _environments(place: Place, names: Names) -> Iterable[Value]:
    return map(Value, names.environments())


def _runs(place: Place, names: Names) -> Iterable[Value]:
    return map(Value, names.runs())


def _runs_to_compare(place: Place, names: Names) -> Iterable[Value]:
    words = place.given.get(place.wanted.name, ()) if place.wanted else ()
    if not words:
        yield Value("diff", "How two runs or plan files differ")
    yield from _runs(place, names)
    if words:
        yield from _files(place, names)


def _resources(place: Place, names: Names) -> Iterable[Value]:
    kind, slash, _ = place.text.partition("/")
    if not slash:
        return (Value(f"{name}/") for name in KINDS)
    known = dict.fromkeys((*names.declared(), *(f"{kind}/{name}" for name in names.live(kind))))
    return map(Value, known)


def _files(place: Place, names: Names) -> Iterable[Value]:
    return map(Value, files(place.text))


def _nothing(place: Place, names: Names) -> Iterable[Value]:
    return ()


_BY_OPTION: Mapping[str, Rule] = {
    "--env": plainly(_environments),
    "--kind": plainly(lambda place, names: map(Value, KINDS)),
}
_BY_METAVAR: Mapping[str, Rule] = {
    "KIND/NAME": plainly(_resources),
    "RUN_ID": plainly(_runs),
    "RUN_ID | diff A B": plainly(_runs_to_compare),
}
