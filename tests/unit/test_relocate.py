"""The operation that moves replicas between log directories, without brokers."""

from dataclasses import replace

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import ClusterInfo, KafkaState, ReplicaDirs
from kdeclare.providers.kafka.reassignment.operations.arguments import RelocateArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import (
    RelocateReplicas,
    format_replica,
    parse_replica,
)
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.engine.world import Secrets

VERB = RelocateReplicas()
AT = TopicPartition("a-b", 0)


def make_operation(**replicas: str) -> Operation:
    """Build an operation to these directories; ``b1`` is the replica on broker 1."""
    args = RelocateArgs({f"{AT}@{key[1:]}": path for key, path in replicas.items()})
    return Operation("it", VERB.name, ResourceId("Reassignment", "x"), args, {})


def make_live_state(**dirs: ReplicaDirs) -> LiveState:
    """Build the live state with these directories."""
    return LiveState(
        KafkaState(ClusterInfo("id", ()), dirs={(AT, int(key[1:])): found for key, found in dirs.items()})
    )


def test_replica_names_round_trip() -> None:
    assert parse_replica(format_replica((AT, 12))) == (AT, 12)


def test_moving_replica_counts_in_its_target_directory() -> None:
    op = make_operation(b1="/b", b2="/b", b3="/b")
    now = make_live_state(b1=ReplicaDirs("/a"), b2=ReplicaDirs("/a", "/b"))
    assert VERB.compute_view(op, now) == {"a-b-0@1": "/a", "a-b-0@2": "/b", "a-b-0@3": None}
    planned = replace(op, expect=VERB.compute_view(op, now))
    assert VERB.expected_state(planned) == dict.fromkeys(planned.expect, "/b")
    assert [f.path for f in VERB.fields(planned)] == ["log_dir.a-b-0@1", "log_dir.a-b-0@3"]
    assert VERB.select(op) == (KafkaSelection(log_dirs=frozenset({"a-b"})),)


def test_undo_skips_replicas_moved_by_others_and_new_replicas() -> None:
    op = make_operation(b1="/b", b2="/b", b3="/b", b4="/b")
    before = make_live_state(b1=ReplicaDirs("/a"), b2=ReplicaDirs("/a"), b4=ReplicaDirs("/a"))
    planned = replace(op, expect=VERB.compute_view(op, before))
    now = VERB.compute_view(
        op, make_live_state(b1=ReplicaDirs("/b"), b2=ReplicaDirs("/c"), b3=ReplicaDirs("/b"))
    )
    undo = VERB.invert(planned, now, allow_data_loss=False)
    assert (undo.args, undo.conflicts) == (RelocateArgs({"a-b-0@1": "/a"}), ("a-b-0@2",))
    assert VERB.invert(planned, planned.expect, allow_data_loss=False).args is None


def test_relocate_accepts_missing_replica_but_not_missing_directory() -> None:
    cluster = MemoryCluster({1: None, 2: None})
    cluster.create_topics([NewTopic(AT.topic, None, None, {0: (1,)}, {})])
    good, bad = make_operation(b1="/memory", b2="/memory"), replace(make_operation(b1="/nope"), id="other")
    assert VERB.execute(connections_to(cluster), [good], Secrets(), validate_only=False) == {"it": None}
    fault = VERB.execute(connections_to(cluster), [bad], Secrets(), validate_only=False)["other"]
    assert isinstance(fault, Fault)
    assert (fault.error, fault.message) == ("LOG_DIR_NOT_FOUND", "a-b-0@1")
