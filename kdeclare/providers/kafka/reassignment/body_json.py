"""Declared replicas, or a rule for topics, as plain data."""

from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_arguments import dump_arguments
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.placing import Strategy
from kdeclare.providers.kafka.reassignment.spec import ReassignmentBody, Target


def reassignment_json(body: ReassignmentBody) -> Json:
    """See `core.kind.Kind.to_json`."""
    return {
        "partitions": [
            {
                "topic": target.partition.topic,
                "partition": target.partition.partition,
                "replicas": list(target.replicas),
                "expectedReplicas": None if target.expected is None else list(target.expected),
            }
            for target in body.targets
        ],
        "allowReplicationFactorChange": body.allow_replication_factor_change,
        "topics": list(body.topics),
        "drain": sorted(body.drain),
        "targetBrokers": sorted(body.target_brokers),
        "rebalance": body.rebalance,
        "strategy": None if body.strategy is None else str(body.strategy),
        "racks": list(body.racks),
        "pace": dump_arguments(body.pace),
    }


def reassignment_from(json: Json) -> ReassignmentBody:
    """See `core.kind.Kind.from_json`."""
    return ReassignmentBody(
        targets=tuple(_target(item) for item in json["partitions"]),
        allow_replication_factor_change=json["allowReplicationFactorChange"],
        topics=tuple(json["topics"]),
        drain=frozenset(json["drain"]),
        target_brokers=frozenset(json["targetBrokers"]),
        rebalance=json["rebalance"],
        strategy=None if json["strategy"] is None else Strategy(json["strategy"]),
        racks=tuple(json["racks"]),
        pace=Pace(**json["pace"]),
    )


def _target(item: Json) -> Target:
    expected = item["expectedReplicas"]
    return Target(
        TopicPartition(item["topic"], item["partition"]),
        tuple(item["replicas"]),
        None if expected is None else tuple(expected),
    )
