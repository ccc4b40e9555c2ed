"""The operation that moves replicas between log directories, without brokers."""

from dataclasses import replace

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import ClusterInfo, KafkaState, ReplicaDirs
from kdeclare.providers.kafka.port import NewTopic
from kdeclare.providers.kafka.reassignment.operations.arguments import RelocateArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import (
    RelocateReplicas,
    format_replica,
    parse_replica,
)
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.engine.world import Secrets

VERB = RelocateReplicas()
AT = TopicPartition("a-b", 0)


def operation(**replicas: str) -> Operation:
    """Build an operation to these directories; ``b1`` is the replica on broker 1."""
    args = RelocateArgs({f"{AT}@{key[1:]}": path for key, path in replicas.items()})
    return Operation("it", VERB.name, ResourceId("Reassignment", "x"), args, {})


def live(**dirs: ReplicaDirs) -> LiveState:
    """Build the live state with these directories."""
    return LiveState(
        KafkaState(ClusterInfo("id", ()), dirs={(AT, int(key[1:])): found for key, found in dirs.items()})
    )


def test_names_of_replicas() -> None:
    assert parse_replica(format_replica((AT, 12))) == (AT, 12)


def test_a_replica_counts_where_it_is_heading() -> None:
    op = operation(b1="/b", b2="/b", b3="/b")
    now = live(b1=ReplicaDirs("/a"), b2=ReplicaDirs("/a", "/b"))
    assert VERB.compute_view(op, now) == {"a-b-0@1": "/a", "a-b-0@2": "/b", "a-b-0@3": None}
    planned = replace(op, expect=VERB.compute_view(op, now))
    assert VERB.expected_state(planned) == dict.fromkeys(planned.expect, "/b")
    assert [f.path for f in VERB.fields(planned)] == ["log_dir.a-b-0@1", "log_dir.a-b-0@3"]
    assert VERB.select(op) == (KafkaSelection(log_dirs=frozenset({"a-b"})),)


def test_undoing_leaves_alone_what_others_moved_and_what_was_not_there() -> None:
    op = operation(b1="/b", b2="/b", b3="/b", b4="/b")
    before = live(b1=ReplicaDirs("/a"), b2=ReplicaDirs("/a"), b4=ReplicaDirs("/a"))
    planned = replace(op, expect=VERB.compute_view(op, before))
    now = VERB.compute_view(op, live(b1=ReplicaDirs("/b"), b2=ReplicaDirs("/c"), b3=ReplicaDirs("/b")))
    undo = VERB.invert(planned, now, allow_data_loss=False)
    assert (undo.args, undo.conflicts) == (RelocateArgs({"a-b-0@1": "/a"}), ("a-b-0@2",))
    assert VERB.invert(planned, planned.expect, allow_data_loss=False).args is None


def test_a_replica_to_come_is_no_failure_and_a_directory_that_is_not_there_is() -> None:
    cluster = MemoryCluster({1: None, 2: None})
    cluster.create_topics([NewTopic(AT.topic, None, None, {0: (1,)}, {})])
    good, bad = operation(b1="/memory", b2="/memory"), replace(operation(b1="/nope"), id="other")
    assert VERB.execute(connections_to(cluster), [good], Secrets(), validate_only=False) == {"it": None}
    fault = VERB.execute(connections_to(cluster), [bad], Secrets(), validate_only=False)["other"]
    assert isinstance(fault, Fault)
    assert (fault.error, fault.message) == ("LOG_DIR_NOT_FOUND", "a-b-0@1")
