"""Rates and durations in manifests, and paces with some fields unset."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.units import parse_duration
from kdeclare.providers.kafka.reassignment.pace import (
    Pace,
    PaceSpec,
    build_pace,
    parse_rate,
)
from tests.jsontypes import untyped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30),
        ("10m", 600),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("500ms", 0.5),
        ("1.5h", 5400),
        ("1m30s500ms", 90.5),
        ("0s", 0),
    ],
)
def test_parse_duration_returns_seconds(text: str, expected: float) -> None:
    assert parse_duration(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    ["", "30", "s", "30 s", " 30s", "-5s", "1h-30m", "30S", "1w", "1h 30m", "1.s", ".5s", "1e3s", "30s!"],
)
def test_parse_duration_rejects_invalid_text_with_example(text: str) -> None:
    with pytest.raises(ValueError, match="write 30s, 10m or 1h30m") as caught:
        parse_duration(text)
    assert f"'{text}'" in str(caught.value)


@pytest.mark.parametrize("value", [30, 1.5, True, None, ["30s"]])
def test_parse_duration_requires_unit(value: object) -> None:
    with pytest.raises(ValueError, match="with its unit"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1),
        (52_428_800, 52_428_800),
        ("50MiB/s", 50 * 2**20),
        ("50MB/s", 50_000_000),
        ("50 MiB/s", 50 * 2**20),
        ("1.5GiB/s", 3 * 2**29),
        ("100kB/s", 100_000),
        ("100KiB/s", 102_400),
        ("7B/s", 7),
        ("1TB/s", 10**12),
    ],
)
def test_parse_rate_returns_bytes_per_second(value: object, expected: int) -> None:
    assert parse_rate(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        "50",
        "50MiB",
        "MiB/s",
        "50Mb/s",
        "50 mbit/s",
        "-1MiB/s",
        "50MiB/m",
        "1e6B/s",
        "50XiB/s",
        1.5,
        True,
        None,
    ],
)
def test_parse_rate_rejects_invalid_value_with_example(value: object) -> None:
    with pytest.raises(
        ValueError, match="write a rate such as 50MiB/s, or a number of bytes per second"
    ) as caught:
        parse_rate(value)
    assert f"'{value}'" in str(caught.value)


@pytest.mark.parametrize(
    "field",
    [
        {"throttle": 0},
        {"throttle": -1},
        {"throttle": "0B/s"},
        {"throttle": "0.4B/s"},
        {"throttle": 2**63},
        {"throttle": "9" * 30 + "TiB/s"},
        {"throttle": "9" * 400 + "TiB/s"},
        {"batchSize": 0},
        {"batchSize": -1},
        {"batchSize": 1_000_001},
        {"interBatchPause": 5},
        {"interBatchPause": "9" * 400 + "d"},
        {"timeout": "soon"},
        {"timeout": "9" * 400 + "d"},
        {"timeout": "366d"},
        {"speed": 1},
    ],
    ids=lambda field: str(field)[:30],
)
def test_pace_spec_rejects_invalid_field(field: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        PaceSpec.model_validate(field)
    assert caught.value.errors()[0]["loc"] == tuple(field)


def test_pace_spec_becomes_pace() -> None:
    said = {"throttle": "50MiB/s", "batchSize": 20, "interBatchPause": "30s", "timeout": "2h"}
    assert build_pace(PaceSpec.model_validate(said)) == Pace(50 * 2**20, 20, 30.0, 7200.0)
    assert build_pace(PaceSpec()) == Pace()


paces = st.builds(
    Pace,
    st.none() | st.integers(1, 2**63 - 1),
    st.none() | st.integers(1, 1000),
    st.none() | st.floats(0, 1e6),
    st.none() | st.floats(0, 1e6),
)


@given(paces)
def test_pace_arguments_omit_unset_fields(pace: Pace) -> None:
    said = dump_arguments(pace)
    assert Pace(**untyped(said)) == pace
    assert None not in said.values()
    assert bool(said) == bool(pace)


@given(paces, paces, paces)
def test_over_prefers_fields_of_first_pace(a: Pace, b: Pace, c: Pace) -> None:
    both = a.over(b)
    for name in ("throttle", "batch_size", "pause_s", "timeout_s"):
        mine = getattr(a, name)
        assert getattr(both, name) == (getattr(b, name) if mine is None else mine)
    assert a.over(Pace()) == Pace().over(a) == a
    assert a.over(b).over(c) == a.over(b.over(c))


@given(st.integers(0, 10**6), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_parse_duration_of_one_part(number: int, unit: str) -> None:
    scale = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}[unit]
    assert math.isclose(parse_duration(f"{number}{unit}"), number * scale)
