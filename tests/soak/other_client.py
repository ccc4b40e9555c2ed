"""Another client of the same cluster. It has topics, keys, quotas and ACLs of its own, and causes drift."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka import KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.protocol.admin import AlterClientQuotasRequest

from tests.soak.cluster import SoakCluster
from tests.soak.desired import LIST_KEY, MOVED_PARTITIONS, MOVED_TOPICS, TOPIC_KEYS, USERS, Binding
from tests.soak.live import read_bindings

FOREIGN_PREFIX = "other-"
FOREIGN_KEYS = ("index.interval.bytes", "file.delete.delay.ms")
"""Keys of the project's topics that no manifest declares."""
FOREIGN_LIMIT = "request_percentage"
_PATIENCE_S = 120.0
_RECORD = b"x" * 10_000


@dataclass
class OtherClient:
    """What the client has set, as the checker expects to find it.

    keys: the value and the id of the topic by topic and key. drift: all values that it ever gave to a key
        that manifests declare; one of them may stay when the key is no longer declared.
    """

    cluster: SoakCluster
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    bindings: set[Binding] = field(default_factory=set)
    drift: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    drifted_limits: dict[tuple[str, str], set[float]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[str] = field(default_factory=Counter)
    _number: int = 0

    def act(self, chance: random.Random) -> str:
        """Do one random thing, and return what it was. A request that fails is repeated."""
        actions = {
            self._set_foreign_key: 6,
            self._cause_drift: 6,
            self._create_topic: 3,
            self._delete_topic: 2,
            self._set_foreign_limit: 2,
            self._drift_limit: 2,
            self._add_binding: 2,
            self._remove_declared_binding: 1,
        }
        action = chance.choices(list(actions), list(actions.values()))[0]
        admin = _repeat(self.cluster.connect)
        try:
            done = action(admin, chance)
        finally:
            admin.close()
        self.counts[action.__name__.strip("_")] += bool(done)
        return done

    def produce(self) -> None:
        """Write records to the topics whose replicas are moved, about 2 MB to each partition."""
        producer = KafkaProducer(bootstrap_servers=self.cluster.bootstrap, max_request_size=1 << 20)
        for topic in MOVED_TOPICS:
            for number in range(200 * MOVED_PARTITIONS):
                producer.send(topic, _RECORD, key=b"%d" % number, partition=number % MOVED_PARTITIONS)
        producer.flush(120)
        producer.close()

    def _pick_topic(self, admin: KafkaAdminClient, chance: random.Random) -> tuple[str, str] | None:
        described = _repeat(admin.describe_topics)
        topics = [t for t in described if t["name"].startswith(("soak-t", "soak-m"))]
        if not topics:
            return None
        topic = chance.choice(sorted(topics, key=lambda one: str(one["name"])))
        return topic["name"], str(topic["topic_id"])

    def _set_foreign_key(self, admin: KafkaAdminClient, chance: random.Random) -> str:
        picked = self._pick_topic(admin, chance)
        if picked is None:
            return ""
        name, id_ = picked
        key, value = chance.choice(FOREIGN_KEYS), str(chance.randint(5_000, 90_000))
        self.keys.pop((name, key), None)
        if self._alter(admin, name, key, value):
            self.keys[name, key] = (value, id_)
        return f"set {key} of {name}"

    def _cause_drift(self, admin: KafkaAdminClient, chance: random.Random) -> str:
        picked = self._pick_topic(admin, chance)
        if picked is None:
            return ""
        key = chance.choice([*TOPIC_KEYS, LIST_KEY])
        if key == LIST_KEY:
            if picked[0] in MOVED_TOPICS:
                return ""
            value = chance.choice(["delete", "compact", "compact,delete"])
        else:
            value = str(chance.randint(*TOPIC_KEYS[key]))
        self.drift[picked[0], key].add(value)
        self._alter(admin, picked[0], key, value)
        return f"drift: {key}={value} of {picked[0]}"

    @staticmethod
    def _alter(admin: KafkaAdminClient, topic: str, key: str, value: str) -> bool:
        """Set a key. Return whether it is certain that the topic has it."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                answer = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
            except Exception:  # noqa: BLE001  whatever a client raises while a broker is down
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.5)
            else:
                return bool(answer["topic"][topic] == "OK")

    @staticmethod
    def set_and_delete(admin: KafkaAdminClient, topic: str, key: str) -> None:
        """Set a key of a topic to any value, and delete it."""
        for change in (str(TOPIC_KEYS[key][0]), ("DELETE", None)):
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: change})
            _repeat(partial(admin.alter_configs, [resource], incremental=True))

    def _create_topic(self, admin: KafkaAdminClient, chance: random.Random) -> str:
        if len(self.topics) >= 6:
            return ""
        self._number += 1
        name = f"{FOREIGN_PREFIX}{self._number}"
        wanted = {
            "num_partitions": chance.randint(1, 3),
            "replication_factor": chance.randint(1, 3),
            "configs": {"retention.ms": str(chance.randint(10**9, 10**10))},
        }

        def create() -> bool:
            admin.create_topics({name: wanted}, raise_errors=False)
            return name in {topic["name"] for topic in admin.describe_topics()}

        _repeat(create)
        self.topics[name] = wanted
        return f"create {name}"

    def _delete_topic(self, admin: KafkaAdminClient, chance: random.Random) -> str:
        if not self.topics:
            return ""
        name = chance.choice(sorted(self.topics))
        del self.topics[name]

        def delete() -> bool:
            admin.delete_topics([name], raise_errors=False)
            return name not in {topic["name"] for topic in admin.describe_topics()}

        _repeat(delete)
        return f"delete {name}"

    def _set_foreign_limit(self, admin: KafkaAdminClient, chance: random.Random) -> str:
        user, value = chance.choice([*USERS, "other-user"]), float(chance.randint(10, 90))
        _repeat(lambda: self._alter_limit(admin, user, FOREIGN_LIMIT, value))
        self.limits[user] = value
        return f"limit {FOREIGN_LIMIT} of {user}"

    def _drift_limit(self, admin: KafkaAdminClient, chance: random.Random) -> str:
        user, value = chance.choice(USERS), float(chance.randint(10**8, 10**9))
        self.drifted_limits[user, "producer_byte_rate"].add(value)
        _repeat(lambda: self._alter_limit(admin, user, "producer_byte_rate", value))
        return f"drift: limit of {user}"

    @staticmethod
    def _alter_limit(admin: KafkaAdminClient, user: str, key: str, value: float) -> bool:
        entry = AlterClientQuotasRequest.EntryData
        entity = [entry.EntityData(entity_type="user", entity_name=user)]
        ops = [entry.OpData(key=key, value=value, remove=False)]
        request = AlterClientQuotasRequest(entries=[entry(entity=entity, ops=ops)], validate_only=False)
        response: Any = admin._manager.run(admin._manager.send, request)
        return bool(response.entries[0].error_code == 0)

    def _add_binding(self, admin: KafkaAdminClient, chance: random.Random) -> str:
        who = chance.choice(["User:other", "User:soak-p0"])
        binding = (who, "LITERAL", f"{FOREIGN_PREFIX}acl-{chance.randint(1, 9)}", "READ")
        acl = ACL(
            principal=binding[0],
            host="*",
            operation=ACLOperation.READ,
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePattern(ResourceType.TOPIC, binding[2]),
        )

        def create() -> bool:
            admin.create_acls([acl])
            return binding in read_bindings(admin)

        _repeat(create)
        self.bindings.add(binding)
        return f"add ACL {binding}"

    @staticmethod
    def _remove_declared_binding(admin: KafkaAdminClient, chance: random.Random) -> str:
        every = _repeat(lambda: [*read_bindings(admin), None])
        bindings = sorted(b for b in every if b and b[2].startswith("soak-"))
        if not bindings:
            return ""
        who, pattern, name, operation = chance.choice(bindings)
        exact = ACLFilter(
            principal=who,
            host="*",
            operation=ACLOperation[operation],
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePatternFilter(ResourceType.TOPIC, name, ACLResourcePatternType[pattern]),
        )
        _repeat(lambda: bool(admin.delete_acls([exact])))
        return f"drift: remove ACL of {who}"


def _repeat(request: Callable[[], object]) -> Any:
    """Repeat a request until its result is true, and return the result. Raises TimeoutError."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        last_problem: Exception | None = None
        try:
            if result := request():
                return result
        except Exception as problem:  # noqa: BLE001  whatever a client raises while a broker is down
            last_problem = problem
        if time.monotonic() > deadline:
            raise TimeoutError("the other client's request did not succeed") from last_problem
        time.sleep(0.3)
