"""The words for topics and partitions that several texts share."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kdeclare.providers.kafka.health import Condition
from kdeclare.report.style import Style
from kdeclare.report.table import Cell, Painted
from kdeclare.report.topic_views import PartitionView
from kdeclare.report.values import listed, size

UNKNOWN = "?"
WORDS: Mapping[Condition, str] = {
    Condition.OFFLINE: "offline",
    Condition.UNDER_MIN_ISR: "under min ISR",
    Condition.UNDER_REPLICATED: "under-replicated",
    Condition.AT_MIN_ISR: "at min ISR",
    Condition.NOT_PREFERRED: "not preferred",
    Condition.MOVING: "moving",
}
_BAD = (Condition.OFFLINE, Condition.UNDER_MIN_ISR)
_LOST = frozenset({Condition.UNDER_REPLICATED, Condition.MOVING})
"""With one of these, to be at the minimum is worth a word; else it is how the topic was meant to be."""


def factors(numbers: Sequence[int]) -> str:
    """``3``, or ``2–3`` while partitions differ."""
    return "–".join(map(str, dict.fromkeys((numbers[0], numbers[-1])))) if numbers else "0"


def bytes_text(count: int | None) -> str:
    """A size, or that it is not known."""
    return UNKNOWN if count is None else size(count)


def counts_text(counts: Mapping[Condition, int]) -> str:
    """``1 offline, 2 moving``; empty where all is in order."""
    said = (c for c in WORDS if c is not Condition.AT_MIN_ISR)
    return listed(f"{counts[c]:,} {WORDS[c]}" for c in said if counts.get(c))


def conditions_text(conditions: Iterable[Condition], asked: Collection[Condition] = ()) -> str:
    """What a partition is. What goes without saying is said only where it was asked for."""
    given = set(conditions)
    untold = set()
    if Condition.OFFLINE in given:
        untold.add(Condition.UNDER_MIN_ISR)
    if given.isdisjoint(_LOST):
        untold.add(Condition.AT_MIN_ISR)
    return listed(words for c, words in WORDS.items() if c in given and (c not in untold or c in asked))


def legend(conditions: Collection[Condition]) -> Iterator[str]:
    """What words mean that do not tell it all, where they are used."""
    if Condition.NOT_PREFERRED in conditions:
        yield "not preferred: led by another replica than the first one, that is to lead."


def painted(text: str, conditions: Iterable[Condition], style: Style) -> Cell:
    """The text in the colour of the worst of it."""
    given = set(conditions)
    if not given.isdisjoint(_BAD):
        return Painted(text, style.red)
    if Condition.UNDER_REPLICATED in given:
        return Painted(text, style.yellow)
    return Painted(text, style.cyan) if Condition.MOVING in given else text


def replicas_text(partition: PartitionView) -> str:
    """``1,2,-3,+4``: 3 is on its way out, 4 on its way in."""
    if not (partition.adding or partition.removing):
        return ",".join(map(str, partition.replicas))
    marks = dict.fromkeys(partition.adding, "+") | dict.fromkeys(partition.removing, "-")
    return ",".join(f"{marks.get(broker, '')}{broker}" for broker in partition.replicas)
