"""Whether topics exist, asked of the controller.

Brokers answer metadata requests from their own image, which trails the controller, under load by minutes.
A validate-only CreateTopics is forwarded to the controller, which looks for an existing topic before it
checks anything else.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kdeclare.core.faults import Fault, Outcome
from kdeclare.providers.kafka.port import POLICY_VIOLATION, Cluster, NewTopic

_EXISTS = "TOPIC_ALREADY_EXISTS"
_ABSENT = frozenset({"INVALID_REPLICATION_FACTOR", POLICY_VIOLATION})
"""What the controller answers only once it has seen that there is no such topic."""


@dataclass(frozen=True, slots=True)
class Existence:
    """Topics by what the controller says of them.

    unsettled: it did not say, because the client may not create topics, or the request failed.
    """

    exists: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()


def find_existing(cluster: Cluster, names: Iterable[str]) -> Existence:
    """Ask the controller for topics that no broker shows. Creates nothing, raises nothing."""
    asked = sorted(set(names))
    if not asked:
        return Existence()
    try:
        answers = cluster.create_topics(
            [NewTopic(name, 1, 1, None, {}) for name in asked], validate_only=True
        )
    except Fault:
        return Existence(unsettled=frozenset(asked))
    exists = frozenset(name for name in asked if _is_fault(answers[name], _EXISTS))
    absent = frozenset(name for name in asked if answers[name] is None or _is_fault(answers[name], *_ABSENT))
    return Existence(exists, absent, frozenset(asked) - exists - absent)


def _is_fault(answer: Outcome, *errors: str) -> bool:
    return isinstance(answer, Fault) and answer.error in errors
