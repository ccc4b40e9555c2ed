"""Amounts with a unit where Kafka takes a bare number."""

import pytest

from kdeclare.core.units import parse_amount, parse_size
from kdeclare.core.whole_number import parse_whole_number


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
        ("retention.ms", "9" * 5000 + "d", None),  # int() refuses so many digits
    ],
)
def test_parse_amount_returns_number(key: str, text: str, number: int | None) -> None:
    assert parse_amount(key, text) == number


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10B", 10),
        ("10MB", 10_000_000),
        ("10 MiB", 10 * 2**20),
        ("1.5kB", 1500),
        ("0.5GiB", 2**29),
        ("9007199254740993KB", 9_007_199_254_740_993_000),
        ("3TB", 3 * 10**12),
        (" 2 tiB ", 2**41),
        ("0.3kB", 300),
        ("9" * 5000 + "MB", None),
        ("10", None),
        ("10M", None),
        ("10iB", None),
        ("10MBit", None),
        ("-1MB", None),
        ("1,5MB", None),
        ("", None),
    ],
)
def test_parse_size_returns_bytes(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 30, 10**30 - 1),
        ("9" * 31, None),
        ("9" * 5000, None),
        ("", None),
        ("-1", None),
        ("1_000", None),
        ("١", None),
    ],
)
def test_parse_whole_number_accepts_only_ascii_digits(text: str, number: int | None) -> None:
    assert parse_whole_number(text) == number
