"""The bounds of the impact hold for random logs, compared with a model of Kafka's segments and retention."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.observation import Observation
from kdeclare.engine.planning.request import PlanScope
from kdeclare.policy.interface import RequestMetadata
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition
from tests.engine.test_policies import make_policy
from tests.engine.world import World, topic

RECORD_BYTES = 1000
"""The size of each record in the in-memory cluster."""
HOUR = 3_600_000
SEGMENT_BYTES = 1024 * 1024
"""The smallest segments that Kafka allows."""


@dataclass(frozen=True)
class RandomLog:
    """A log with one partition, and the limits that a plan gives it.

    ages: of the records in milliseconds, in the order of their offsets. committed: the offset that a group
        reads next; None if it has not read anything yet.
    """

    ages: Sequence[int]
    segment_ms: int
    policy: str
    retention_ms: int
    retention_bytes: int
    committed: int | None

    def count_deleted(self) -> int:
        """Return how many records Kafka deletes (`UnifiedLog.deleteOldSegments`)."""
        if "delete" not in self.policy:
            return 0
        segments = self._split_into_segments()
        excess = len(self.ages) * RECORD_BYTES - self.retention_bytes
        # first the size limit, then the time limit on the rest
        while self.retention_bytes >= 0 and segments and excess >= len(segments[0]) * RECORD_BYTES:
            excess -= len(segments.pop(0)) * RECORD_BYTES
        while self.retention_ms >= 0 and segments and min(segments[0]) > self.retention_ms:
            segments.pop(0)
        return len(self.ages) - sum(map(len, segments))

    def _split_into_segments(self) -> list[list[int]]:
        """Return the ages of the records of each segment, by the rules of `LogSegment.shouldRoll`."""
        segments: list[list[int]] = []
        for age in self.ages:
            current = segments[-1] if segments else []
            is_full = (len(current) + 1) * RECORD_BYTES > SEGMENT_BYTES
            if not current or is_full or current[0] - age > self.segment_ms:
                segments.append(current := [])
            current.append(age)
        return segments


@st.composite
def draw_log(draw: st.DrawFn) -> RandomLog:
    """Draw a log whose records are mostly, but not always, in the order of their timestamps."""
    count = draw(st.one_of(st.integers(0, 50), st.integers(1000, 4000)))
    chance = random.Random(draw(st.integers(0, 2**32)))
    span = draw(st.sampled_from([HOUR, 30 * HOUR, 1000 * HOUR]))
    ages = sorted((chance.randrange(span) for _ in range(count)), reverse=True)
    for _ in range(draw(st.integers(0, 20)) if count else 0):
        ages[chance.randrange(count)] = chance.randrange(span)
    # No record is so near to a limit that it passes the limit during the test.
    ages = [age // 60_000 * 60_000 + 30_000 for age in ages]
    committed = draw(st.one_of(st.none(), st.integers(0, 2 * count)))
    return RandomLog(
        ages,
        segment_ms=draw(st.sampled_from([HOUR, 10 * HOUR, 168 * HOUR])),
        policy=draw(st.sampled_from(["delete", "delete", "compact,delete"])),
        retention_ms=draw(st.sampled_from([-1, 0, HOUR, 20 * HOUR, 500 * HOUR])),
        retention_bytes=draw(st.sampled_from([-1, 0, 10_000, 1_500_000, 10_000_000])),
        committed=committed,
    )


def find_figures(observations: Sequence[Observation], code: str) -> dict[str, JsonValue]:
    """Return the figures of the first observation with a code; empty if there is none."""
    return next((dict(item.figures) for item in observations if item.code == code), {})


@pytest.mark.slow
@settings(max_examples=200)
@given(log=draw_log())
def test_deleted_and_unread_records_are_within_the_bounds(log: RandomLog) -> None:
    world, where = World(), TopicPartition("t", 0)
    unlimited = {"retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": str(SEGMENT_BYTES)}
    before = {**unlimited, "segment.ms": str(log.segment_ms), "cleanup.policy": ["delete"]}
    world.apply(topic("t", partitions=1, configs=before))
    now_ms = int(time.time() * 1000)
    world.cluster.produce("t", len(log.ages))
    world.cluster.set_log(where, times=[now_ms - age for age in log.ages])
    if log.committed is not None:
        world.cluster.groups.alter_offsets({"readers": {where: CommittedOffset(log.committed)}})
    after = before | {
        "cleanup.policy": log.policy.split(","),
        "retention.ms": str(log.retention_ms),
        "retention.bytes": str(log.retention_bytes),
    }
    facts: list[tuple[int, int, int]] = []

    def read_facts(request: RequestMetadata) -> None:
        impact = request.impact
        facts.append((impact.deleted_records, impact.deleted_bytes, impact.unread_records))

    world.policies = (make_policy(read_facts),)
    plan = world.plan(topic("t", partitions=1, configs=after), scope=PlanScope(impact=True))
    deleted = log.count_deleted()
    is_valid = log.committed is not None and log.committed <= len(log.ages)
    unread = max(0, deleted - (log.committed or 0)) if is_valid else deleted
    for most_deleted, most_bytes, most_unread in facts:  # none without a change
        assert deleted <= most_deleted
        assert deleted * RECORD_BYTES <= most_bytes
        assert unread <= most_unread or log.committed is None
    records = find_figures(plan.observations, "deletable-records")
    if not records:  # only if no change can lose records
        assert deleted == 0
        return
    is_compacted = "compact" in log.policy  # compaction can delete all records, which the figures do not say
    count = len(log.ages) if is_compacted else records["records_at_most"]
    size = len(log.ages) * RECORD_BYTES if is_compacted else records["bytes_at_most"]
    assert [fact[:2] for fact in facts] == [(count, size)]
    assert records["records_total"] == len(log.ages)
    assert records["records_at_least"] <= deleted <= records["records_at_most"]  # type: ignore[operator]
    assert records["bytes_at_least"] <= deleted * RECORD_BYTES <= records["bytes_at_most"]  # type: ignore[operator]
    assert records["bytes_at_least"] <= records["bytes_about"] <= records["bytes_at_most"]  # type: ignore[operator]
    if log.committed is not None:
        readers = find_figures(plan.observations, "unread-records")
        most = readers.get("unread_at_most", 0)
        assert readers.get("unread_at_least", 0) <= unread <= most  # type: ignore[operator]
        assert is_compacted or facts[0][2] == most
