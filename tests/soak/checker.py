"""What must be true once all faults have ended and the project was applied."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.soak.cluster import BROKERS
from tests.soak.desired import BROKER_KEYS, LIMITS, LIST_KEY, MOVED_TOPICS, Desired, TopicSpec
from tests.soak.live import Live, LiveTopic
from tests.soak.other_client import FOREIGN_KEYS, FOREIGN_LIMIT, FOREIGN_PREFIX, OtherClient
from tests.soak.stores import StoredState

ADHOC_PREFIX = "adhoc-"
"""Topics that ad hoc commands create and delete. They may be there or not, because commands are killed."""
_THROTTLES = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
_HAVE_OUTCOME = frozenset({"done", "started", "failed", "denied", "skipped", "stale", "interrupted"})
_TEMPORARY = "throttle.set:"
"""The ids of operations that stay unknown in a recovered run if they show no effect. Later runs remove what
they set late, so the checks find no throttle."""


@dataclass
class Checker:
    """Compares what is there with what must be. It remembers the ids of topics that must not be replaced.

    may_vanish: topics that were taken out of the manifests, or that a rollback can have deleted, since the
        last check. returned: configs of deleted topics that Kafka gave to new topics of the same name.
    """

    other: OtherClient
    state_topic: str = "soak-state"
    may_vanish: set[str] = field(default_factory=set)
    returned: set[tuple[str, str, str]] = field(default_factory=set)
    _ids: dict[str, str] = field(default_factory=dict)
    _all_ids: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def find_violations(self, desired: Desired, live: Live) -> list[str]:
        """Return what is wrong with the cluster."""
        for name, topic in live.topics.items():
            self.remember(name, topic.id)
        return [
            *self._check_topics(desired, live),
            *self._check_moves(desired, live),
            *self._check_brokers(desired, live),
            *self._check_quotas(desired, live),
            *self._check_bindings(desired, live),
            *self._check_foreign_topics(live),
        ]

    def remember(self, name: str, topic_id: str) -> None:
        """Remember that a topic had this id."""
        self._all_ids[name].add(topic_id)

    def accept(self, live: Live) -> None:
        """Remember the topics, after a check without violations."""
        self._ids = {name: topic.id for name, topic in live.topics.items()}
        self.may_vanish.clear()

    def _check_topics(self, desired: Desired, live: Live) -> Iterator[str]:
        for name, spec in desired.topics.items():
            topic = live.topics.get(name)
            if topic is None:
                yield f"topic {name} is declared and does not exist"
                continue
            if name in self._ids and self._ids[name] != topic.id and name not in self.may_vanish:
                yield f"topic {name} was deleted and created again"
            if len(topic.replicas) != spec.partitions:
                yield f"topic {name} has {len(topic.replicas)} partitions instead of {spec.partitions}"
            for partition, replicas in topic.replicas.items():
                if len(replicas) != spec.factor:
                    yield f"{name}-{partition} has the replicas {replicas} instead of {spec.factor}"
            yield from self._check_configs(name, spec, topic, desired)
        names = {name for name in live.topics if not name.startswith((FOREIGN_PREFIX, ADHOC_PREFIX))}
        for name in names - desired.topics.keys() - {self.state_topic}:
            yield f"topic {name} exists, but no manifest declares it"

    def _check_configs(self, name: str, spec: TopicSpec, topic: LiveTopic, desired: Desired) -> Iterator[str]:
        for key, declared in spec.configs.items():
            value = topic.configs.get(key)
            if isinstance(declared, dict):
                elements = set((value or "delete").split(","))
                is_right = elements >= set(declared["append"]) and not elements & set(
                    declared.get("subtract", ())
                )
            elif isinstance(declared, list):
                is_right = value is not None and set(value.split(",")) == set(declared)
            else:
                is_right = value == declared
            if not is_right:
                yield f"{key} of {name} is {value} instead of {declared}"
        for key, value in topic.configs.items():
            if key in _THROTTLES:
                yield f"topic {name} is throttled: {key}={value}"
            elif key in FOREIGN_KEYS or key in spec.configs or key == LIST_KEY:
                continue  # checked elsewhere; elements of a list may stay when it is no longer declared
            elif self._is_recreated(name, topic) and value in desired.declared[name, key]:
                self.returned.add((name, key, value))
            elif value not in self.other.drift[name, key]:
                yield f"{key} of {name} is {value}, but no manifest declares it"
        for key in FOREIGN_KEYS:
            expected = self.other.keys.get((name, key))
            found = topic.configs.get(key)
            if expected and expected[1] == topic.id and found != expected[0]:
                yield f"{key} of {name}, which another client set to {expected[0]}, is {found}"

    def list_undeletable(self, desired: Desired, live: Live) -> list[tuple[str, str]]:
        """Return the topics and keys that may be on a restarted broker only (see `_is_recreated`).

        The controller does not know such a key, so it ignores its deletion.
        """
        return [
            (name, key)
            for name, topic in live.topics.items()
            if name in desired.topics and self._is_recreated(name, topic)
            for key, declared in desired.topics[name].configs.items()
            if declared is None
        ]

    def _is_recreated(self, name: str, topic: LiveTopic) -> bool:
        """Whether an earlier topic had the name.

        Kafka 4.3 gives the configs of a deleted topic to a new topic of the same name, if a broker was
        restarted in between: it replays the config and the removal in one delta, and
        ``ConfigurationsDelta.replay(RemoveTopicRecord)`` forgets only configs that are in an earlier image.
        """
        return bool(self._all_ids[name] - {topic.id})

    def _check_moves(self, desired: Desired, live: Live) -> Iterator[str]:
        for topic, partition in live.moves:
            yield f"{topic}-{partition} is still being reassigned"
        for (name, partition), replicas in desired.moves.items():
            found = live.topics[name].replicas.get(partition) if name in live.topics else None
            if found != replicas:
                yield f"{name}-{partition} is on {found} instead of {replicas}"

    @staticmethod
    def _check_brokers(desired: Desired, live: Live) -> Iterator[str]:
        for broker in BROKERS:
            overrides, declared = live.brokers.get(broker, {}), desired.brokers.get(broker, {})
            found = {key: float(value) for key, value in overrides.items() if key in BROKER_KEYS}
            if found != {key: float(value) for key, value in declared.items()}:
                yield f"broker {broker} has {found} instead of {declared}"
            for key in overrides.keys() & set(_THROTTLES):
                yield f"broker {broker} is throttled: {key}={overrides[key]}"

    def _check_quotas(self, desired: Desired, live: Live) -> Iterator[str]:
        for user, limits in desired.quotas.items():
            for limit, declared in limits.items():
                found = live.quotas.get(user, {}).get(limit)
                if found != declared:
                    yield f"{limit} of {user} is {found} instead of {declared}"
        for user, found_limits in live.quotas.items():
            for limit, value in found_limits.items():
                is_declared = limit in desired.quotas.get(user, {})
                if (
                    limit in LIMITS
                    and not is_declared
                    and value not in self.other.drifted_limits[user, limit]
                ):
                    yield f"{limit} of {user} is {value}, but no manifest declares it"
        for user, value in self.other.limits.items():
            found = live.quotas.get(user, {}).get(FOREIGN_LIMIT)
            if found != value:
                yield f"{FOREIGN_LIMIT} of {user}, which another client set to {value}, is {found}"

    def _check_bindings(self, desired: Desired, live: Live) -> Iterator[str]:
        declared = desired.list_bindings()
        for binding in sorted(declared - live.bindings):
            yield f"ACL {binding} is declared and does not exist"
        for binding in sorted(self.other.bindings - live.bindings):
            yield f"ACL {binding} of another client does not exist anymore"
        for binding in sorted(live.bindings - declared - self.other.bindings):
            yield f"ACL {binding} exists, but no manifest declares it"

    def _check_foreign_topics(self, live: Live) -> Iterator[str]:
        for name, wanted in self.other.topics.items():
            topic = live.topics.get(name)
            if topic is None:
                yield f"topic {name} of another client does not exist anymore"
                continue
            if topic.configs != wanted["configs"]:
                yield f"topic {name} of another client has {topic.configs} instead of {wanted['configs']}"
            factors = {len(replicas) for replicas in topic.replicas.values()}
            if (len(topic.replicas), factors) != (wanted["num_partitions"], {wanted["replication_factor"]}):
                yield f"topic {name} of another client has the replicas {topic.replicas}"
            if name in self._ids and self._ids[name] != topic.id:
                yield f"topic {name} of another client was deleted and created again"
        for name in live.topics:
            if name.startswith(FOREIGN_PREFIX) and name not in self.other.topics:
                yield f"topic {name}, which another client deleted, exists"

    def mark_rollback(self, desired: Desired) -> None:
        """A rollback deletes topics that its run created, if they have no records."""
        self.may_vanish |= desired.topics.keys() - set(MOVED_TOPICS)


def find_state_violations(stored: StoredState, desired: Desired) -> list[str]:
    """Return what is wrong with the stored state and its journals."""
    violations = [f"{path} was left behind" for path in stored.leftovers]
    state = stored.state or {"resources": {}}
    owned, declared = set(state["resources"]), desired.list_ids()
    if owned != declared:
        violations.append(f"owned, not declared: {owned - declared}; declared, not owned: {declared - owned}")
    if state.get("leftovers"):
        violations.append(f"cleanup is still pending: {state['leftovers']}")
    for run_id, entries in stored.journals.items():
        violations += (f"run {run_id}: {problem}" for problem in _check_journal(entries))
    return violations


def _check_journal(entries: list[dict[str, Any]]) -> Iterator[str]:
    if not entries or entries[-1]["event"] != "finish":
        yield f"it is not over: {json.dumps(entries[-3:])}"
    outcomes: dict[str, str] = {}
    done: Counter[str] = Counter()
    begun: set[str] = set()
    for entry in entries:
        if entry["event"] == "begin":
            for id_ in entry["ids"]:
                begun.add(id_)
                if outcomes.get(id_) == "done":
                    yield f"operation {id_} was sent again after it was done"
        elif entry["event"] == "end":
            for result in entry["results"]:
                outcomes[result["id"]] = result["status"]
                done[result["id"]] += result["status"] == "done"
    is_recovered = bool(entries) and entries[-1].get("outcome") == "recovered"
    for id_ in sorted(begun):
        if is_recovered and id_.startswith(_TEMPORARY) and outcomes.get(id_) == "unknown":
            continue
        if outcomes.get(id_) not in _HAVE_OUTCOME:
            yield f"operation {id_} has the outcome {outcomes.get(id_)}"
    for id_, times in done.items():
        if times > 1:
            yield f"operation {id_} was recorded as done {times} times"


def count_operations(stored: StoredState) -> Counter[str]:
    """Count runs, operations by their last status, and results that were determined after a crash."""
    counts: Counter[str] = Counter(runs=len(stored.journals))
    for entries in stored.journals.values():
        statuses: dict[str, str] = {}
        for entry in entries:
            if entry["event"] == "end":
                statuses |= {result["id"]: result["status"] for result in entry["results"]}
                counts["settled after a crash"] += len(entry["results"]) if entry["settled"] else 0
            elif entry["event"] == "finish":
                counts[f"runs {entry['outcome']}"] += 1
        counts.update(f"operations {status}" for status in statuses.values())
        counts["operations"] += len(statuses)
    return counts
