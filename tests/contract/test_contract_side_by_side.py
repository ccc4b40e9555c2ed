"""Random requests to real brokers and the in-memory cluster have the same responses and outcome."""

import random

import pytest

from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.testing.definitions import TOPIC_KEYS
from tests.beds import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    AnyBed,
    KafkaBed,
    MemoryBed,
    all_created,
    get_error,
    topic_resource,
)

LISTS = (
    "cleanup.policy",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
)
LIST_VALUES = [
    *("delete", "compact", "delete,compact", "compact, delete", "", " ", "*", ",", "0:1", "0:1,0:2"),
    *("0:2,1:2, 2:3", "0:1,", "1:2", "x", "delete,,x", "x,", ",x"),
]
VALUES = [
    *("-2", "-1", "0", "1", "9", "10", "17", "18", "22", "23", "1048575", "1048576", "2147483647"),
    *("2147483648", "9223372036854775807", "9223372036854775808", "true", "False", "gzip", "zstd", ""),
    *(" ", "0.5", "1.01", ".5", "5.", "1e0", "1d", "1L", "Infinity", "+7", "-0", "007", "CreateTime", "x"),
]

Op = tuple[str, FieldOp, str | None]


def draw_ops(rng: random.Random) -> list[Op]:
    """One to three ops, mostly on list keys; a key can appear twice."""
    ops: list[Op] = []
    for _ in range(rng.randint(1, 3)):
        is_list = rng.random() < 0.4
        key = rng.choice(LISTS if is_list else (*sorted(TOPIC_KEYS), "no.such.key"))
        op = rng.choice((SET, SET, DELETE, APPEND, SUBTRACT))
        ops.append((key, op, None if op is DELETE else rng.choice(LIST_VALUES if is_list else VALUES)))
    return ops


@pytest.mark.parametrize("bed", [pytest.param("kafka", marks=pytest.mark.kafka)], indirect=True)
@pytest.mark.parametrize("seed", [1, 2])
def test_memory_and_kafka_agree_on_random_topic_configs(bed: AnyBed, seed: int) -> None:
    assert isinstance(bed, KafkaBed)
    memory = MemoryBed(MemoryCluster())
    rng = random.Random(seed)
    names = [bed.name() for _ in range(4)]
    new = [NewTopic(name, 1, 1, None, {}) for name in names]
    for one in (bed, memory):
        assert all_created(one.cluster.create_topics(new))
    for step in range(400):
        topic = topic_resource(rng.choice(names))
        ops = draw_ops(rng)
        real, model = bed.alter(topic, *ops), memory.alter(topic, *ops)
        # if several keys are invalid, Kafka reports any of them first
        assert get_error(real) == get_error(model), (step, ops, real, model)
        if len(ops) == 1:
            assert str(real) == str(model), (step, ops)
    for name in names:
        topic = topic_resource(name)
        expected = memory.describe(topic)

        def check(topic: ConfigResource = topic, expected: object = expected) -> None:
            assert bed.describe(topic) == expected

        bed.eventually(check)
