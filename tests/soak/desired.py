"""What the project declares: a random desired state, its changes, and its manifests."""

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.cluster import BROKERS

TOPICS = tuple(f"soak-t{number}" for number in range(10))
MOVED_TOPICS = ("soak-m0", "soak-m1")
"""Topics with records, whose replicas are moved. They are always declared, with two replicas."""
MOVED_PARTITIONS = 3
USERS = ("soak-u0", "soak-u1", "soak-u2")
PRINCIPALS = ("soak-p0", "soak-p1")
MOVE = "soak-move"

TOPIC_KEYS: dict[str, tuple[int, int]] = {
    "retention.ms": (10**9, 10**10),
    "flush.ms": (10**5, 10**6),
    "max.message.bytes": (10**6, 10**7),
    "segment.bytes": (10**8, 10**9),
    "delete.retention.ms": (10**6, 10**8),
}
"""Keys that manifests declare, with the range of their values."""
LIST_KEY = "cleanup.policy"
_LISTS: tuple[Any, ...] = (
    ["delete"],
    ["compact"],
    ["compact", "delete"],
    {"append": ["compact"]},
    {"append": ["delete"], "subtract": ["compact"]},
    {"append": ["compact"], "subtract": ["delete"]},
)
BROKER_KEYS: dict[str, tuple[int, int]] = {
    "log.cleaner.backoff.ms": (10_000, 20_000),
    "log.cleaner.io.max.bytes.per.second": (10**8, 10**9),
}
LIMITS = ("producer_byte_rate", "consumer_byte_rate")
_OPERATIONS = ("READ", "WRITE", "DESCRIBE", "ALTER_CONFIGS")

Binding = tuple[str, str, str, str]
"""The principal, the pattern type, the name and the operation of an ACL binding for topics."""


