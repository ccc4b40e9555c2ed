"""The differences that a topic can have, their frequency, and the expected findings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.synthetic.templates import Declared, Live
from kdeclare.fleet.findings import FindingKind


@dataclass(frozen=True, slots=True)
class Case:
    """One type of difference.

    declared, live: the declared and the live state; None if the topic is not declared or does not exist.
    weight: the relative frequency of the difference.
    """

    declared: Declared | None
    live: Live | None
    finding: FindingKind
    weight: int

    @property
    def is_compared(self) -> bool:
        """Whether undeclared overrides of the topic are findings."""
        return self.live is not None and self.declared not in (None, Declared.DROPPED)


CASES: Sequence[Case] = (
    Case(Declared.APPLIED, Live.ALTERED, FindingKind.CHANGED, 30),
    Case(Declared.APPLIED, Live.CLEARED, FindingKind.CHANGED, 10),
    Case(Declared.APPLIED, Live.WIDENED, FindingKind.CHANGED, 10),
    Case(Declared.EDITED, Live.SAME, FindingKind.PENDING, 15),
    Case(Declared.NEW, None, FindingKind.PENDING, 5),
    Case(Declared.APPLIED, None, FindingKind.MISSING, 7),
    Case(Declared.DROPPED, None, FindingKind.MISSING, 3),
    Case(Declared.DROPPED, Live.SAME, FindingKind.ORPHANED, 10),
    Case(None, Live.SAME, FindingKind.UNMANAGED, 10),
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One topic of a cluster.

    case: the difference, or None if the topic matches its declaration.
    extra: the index of the topic's undeclared override, from 1; 0 if the topic has none.
    """

    number: int
    shape: int
    case: Case | None
    extra: int

    @property
    def declared(self) -> Declared | None:
        """The declared state of the topic; None if the topic is neither declared nor owned."""
        return self.case.declared if self.case else Declared.APPLIED

    @property
    def live(self) -> Live | None:
        """The live state of the topic; None if the topic does not exist."""
        return self.case.live if self.case else Live.SAME

    @property
    def findings(self) -> Iterator[FindingKind]:
        """The findings that an audit should report about the topic."""
        if self.case:
            yield self.case.finding
        if self.extra and (self.case is None or self.case.is_compared):
            yield FindingKind.UNMANAGED


@dataclass(frozen=True, slots=True)
class Odds:
    """The probabilities that a topic differs, and that a live topic has an undeclared override."""

    changed: float
    unmanaged_keys: float


def drawn(rng: Random, topics: int, shapes: int, extras: int, odds: Odds) -> Iterator[Drawn]:
    """Yield the topics of one cluster, with random differences."""
    weights = [case.weight for case in CASES]
    for number in range(topics):
        case = rng.choices(CASES, weights)[0] if rng.random() < odds.changed else None
        is_live = case is None or case.live is not None
        extra = rng.randint(1, extras) if is_live and rng.random() < odds.unmanaged_keys else 0
        yield Drawn(number, rng.randrange(shapes), case, extra)


def counted(topics: Sequence[Drawn]) -> Mapping[str, int]:
    """Count the findings by kind."""
    found = [finding for topic in topics for finding in topic.findings]
    return {str(kind): found.count(kind) for kind in FindingKind if kind in found}
