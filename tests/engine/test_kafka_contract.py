"""The provider contract, for the kinds of the Kafka provider on the in-memory cluster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from kdeclare.core.live.faults import CreatedObject
from kdeclare.core.parts import Connections
from kdeclare.core.provider.installed_providers import resolve_completely
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.changes import Action
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.provider import PROVIDER
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing.provider_contract import Declared, ProviderContract
from kdeclare.testing.provider_contract.bench import Bench
from tests.connections import connections_to
from tests.jsontypes import Json

pytestmark = pytest.mark.slow


def select_kinds(*kinds: str) -> Provider:
    """The provider with some of its kinds; operation types serve several kinds."""
    complete = resolve_completely(PROVIDER)
    return replace(complete, kinds=tuple(kind for kind in complete.kinds if kind.name in kinds))


class KafkaContract(ProviderContract):
    """A provider bed on a cluster with three brokers."""

    def make_system(self, folder: Path) -> object:
        return MemoryCluster()

    def connect(self, system: object) -> Connections:
        assert isinstance(system, MemoryCluster)
        return connections_to(system)

    def dump(self, system: object) -> Json:
        assert isinstance(system, MemoryCluster)
        found = system.dump()
        for partition in (p for item in found["topics"].values() for p in item["partitions"]):
            partition["isr"] = sorted(partition["isr"])  # the order is that in which replicas caught up
        return found


def topic(name: str, partitions: int = 1, factor: int = 2, **more: Json) -> Declared:
    configs = {key.replace("_", "."): value for key, value in more.pop("configs", {}).items()}
    spec = {"partitions": partitions, "replicationFactor": factor, "configs": configs, **more}
    return Declared("Topic", name, spec, {"team": name})


class TestTopics(KafkaContract):
    """Topics that are created, changed, grown, and deleted.

    Deleted records cannot be restored and partitions cannot be removed, so a rollback restores only the rest.
    `TestAssignedTopics` is undone completely. No config of a topic is secret.
    """

    provider = select_kinds("Topic")
    before = (
        topic("changed", configs={"retention_ms": 1000, "cleanup_policy": {"append": ["compact"]}}),
        topic("grown", 2, configs={"segment_bytes": 2000000}),
        topic("gone", 3, configs={"retention_ms": 7}),
    )
    after = (
        topic("changed", configs={"retention_ms": 2000, "flush_ms": 5}),
        topic("grown", 4, configs={"segment_bytes": 2000000}),
        topic("new", 2, 3, configs={"min_insync_replicas": 2}),
    )
    elsewhere = (topic("changed", configs={"retention_ms": 77}),)

    def dump(self, system: object) -> Json:
        """Brokers choose where to put replicas, which depends on the order of creations."""
        found = super().dump(system)
        for item in found["topics"].values():
            item["partitions"] = [len(partition["replicas"]) for partition in item["partitions"]]
        return found


def assigned_topic(name: str, *replicas: Sequence[int], **configs: Json) -> Declared:
    return Declared(
        "Topic", name, {"assignments": {str(n): list(r) for n, r in enumerate(replicas)}, "configs": configs}
    )


class TestAssignedTopics(KafkaContract):
    """Topics whose replicas are declared and moved. Nothing is deleted, so everything can be undone."""

    provider = select_kinds("Topic")
    actions = frozenset({Action.CREATE, Action.UPDATE})
    before = (
        assigned_topic("moved", [1, 2], [2, 3], **{"retention.ms": 5}),
        assigned_topic("same", [1]),
        assigned_topic("later", [3, 1]),
    )
    after = (
        assigned_topic("moved", [2, 3], [2, 1], **{"retention.ms": 6}),
        assigned_topic("same", [1]),
        assigned_topic("later", [3, 2]),
        assigned_topic("new", [3]),
    )
    elsewhere = (assigned_topic("later", [1, 2]),)


def broker_config(name: str, **configs: Json) -> Declared:
    stated = {key.replace("_", "."): value for key, value in configs.items()}
    return Declared("BrokerConfig", name, {"configs": stated}, {"team": name})


PASSWORD = "listener.name.internal.ssl.keystore.password"


def broker_config_with_password(reference: str, **configs: Json) -> Declared:
    return broker_config("1", **{PASSWORD: reference}, **configs)


class TestBrokerConfigs(KafkaContract):
    """Broker configs, single and cluster-wide, with a secret. Brokers exist, so all changes are updates."""

    provider = select_kinds("BrokerConfig")
    actions = frozenset({Action.UPDATE})
    before = (
        broker_config("cluster-default", log_retention_ms=5000, log_cleaner_threads=1),
        broker_config_with_password("${env.OLD}", background_threads=10),
        broker_config("2", log_cleanup_policy={"append": ["compact"]}),
    )
    after = (
        broker_config("cluster-default", log_retention_ms=6000, message_max_bytes=99999),
        broker_config_with_password("${env.NEW}", background_threads=20),
        broker_config("3", num_io_threads=9),
    )
    elsewhere = (
        broker_config("cluster-default", log_retention_ms=77),
        broker_config("1", background_threads=11),
    )
    secrets: ClassVar[Mapping[str, str]] = {"${env.OLD}": "old-secret-123", "${env.NEW}": "new-secret-456"}


def quota(name: str, entity: Json, **limits: Json) -> Declared:
    return Declared("ClientQuota", name, {"entity": entity, "limits": limits}, {"team": name})


class TestClientQuota(KafkaContract):
    """Limits of users, client ids, pairs, addresses and defaults.

    Entities always exist, so all changes are updates. No part of a quota is secret.
    """

    provider = select_kinds("ClientQuota")
    before = (
        quota("changed", {"user": "alice"}, producer_byte_rate="1MiB", consumer_byte_rate=2000),
        quota("pair", {"user": "alice", "clientId": {"default": True}}, request_percentage=12.5),
        quota("gone", {"ip": "10.0.0.1"}, connection_creation_rate=5),
        quota("everyone", {"user": {"default": True}}, producer_byte_rate=None),
    )
    after = (
        quota("changed", {"user": "alice"}, producer_byte_rate="2MiB", controller_mutation_rate=0.5),
        quota("pair", {"user": "alice", "clientId": {"default": True}}, request_percentage=25),
        quota("new", {"clientId": "app"}, consumer_byte_rate=1),
        quota("everyone", {"user": {"default": True}}, producer_byte_rate=9000),
    )
    elsewhere = (
        quota("changed", {"user": "alice"}, producer_byte_rate=77),
        quota("pair", {"user": "alice", "clientId": {"default": True}}, request_percentage=77.5),
    )


def group_config(name: str, **configs: Json) -> Declared:
    stated = {key.replace("_", "."): value for key, value in configs.items()}
    return Declared("GroupConfig", name, {"configs": stated}, {"team": name})


class TestGroupConfigs(KafkaContract):
    """Configs of groups. Every group id counts as existing, so all changes are updates. Nothing is secret."""

    provider = select_kinds("GroupConfig")
    before = (
        group_config("changed", consumer_session_timeout_ms=50000, share_isolation_level="read_committed"),
        group_config("gone", streams_num_standby_replicas=1),
        group_config("none", consumer_session_timeout_ms=None),
    )
    after = (
        group_config("changed", consumer_session_timeout_ms=60000, share_auto_offset_reset="earliest"),
        group_config("new", consumer_heartbeat_interval_ms=6000),
        group_config("none", consumer_session_timeout_ms=46000),
    )
    elsewhere = (group_config("changed", consumer_session_timeout_ms=47000),)


def subscription(name: str, *metrics: str, **spec: Json) -> Declared:
    return Declared("ClientMetrics", name, {"metrics": list(metrics), **spec}, {"team": name})


class TestClientMetrics(KafkaContract):
    """Client metrics subscriptions. All changes are updates, and lists are set as a whole."""

    provider = select_kinds("ClientMetrics")
    before = (
        subscription("changed", "org.a.", "org.b.", interval="30s", match={"client_id": "app-.*"}),
        subscription("gone", "*"),
    )
    after = (
        subscription("changed", "org.a.", match={"client_id": "app-.*", "client_software_name": "java"}),
        subscription("new", "org.c.", interval="1min"),
    )
    elsewhere = (subscription("changed", "org.other."),)


def scram_user(name: str, iterations: int | None = None, **passwords: str) -> Declared:
    """Declare a user. The keys are the digest sizes of the mechanisms, such as ``sha512``."""
    more: Json = {} if iterations is None else {"iterations": iterations}
    mechanisms = {f"SCRAM-SHA-{key[-3:]}": {"password": text, **more} for key, text in passwords.items()}
    return Declared("ScramUser", name, {"mechanisms": mechanisms}, {"team": name})


class TestScramUsers(KafkaContract):
    """SCRAM users. A user is not created, so setting its first password is an update.

    Passwords cannot be read, so a password that another client set cannot be restored, and importing a user
    does not find its password.
    """

    provider = select_kinds("ScramUser")
    before = (
        scram_user("changed", sha512="${env.OLD}", sha256="${env.OLD}"),
        scram_user("gone", sha256="${env.OLD}"),
        scram_user("same", sha512="${env.OLD}"),
    )
    after = (
        scram_user("changed", sha512="${env.NEW}"),
        scram_user("new", sha512="${env.NEW}", sha256="${env.NEW}"),
        scram_user("same", sha512="${env.OLD}"),
    )
    elsewhere = (scram_user("changed", 16_000, sha512="${env.OLD}"),)
    secrets: ClassVar[Mapping[str, str]] = {"${env.OLD}": "old-secret-123", "${env.NEW}": "new-secret-456"}


def acl(name: str, principal: str, *entries: Json, **spec: Json) -> Declared:
    return Declared("Acl", name, {"principal": principal, "bindings": list(entries), **spec}, {"team": name})


class AclContract(ProviderContract):
    """Bindings are created and deleted, and a resource consists of nothing else. Nothing is secret.

    A binding only exists or not. Another client that changes it before a run makes it as planned, and after a
    run as it was. No change does both, so rollbacks have their own ``undone_elsewhere``.
    """

    undone_elsewhere: ClassVar[Sequence[Declared]]

    def test_a_rollback_leaves_alone_what_others_have_changed(self, make_bench: Callable[[], Bench]) -> None:
        self.elsewhere = self.undone_elsewhere  # type: ignore[misc]
        super().test_a_rollback_leaves_alone_what_others_have_changed(make_bench)


class TestAcls(AclContract, KafkaContract):
    """Rights and denials of several principals, with roles and hosts.

    The cluster has an ACL. The first one could take kdeclare's own permissions away.
    """

    provider = select_kinds("Acl")

    def make_system(self, folder: Path) -> object:
        cluster = MemoryCluster()
        cluster.create_acls([parse_binding("ALLOW User:root ALTER cluster:kafka-cluster from *")])
        return cluster

    before = (
        acl("changed", "User:c", {"topic": "x", "allow": ["READ"], "deny": ["WRITE"]}, produce=["yy"]),
        acl("gone", "User:g", streams=["app"], hosts=["10.0.0.1"]),
        acl("shared", "User:c", {"topic": "x", "allow": ["READ"]}),
    )
    after = (
        acl("changed", "User:c", {"topic": "x", "allow": ["READ"], "deny": ["DELETE"]}, produce=["z*"]),
        acl("new", "User:n", {"cluster": True, "allow": ["DESCRIBE"]}, observe={"groups": ["*"]}),
        acl("shared", "User:c", {"topic": "x", "allow": ["READ"]}),
    )
    elsewhere = (
        acl(
            "changed",
            "User:c",
            {"topic": "x", "allow": ["READ"], "deny": ["DELETE"]},
            produce=["z*"],
            unmanagedBindings="remove",
        ),
    )
    undone_elsewhere = (replace(before[0], spec={**before[0].spec, "unmanagedBindings": "remove"}),)


def reassignment(name: str, *wanted: tuple[str, int, Sequence[int]], **more: Json) -> Declared:
    partitions: list[Json] = [
        {"topic": topic, "partition": n, "replicas": list(replicas)} for topic, n, replicas in wanted
    ]
    return Declared("Reassignment", name, {"partitions": partitions, **more})


PACE: Mapping[str, Json] = {"throttle": "10MB/s", "batchSize": 1}


class TestReassignments(KafkaContract):
    """Replicas of existing topics. All changes are updates, because a reassignment owns nothing.

    There is nothing to import, because a reassignment describes a transition. No part of it is secret.
    """

    provider = select_kinds("Reassignment")
    actions = frozenset({Action.UPDATE})
    before: ClassVar[Sequence[Declared]] = (
        reassignment("swap", ("t", 0, [2, 1])),
        reassignment("move", ("u", 0, [1, 2]), ("u", 1, [2, 3])),
    )
    after: ClassVar[Sequence[Declared]] = (
        reassignment("swap", ("t", 0, [1, 2])),
        reassignment("move", ("u", 0, [2, 3]), ("u", 1, [3, 1])),
        reassignment("more", ("t", 1, [3, 1])),
    )
    elsewhere = (reassignment("move", ("u", 0, [3, 1])), reassignment("swap", ("t", 0, [3, 2])))

    def make_system(self, folder: Path) -> object:
        cluster = MemoryCluster()
        topics = {"t": [(1, 2), (2, 3)], "u": [(3, 2), (1, 2)]}
        made = [NewTopic(name, None, None, dict(enumerate(found)), {}) for name, found in topics.items()]
        assert all(isinstance(made, CreatedObject) for made in cluster.create_topics(made).values())
        return cluster


class TestSlowReassignments(TestReassignments):
    """The same with slow copies: in batches, under a throttle that is removed again."""

    before = tuple(replace(item, spec={**item.spec, **PACE}) for item in TestReassignments.before)
    after = tuple(replace(item, spec={**item.spec, **PACE}) for item in TestReassignments.after)

    def make_system(self, folder: Path) -> object:
        cluster = super().make_system(folder)
        assert isinstance(cluster, MemoryCluster)
        cluster.move_ticks = 3
        return cluster