@dataclass
class TopicSpec:
    """A declared topic. A config is a text, a list, a list in part, or None for no override."""

    partitions: int
    factor: int
    configs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Desired:
    """The desired state, which changes with `change`.

    most_partitions: of each topic, because Kafka cannot remove partitions. declared: all values that a key of
        a topic ever had.
    """

    topics: dict[str, TopicSpec] = field(default_factory=dict)
    brokers: dict[int, dict[str, str]] = field(default_factory=dict)
    quotas: dict[str, dict[str, int]] = field(default_factory=dict)
    bindings: dict[str, set[tuple[str, str, str]]] = field(default_factory=dict)
    moves: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    throttle: int = 2_000_000
    batch: int = 2
    most_partitions: dict[str, int] = field(default_factory=dict)
    declared: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        for name in MOVED_TOPICS:
            self.topics[name] = TopicSpec(MOVED_PARTITIONS, 2, {"retention.ms": str(10**9)})

    def change(self, chance: random.Random) -> str:
        """Make one random change, and return what it is."""
        kinds = {
            self._change_topic: 10,
            self._change_configs: 12,
            self._change_moves: 6,
            self._change_broker: 3,
            self._change_quota: 4,
            self._change_bindings: 4,
        }
        return chance.choices(list(kinds), list(kinds.values()))[0](chance)

    def _change_topic(self, chance: random.Random) -> str:
        name = chance.choice(TOPICS)
        spec = self.topics.get(name)
        if spec is None:
            partitions = max(self.most_partitions.get(name, 1), chance.randint(1, 3))
            self.topics[name] = TopicSpec(partitions, chance.randint(1, 3))
            self._draw_configs(name, chance)
            what = "add"
        elif chance.random() < 0.35:
            del self.topics[name]
            return f"remove {name}"
        elif chance.random() < 0.5 and spec.partitions < 8:
            spec.partitions += chance.randint(1, 2)
            what = "partitions of"
        else:
            spec.factor = chance.choice([n for n in (1, 2, 3) if n != spec.factor])
            self._limit_isr(name)
            what = "replicas of"
        self.most_partitions[name] = self.topics[name].partitions
        return f"{what} {name}"

    def _change_configs(self, chance: random.Random) -> str:
        name = chance.choice(list(self.topics))
        self._draw_configs(name, chance)
        return f"configs of {name}"

    def _draw_configs(self, name: str, chance: random.Random) -> None:
        spec = self.topics[name]
        for key in chance.sample(list(TOPIC_KEYS), 2):
            if chance.random() < 0.3:
                spec.configs.pop(key, None)
            elif chance.random() < 0.1:
                spec.configs[key] = None
            else:
                spec.configs[key] = str(chance.randint(*TOPIC_KEYS[key]))
        if chance.random() < 0.4 and name not in MOVED_TOPICS:
            spec.configs[LIST_KEY] = chance.choice(_LISTS)
        if chance.random() < 0.3:
            spec.configs["min.insync.replicas"] = str(chance.randint(1, spec.factor))
        self._limit_isr(name)
        for key, value in spec.configs.items():
            if isinstance(value, str):
                self.declared[name, key].add(value)

    def _limit_isr(self, name: str) -> None:
        spec = self.topics[name]
        if int(spec.configs.get("min.insync.replicas", 1)) > spec.factor:
            spec.configs["min.insync.replicas"] = str(spec.factor)
            self.declared[name, "min.insync.replicas"].add(str(spec.factor))

    def _change_moves(self, chance: random.Random) -> str:
        self.throttle, self.batch = chance.choice([10**6, 2 * 10**6, 4 * 10**6]), chance.randint(1, 3)
        if self.moves and chance.random() < 0.2:
            self.moves = {}
            return "no moves"
        for _ in range(chance.randint(1, 3)):
            at = (chance.choice(MOVED_TOPICS), chance.randrange(MOVED_PARTITIONS))
            self.moves[at] = chance.sample(BROKERS, 2)
        return "moves"

    def _change_broker(self, chance: random.Random) -> str:
        broker = chance.choice(BROKERS)
        if broker in self.brokers and chance.random() < 0.3:
            del self.brokers[broker]
        else:
            keys = chance.sample(list(BROKER_KEYS), chance.randint(1, 2))
            self.brokers[broker] = {key: str(chance.randint(*BROKER_KEYS[key])) for key in keys}
        return f"broker {broker}"

    def _change_quota(self, chance: random.Random) -> str:
        user = chance.choice(USERS)
        if user in self.quotas and chance.random() < 0.3:
            del self.quotas[user]
        else:
            limits = chance.sample(LIMITS, chance.randint(1, 2))
            self.quotas[user] = {limit: chance.randint(10**8, 10**9) for limit in limits}
        return f"quotas of {user}"

    def _change_bindings(self, chance: random.Random) -> str:
        principal = chance.choice(PRINCIPALS)
        if principal in self.bindings and chance.random() < 0.2:
            del self.bindings[principal]
        else:
            names = [("LITERAL", name) for name in TOPICS[:3]] + [("PREFIXED", "soak-")]
            every = [(*name, operation) for name in names for operation in _OPERATIONS]
            self.bindings[principal] = set(chance.sample(every, chance.randint(1, 6)))
        return f"ACLs of {principal}"

    def list_ids(self) -> set[str]:
        """Return the ids of all declared resources that kdeclare must own."""
        return {
            *(f"Topic/{name}" for name in self.topics),
            *(f"BrokerConfig/{broker}" for broker in self.brokers),
            *(f"ClientQuota/{user}" for user in self.quotas),
            *(f"Acl/{principal}" for principal in self.bindings),
        }

    def list_bindings(self) -> set[Binding]:
        """Return all declared ACL bindings."""
        return {(f"User:{who}", *one) for who, bindings in self.bindings.items() for one in bindings}

    def write(self, file: Path) -> None:
        """Write the manifests. The file is replaced atomically, because commands may be reading it."""
        documents = [
            {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            for kind, name, spec in self._list_manifests()
        ]
        draft = file.with_suffix(".draft")
        draft.write_text("\n---\n".join(map(json.dumps, documents)))
        draft.replace(file)

    def _list_manifests(self) -> list[tuple[str, str, dict[str, Any]]]:
        manifests: list[tuple[str, str, dict[str, Any]]] = [
            (
                "Topic",
                name,
                {"partitions": spec.partitions, "replicationFactor": spec.factor, "configs": spec.configs},
            )
            for name, spec in self.topics.items()
        ]
        manifests += [("BrokerConfig", str(b), {"configs": configs}) for b, configs in self.brokers.items()]
        manifests += [
            ("ClientQuota", user, {"entity": {"user": user}, "limits": limits})
            for user, limits in self.quotas.items()
        ]
        for principal, bindings in self.bindings.items():
            entries = [
                {"topic": name, "pattern": pattern.lower(), "allow": [operation]}
                for pattern, name, operation in sorted(bindings)
            ]
            manifests.append(("Acl", principal, {"principal": f"User:{principal}", "bindings": entries}))
        if self.moves:
            partitions = [
                {"topic": topic, "partition": partition, "replicas": replicas}
                for (topic, partition), replicas in self.moves.items()
            ]
            pace = {"throttle": self.throttle, "batchSize": self.batch}
            manifests.append(("Reassignment", MOVE, {"partitions": partitions, **pace}))
        return manifests
