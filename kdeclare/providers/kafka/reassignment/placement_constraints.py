"""Constraints of several declared resources on where the replicas of the same topic are."""

from collections.abc import Iterable, Mapping
from functools import cache

from kdeclare.core.contradictions import report_contradiction
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired
from kdeclare.core.registry import KINDS
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.reassignment.placing import Arrangement, ArrangesReplicas


def find_arrangements(item: Desired, topics: Iterable[str]) -> Mapping[str, Arrangement]:
    """Return what a declared resource says of where the replicas of which of these topics are to be."""
    kind = _arranging_replicas(KINDS[item.id.kind])
    return kind.arranges(item.id.name, item.body, topics) if kind is not None else {}


@cache  # checks of protocols are slow, and a plan makes thousands of them
def _arranging_replicas(kind: object) -> ArrangesReplicas | None:
    return kind if isinstance(kind, ArrangesReplicas) else None


def clashes(declared: Iterable[Desired], there: Iterable[str] = ()) -> list[Diagnostic]:
    """Declared resources that cannot both have the replicas of a topic where they want them.

    there: topics that are known to exist; more of them can only add to what is found.
    """
    items = sorted(declared, key=lambda d: d.id)
    topics = _named(items, there)
    known: dict[str, list[tuple[Desired, Arrangement]]] = {}
    found: dict[tuple[ResourceId, ResourceId], Diagnostic] = {}
    for item in items:
        for topic, mine in find_arrangements(item, topics).items():
            for other, theirs in known.setdefault(topic, []):
                if (item.id, other.id) not in found and (why := mine.clash(theirs)):
                    found[item.id, other.id] = report_contradiction(item, other, f"of topic {topic}, {why}")
            known[topic].append((item, mine))
    return list(found.values())


def _named(declared: Iterable[Desired], there: Iterable[str]) -> frozenset[str]:
    """What can be a topic: those that are there, and whatever is declared."""
    return frozenset(there).union(d.id.name for d in declared)


def barred(declared: Iterable[Desired], live: KafkaState) -> dict[str, frozenset[int]]:
    """By topic, the brokers that are to hold no replica of it, whichever resource says so."""
    items = list(declared)
    topics = _named(items, live.topics)
    known = frozenset(broker.id for broker in live.cluster.brokers)
    found: dict[str, frozenset[int]] = {}
    for item in items:
        for topic, mine in find_arrangements(item, topics).items():
            off = mine.without | (known - mine.only if mine.only else frozenset())
            found[topic] = found.get(topic, frozenset()) | off
    return found
