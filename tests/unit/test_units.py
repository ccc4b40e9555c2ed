"""Amounts with a unit where Kafka takes a bare number."""

import pytest

from kdeclare.core.units import parse_amount


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        ("retention.ms", "7d", 604_800_000),
        ("retention.ms", "90 min", 5_400_000),
        ("retention.bytes", "1GiB", 2**30),
        ("segment.bytes", "100 MB", None),  # of 1,000,000 or of 1,048,576?
        ("retention.ms", "1GiB", None),
        ("retention.ms", "1m", None),  # minutes or months?
        ("min.insync.replicas", "2d", None),
        ("retention.ms", "-1d", None),
        ("retention.ms", "a week", None),
    ],
)
def test_parse_amount_returns_number(key: str, text: str, number: int | None) -> None:
    assert parse_amount(key, text) == number
