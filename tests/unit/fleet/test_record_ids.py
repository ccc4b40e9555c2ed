"""The ids of snapshots and audits."""

from datetime import UTC, datetime, timedelta

import pytest

from kdeclare.fleet.tables.record_ids import find_earlier_id, make_record_id

IDS = ("20261101T040000Z-aaaa", "20261110T040000Z-bbbb", "20261120T040000Z-cccc", "20261121T040000Z-dddd")


def test_ids_sort_by_time() -> None:
    moments = [datetime(2026, 11, 21, 4, tzinfo=UTC) + timedelta(milliseconds=7 * n) for n in range(300)]
    ids = [make_record_id(moment) for moment in moments]
    assert ids == sorted(set(ids))
    assert ids[0] == "20261121T040000Z-0000"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IDS[0], IDS[0]),
        ("1d", IDS[2]),
        ("7d", IDS[1]),
        ("2026-11-10", IDS[0]),
        ("2026-11-11", IDS[1]),
        ("2026-11-20T06:00:00+02:00", IDS[2]),
    ],
)
def test_baseline_covers_the_whole_period(text: str, expected: str) -> None:
    assert find_earlier_id(text, IDS, IDS[-1], "audit") == expected


@pytest.mark.parametrize(
    ("text", "shown", "reason"),
    [
        ("90d", IDS[-1], f"No audit is that old. The oldest one is {IDS[0]}."),
        ("1d", IDS[0], f"There is no audit before {IDS[0]}."),
        (IDS[2], IDS[1], f"The audit {IDS[2]} is not older than {IDS[1]}."),
        ("yesterday", IDS[-1], "There is no audit 'yesterday'."),
    ],
)
def test_unknown_baseline_is_explained(text: str, shown: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        find_earlier_id(text, IDS, shown, "audit")
