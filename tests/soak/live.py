"""Read the cluster with kafka-python, independently of kdeclare."""

from dataclasses import dataclass, field
from typing import Any

from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.protocol.admin import DescribeClientQuotasRequest

from tests.soak.cluster import BROKERS
from tests.soak.desired import Binding

_DYNAMIC = {"topic": "DYNAMIC_TOPIC_CONFIG", "broker": "DYNAMIC_BROKER_CONFIG"}


@dataclass
class LiveTopic:
    """A topic: its id, the replicas of each partition, and its overrides."""

    id: str
    replicas: dict[int, list[int]]
    configs: dict[str, str]


@dataclass
class Live:
    """The cluster at one moment. moves: partitions that are being reassigned."""

    topics: dict[str, LiveTopic] = field(default_factory=dict)
    brokers: dict[int, dict[str, str]] = field(default_factory=dict)
    quotas: dict[str, dict[str, float]] = field(default_factory=dict)
    bindings: set[Binding] = field(default_factory=set)
    moves: set[tuple[str, int]] = field(default_factory=set)


def read_live(admin: KafkaAdminClient) -> Live:
    """Read all that a soak changes."""
    described = [topic for topic in admin.describe_topics() if not topic["is_internal"]]
    names = [topic["name"] for topic in described]
    configs = _read_configs(admin, ConfigResourceType.TOPIC, names)
    brokers = _read_configs(admin, ConfigResourceType.BROKER, list(map(str, BROKERS)))
    return Live(
        {
            topic["name"]: LiveTopic(
                str(topic["topic_id"]),
                {p["partition_index"]: list(p["replica_nodes"]) for p in topic["partitions"]},
                configs[topic["name"]],
            )
            for topic in described
        },
        {int(broker): overrides for broker, overrides in brokers.items()},
        _read_quotas(admin),
        read_bindings(admin),
        {(at.topic, at.partition) for at in admin.list_partition_reassignments()},
    )


def _read_configs(
    admin: KafkaAdminClient, type_: ConfigResourceType, names: list[str]
) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    kind = type_.name.lower()
    answer = admin.describe_configs([ConfigResource(type_, name) for name in names])
    return {
        name: {
            key: entry["value"]
            for key, entry in answer.get(kind, {}).get(name, {}).items()
            if entry["config_source"] == _DYNAMIC[kind]
        }
        for name in names
    }


def _read_quotas(admin: KafkaAdminClient) -> dict[str, dict[str, float]]:
    request = DescribeClientQuotasRequest(components=[], strict=False)
    response: Any = admin._manager.run(admin._manager.send, request)
    assert response.error_code == 0, response
    return {
        entry.entity[0].entity_name: {value.key: value.value for value in entry.values}
        for entry in response.entries
    }


def read_bindings(admin: KafkaAdminClient) -> set[Binding]:
    """Read all ACL bindings for topics."""
    every = ACLFilter(
        principal=None,
        host=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
        resource_pattern=ResourcePatternFilter(ResourceType.TOPIC, None, ACLResourcePatternType.ANY),
    )
    acls, _ = admin.describe_acls(every)
    return {
        (
            acl.principal,
            acl.resource_pattern.pattern_type.name,
            acl.resource_pattern.resource_name,
            acl.operation.name,
        )
        for acl in acls
    }
