"""The provider contract for kinds of the Kafka provider on real brokers.

`tests/engine/test_kafka_contract.py` tests all kinds in memory; these are the kinds that are cheap to reset.
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from kdeclare.core.clock import Clock, SystemClock
from kdeclare.core.parts import Connections
from kdeclare.core.resources.changes import Action
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource
from kdeclare.providers.kafka.port import ConfigQuery
from kdeclare.sandbox import SandboxStatus
from kdeclare.testing.provider_contract import ProviderContract
from tests.connections import connections_to
from tests.engine.test_kafka_contract import quota, select_kinds, topic
from tests.jsontypes import Json

pytestmark = pytest.mark.kafka

PREFIX = f"contract-{uuid.uuid4().hex[:8]}-"
ADDRESS = f"10.{uuid.uuid4().bytes[0]}.{uuid.uuid4().bytes[1]}.7"


class RealKafkaContract(ProviderContract):
    """A bed on the brokers of a sandbox: a system is all objects with the prefix, deleted for a new system.

    Observing the outcome after crashes and timeouts would take seconds, dozens of times. That is
    tested in memory, and for whole commands in `tests/kafka/test_kill.py`.
    """

    cluster: KafkaCluster
    test_killed_at_every_position_of_the_journal = None  # type: ignore[assignment]
    test_killed_before_and_after_every_request = None  # type: ignore[assignment]
    test_a_time_out_is_settled_by_looking = None  # type: ignore[assignment]

    @pytest.fixture(autouse=True)
    def _client(self, sandbox: SandboxStatus) -> Iterator[None]:
        self.cluster = connect(sandbox.bootstrap, {})
        try:
            yield
            self.empty()
        finally:
            self.cluster.close()

    def empty(self) -> None:
        """Delete all objects with the prefix."""
        raise NotImplementedError

    def make_system(self, folder: Path) -> object:
        self.empty()
        return self.cluster

    def connect(self, system: object) -> Connections:
        return connections_to(self.cluster)

    def make_clock(self) -> Clock:
        return SystemClock()


class TestClientQuota(RealKafkaContract):
    """Entities always exist, so all changes are updates."""

    provider = select_kinds("ClientQuota")
    actions = frozenset({Action.UPDATE})
    pair: ClassVar[Json] = {"user": f"{PREFIX}alice", "clientId": {"default": True}}
    before = (
        quota("changed", {"user": f"{PREFIX}alice"}, producer_byte_rate="1MiB", consumer_byte_rate=2000),
        quota("pair", pair, request_percentage=12.5),
        quota("gone", {"ip": ADDRESS}, connection_creation_rate=5),
    )
    after = (
        quota("changed", {"user": f"{PREFIX}alice"}, producer_byte_rate="2MiB", controller_mutation_rate=0.5),
        quota("pair", pair, request_percentage=25),
        quota("new", {"clientId": f"{PREFIX}app"}, consumer_byte_rate=1),
    )
    elsewhere = (
        quota("changed", {"user": f"{PREFIX}alice"}, producer_byte_rate=77),
        quota("pair", pair, request_percentage=77.5),
    )

    def empty(self) -> None:
        mine = self.dump(self.cluster)
        entities = {entity: limits for entity, limits in self.cluster.quotas().items() if entity.key in mine}
        results = self.cluster.alter_quotas(
            {entity: dict.fromkeys(found) for entity, found in entities.items()}
        )
        assert set(results.values()) <= {None}

    def dump(self, system: object) -> Json:
        found = self.cluster.quotas()
        return {e.key: dict(limits) for e, limits in found.items() if PREFIX in e.key or ADDRESS in e.key}


class TestTopic(RealKafkaContract):
    """A rollback removes no partitions and restores no deleted topics."""

    provider = select_kinds("Topic")
    before = (
        topic(f"{PREFIX}changed", configs={"retention_ms": 1000, "cleanup_policy": {"append": ["compact"]}}),
        topic(f"{PREFIX}gone", factor=1, configs={"retention_ms": 7}),
    )
    after = (
        topic(f"{PREFIX}changed", 2, configs={"retention_ms": 2000, "flush_ms": 5}),
        topic(f"{PREFIX}new", factor=1, configs={"min_insync_replicas": 1}),
    )
    elsewhere = (topic(f"{PREFIX}changed", configs={"retention_ms": 77}),)

    def empty(self) -> None:
        mine = [name for name in self.cluster.topics() if name.startswith(PREFIX)]
        self.cluster.delete_topics(dict.fromkeys(mine))
        while any(name.startswith(PREFIX) for name in self.cluster.topics()):
            time.sleep(0.05)

    def dump(self, system: object) -> Json:
        """Return partitions and overrides, but no replicas, whose placement is up to the brokers."""
        topics = {n: found for n, found in self.cluster.topics().items() if n.startswith(PREFIX)}
        queries = [ConfigQuery(ConfigResource(ConfigScope.TOPIC, name), overrides=True) for name in topics]
        configs = self.cluster.configs(queries) if queries else {}
        return {
            entity.name: {
                "partitions": len(topics[entity.name].partitions),
                "configs": {k: e.value for k, e in entries.items() if e.source is ConfigSource.TOPIC},
            }
            for entity, entries in configs.items()
        }
