"""What a rule of completion has to offer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kdeclare.cli.interactive.names import Names
from kdeclare.cli.interactive.place import Place


@dataclass(frozen=True)
class Value:
    """A value, and a few words on it."""

    text: str
    about: str = ""


@dataclass(frozen=True)
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
