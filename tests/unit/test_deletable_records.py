"""The bounds of deleted records for single logs."""

import pytest

from kdeclare.providers.kafka.impact.deletable_records import (
    NO_RECORD,
    Bounds,
    LogLimits,
    PartitionLog,
    compute_deletable_bytes,
    compute_deletable_records,
)

HOUR = 3_600_000
LOG = PartitionLog(start=10, end=70, size=1_000, first_within=NO_RECORD, first_near=NO_RECORD)


@pytest.mark.parametrize(("is_compacted", "least"), [(False, 60), (True, 0)])
def test_log_without_recent_record_may_stay_if_it_was_compacted(is_compacted: bool, least: int) -> None:
    """Brokers also answer NO_RECORD if compaction removed all records of a segment with recent ones."""
    limits = LogLimits(True, HOUR, None, HOUR, segment_bytes=100, is_compacted=is_compacted)
    assert compute_deletable_records(LOG, limits) == Bounds(least, 60)
    assert compute_deletable_bytes(LOG, limits) == Bounds(0 if is_compacted else 1_000, 1_000)
