"""The partition model compared with results of Kafka's classes (memory_data/PartitionChanges.java)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kdeclare.providers.kafka.testing.partitions import (
    PartitionState,
    cancel_move,
    catch_up,
    start_reassignment,
)

ROWS = (Path(__file__).parent / "memory_data" / "partition_changes.jsonl").read_text().splitlines()


def parse_state(row: dict[str, Any]) -> PartitionState:
    """Parse a partition as Kafka printed it; leader -1 means none."""
    return PartitionState(
        tuple(row["replicas"]),
        tuple(row["isr"]),
        row["leader"] if row["leader"] >= 0 else None,
        tuple(row["adding"]),
        tuple(row["removing"]),
    )


@pytest.mark.parametrize("op", ["reassign", "cancel", "catch_up"])
def test_partition_changes_equal_kafka(op: str) -> None:
    rows = [row for row in map(json.loads, ROWS) if row["op"] == op]
    assert len(rows) >= 40
    for row in rows:
        before, active = parse_state(row["before"]), frozenset(row["active"])
        if op == "reassign":
            after = start_reassignment(before, tuple(row["target"]), active)
        else:
            after = (cancel_move if op == "cancel" else catch_up)(before, active)
        assert after == parse_state(row["after"]), row
