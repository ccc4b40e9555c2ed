"""The provider contract for kinds of the Kafka provider on real brokers.

`tests/engine/test_kafka_contract.py` tests all kinds in memory; these are the kinds that are cheap to reset.
`tests/kafka/test_acls.py` tests ACLs, which need an authorizer.
"""

import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from kdeclare.core.clock import Clock, SystemClock
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.client import KafkaCluster, connect
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, ScramAlteration
from kdeclare.providers.kafka.scram_user.credential import Credentials
from kdeclare.sandbox import SandboxStatus
from kdeclare.testing.provider_contract import ProviderContract
from tests.beds import DELETE
from tests.connections import connections_to
from tests.engine.test_kafka_contract import (
    group_config,
    quota,
    scram_user,
    select_kinds,
    subscription,
    topic,
)
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
    """The limits of an entity with a default client id."""

    provider = select_kinds("ClientQuota")
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


class ListedConfigsContract(RealKafkaContract):
    """The configs of groups or of client metrics subscriptions."""

    scope: ClassVar[ConfigScope]

    def _read(self) -> Mapping[ConfigResource, Mapping[str, str | None]]:
        mine = [r for r in self.cluster.list_config_resources(self.scope) if r.name.startswith(PREFIX)]
        found = self.cluster.configs([ConfigQuery(resource, overrides=True) for resource in sorted(mine)])
        own = {ConfigSource.GROUP, ConfigSource.CLIENT_METRICS}
        return {
            r: {k: e.value for k, e in entries.items() if e.source in own} for r, entries in found.items()
        }

    def empty(self) -> None:
        items = [
            ConfigAlteration(resource, tuple(ConfigOp(key, DELETE, None) for key in values))
            for resource, values in self._read().items()
        ]
        if items:
            assert set(self.cluster.alter_configs(items).values()) == {None}

    def dump(self, system: object) -> Json:
        return {resource.name: dict(values) for resource, values in self._read().items()}


class TestGroupConfig(ListedConfigsContract):
    """Every group id counts as existing."""

    scope = ConfigScope.GROUP
    provider = select_kinds("GroupConfig")
    before = (
        group_config(
            f"{PREFIX}changed", consumer_session_timeout_ms=50000, share_isolation_level="read_committed"
        ),
        group_config(f"{PREFIX}gone", streams_num_standby_replicas=1),
    )
    after = (
        group_config(
            f"{PREFIX}changed", consumer_session_timeout_ms=60000, share_auto_offset_reset="earliest"
        ),
        group_config(f"{PREFIX}new", consumer_heartbeat_interval_ms=6000),
    )
    elsewhere = (group_config(f"{PREFIX}changed", consumer_session_timeout_ms=47000),)


class TestClientMetrics(ListedConfigsContract):
    """A subscription exists as long as it has configs. Lists are set as a whole."""

    scope = ConfigScope.CLIENT_METRICS
    provider = select_kinds("ClientMetrics")
    before = (
        subscription(f"{PREFIX}changed", "org.a.", "org.b.", interval="30s", match={"client_id": "app-.*"}),
        subscription(f"{PREFIX}gone", "*"),
    )
    after = (
        subscription(
            f"{PREFIX}changed", "org.a.", match={"client_id": "app-.*", "client_software_name": "java"}
        ),
        subscription(f"{PREFIX}new", "org.c.", interval="1min"),
    )
    elsewhere = (subscription(f"{PREFIX}changed", "org.other."),)


class TestScramUser(RealKafkaContract):
    """Passwords cannot be read, so only iterations show a change."""

    provider = select_kinds("ScramUser")
    before = (
        scram_user(f"{PREFIX}changed", sha512="${env.OLD}", sha256="${env.OLD}"),
        scram_user(f"{PREFIX}gone", sha256="${env.OLD}"),
        scram_user(f"{PREFIX}same", sha512="${env.OLD}"),
    )
    after = (
        scram_user(f"{PREFIX}changed", sha512="${env.NEW}"),
        scram_user(f"{PREFIX}new", sha512="${env.NEW}", sha256="${env.NEW}"),
        scram_user(f"{PREFIX}same", sha512="${env.OLD}"),
    )
    elsewhere = (scram_user(f"{PREFIX}changed", 16_000, sha512="${env.OLD}"),)
    secrets: ClassVar[Mapping[str, str]] = {"${env.OLD}": "old-secret-123", "${env.NEW}": "new-secret-456"}

    def empty(self) -> None:
        for user, credentials in self._read().items():
            for mechanism in credentials:
                assert self.cluster.alter_scram_users([ScramAlteration(user, mechanism)]) == {user: None}

    def _read(self) -> Mapping[str, Credentials]:
        return {n: found for n, found in self.cluster.scram_users().items() if n.startswith(PREFIX)}

    def dump(self, system: object) -> Json:
        return {name: {m.value: n for m, n in found.items()} for name, found in self._read().items()}
