"""New offsets of groups: each target of a reset, offsets outside the log, times, durations and files."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.consumer_group.arguments import LogRange, OffsetChange
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.consumer_group.reset import (
    LogOffsets,
    Reset,
    ResetResult,
    ResetTarget,
    compute_reset,
)
from kdeclare.providers.kafka.consumer_group.reset_values import (
    parse_duration_ms,
    parse_offsets_file,
    parse_time_ms,
    render_offsets_file,
)
from kdeclare.providers.kafka.ids import TopicPartition

READ, UNREAD, EXPIRED, AHEAD = (TopicPartition("orders", number) for number in range(4))
COMMITTED = {READ: CommittedOffset(40, 2, "m"), EXPIRED: CommittedOffset(3), AHEAD: CommittedOffset(120)}
RANGE = LogRange(10, 100)
FILE = {"": {READ: 11, UNREAD: 5, EXPIRED: 100, AHEAD: 101}}


def reset(target: ResetTarget, number: int = 0, at_time: int | None = None) -> ResetResult:
    logs = {where: LogOffsets(RANGE, at_time) for where in (READ, UNREAD, EXPIRED, AHEAD)}
    return compute_reset("billing", Reset(target, number, FILE), logs, COMMITTED, logs)


@pytest.mark.parametrize(
    ("target", "number", "expected"),
    [
        (ResetTarget.EARLIEST, 0, (10, 10, 10, 10)),
        (ResetTarget.LATEST, 0, (100, 100, 100, 100)),
        (ResetTarget.CURRENT, 0, (40, 100, 3, 120)),
        (ResetTarget.OFFSET, 50, (50, 50, 50, 50)),
        (ResetTarget.OFFSET, 0, (10, 10, 10, 10)),
        (ResetTarget.OFFSET, 1000, (100, 100, 100, 100)),
        (ResetTarget.FILE, 0, (11, 10, 100, 100)),
        (ResetTarget.DATETIME, 1, (100, 100, 100, 100)),
    ],
)
def test_target_determines_offsets(target: ResetTarget, number: int, expected: tuple[int, ...]) -> None:
    result = reset(target, number)
    assert tuple(result.offsets[where] for where in (READ, UNREAD, EXPIRED, AHEAD)) == expected


def test_only_different_offsets_are_changes_and_the_earlier_offset_is_recorded() -> None:
    assert reset(ResetTarget.CURRENT).changes == {UNREAD: OffsetChange(CommittedOffset(100), None, RANGE)}
    assert reset(ResetTarget.OFFSET, 40).changes.keys() == {UNREAD, EXPIRED, AHEAD}
    assert reset(ResetTarget.LATEST).changes[READ].before == CommittedOffset(40, 2, "m")


def test_time_uses_offset_at_time_or_the_end_of_the_log_with_a_warning() -> None:
    assert set(reset(ResetTarget.DURATION, 5, at_time=77).offsets.values()) == {77}
    assert reset(ResetTarget.DURATION, 5, at_time=77).diagnostics == ()
    diagnostics = reset(ResetTarget.DATETIME, 1500).diagnostics
    assert {d.code for d in diagnostics} == {"no-record-at-time"}
    assert diagnostics[0].detail == (
        "orders-0 has no record with a timestamp of 1970-01-01T00:00:01.500Z or later. "
        "kdeclare uses offset 100, the end of the log."
    )


def test_shift_needs_committed_offset_and_stays_in_the_log() -> None:
    result = reset(ResetTarget.SHIFT, -35)
    assert result.offsets == {READ: 10, EXPIRED: 10, AHEAD: 85}
    assert [(d.code, d.subject) for d in result.diagnostics] == [
        ("offset-outside-log", "orders-0"),
        ("no-committed-offset", "orders-1"),
        ("offset-outside-log", "orders-2"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [(40, 60, 20), (60, 40, -20), (3, 20, 10), (120, 90, -10), (0, 10, 0), (None, 5, None), (5, None, None)],
)
def test_skipped_records_are_counted_inside_the_log(
    before: int | None, after: int | None, count: int | None
) -> None:
    old, new = (None if n is None else CommittedOffset(n) for n in (before, after))
    assert OffsetChange(new, old, RANGE).count_skipped() == count
    back = OffsetChange(new, old, RANGE).invert().count_skipped()
    assert back == (None if count is None else -count)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000+01", 0),
        ("1970-01-01T01:00:00.000+0100", 0),
        ("2026-11-28T04:00:00.123Z", 1795838400123),
    ],
)
def test_time_is_utc_unless_it_has_a_zone(text: str, expected: int) -> None:
    assert parse_time_ms(text) == expected


@pytest.mark.parametrize("text", ["2026-11-28", "yesterday", "2026-13-01T00:00:00.000", "T", ""])
def test_bad_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time of the form"):
        parse_time_ms(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT15M", 900),
        ("P2D", 172800),
        ("P2DT3H4M", 183840),
        ("PT20.345S", 20.345),
        ("pt8h6m12.5s", 29172.5),
        ("P-1D", -86400),
        ("-PT1H30M", -5400),
        ("PT-6H3M", -21420),
        ("PT0S", 0),
    ],
)
def test_duration_has_the_form_of_java(text: str, seconds: float) -> None:
    assert parse_duration_ms(text) == round(seconds * 1000)


@pytest.mark.parametrize("text", ["P", "PT", "1D", "P1H", "PT1D", "P1M", "PT1.5H", "", "P1DT"])
def test_bad_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration_ms(text)


def test_file_has_three_or_four_columns() -> None:
    text = 'orders,0,5\n\n"mail",orders,1, 7\n'
    assert parse_offsets_file(text, "f.csv") == {"": {READ: 5}, "mail": {UNREAD: 7}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f.csv:1:1 The file has no lines."),
        ("orders,0\n", "f.csv:1:1 The line has 2 columns, not 3 or 4."),
        ("orders,0,1\norders,x,1\n", "f.csv:2:1 The partition 'x' is not a number."),
        ("orders,0,-1\n", "f.csv:1:1 The offset '-1' is not a number."),
        (",0,1\n", "f.csv:1:1 The topic is empty."),
        ("orders,0,1\norders,0,2\n", "f.csv:2:1 orders-0 occurs more than once."),
    ],
)
def test_bad_file_is_refused_with_position(text: str, problem: str) -> None:
    with pytest.raises(KdeclareError) as caught:
        parse_offsets_file(text, "f.csv")
    assert [f"{d.place} {d.detail}" for d in caught.value.diagnostics] == [problem]


NAMES = st.text("abc,\" '\n#é", min_size=1, max_size=5).filter(lambda name: name == name.strip())
PARTITIONS = st.builds(TopicPartition, st.from_regex(r"[a-z.-]{1,5}", fullmatch=True), st.integers(0, 9))


@given(st.dictionaries(NAMES, st.dictionaries(PARTITIONS, st.integers(0, 2**63 - 1), min_size=1), min_size=1))
def test_rendered_file_is_parsed_again(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    parsed = parse_offsets_file(render_offsets_file(offsets), "f.csv")
    assert parsed == (offsets if len(offsets) > 1 else {"": next(iter(offsets.values()))})


@pytest.mark.parametrize("text", ["P9999999999D", "PT" + "9" * 400 + "S"])
def test_duration_that_is_too_long_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is too long"):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    "line",
    [f"orders,0,{'9' * 5000}", f"orders,{'1' * 5000},5", "orders,0\r,5", f"{'x' * 200_000},0,5"],
    ids=["offset", "partition", "line break", "long field"],
)
def test_unusual_line_of_offsets_file_is_reported_with_its_position(line: str) -> None:
    with pytest.raises(KdeclareError) as caught:
        parse_offsets_file(f"pay,0,1\n{line}\n", "f.csv")
    (problem,) = caught.value.diagnostics
    assert problem.code == "bad-offsets-file"
    assert problem.place is not None
    assert problem.place.line == 2
