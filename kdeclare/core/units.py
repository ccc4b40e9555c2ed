"""Amounts with units, durations and counts, for files and messages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

TIMES = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
"""The length of each unit of time in milliseconds, the largest unit first."""
SIZES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
"""The size of each unit in bytes, the largest unit first."""

_LARGEST_FLOAT = 2**1023
"""A limit for integers: converting an integer up to this value to a float never raises OverflowError."""

_AMOUNT = re.compile(r"([0-9]{1,30}) ?([A-Za-z]+)")
_MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SIZE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(?:([kmgtKMGT])(i?))?B")
_SIZE_PREFIXES = " kmgt"
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def parse_amount(key: str, text: str) -> int | None:
    """Convert a string such as ``7d`` to milliseconds or bytes, depending on the config key.

    Return None if the string is not an amount, or if the config is neither a time nor a size.
    """
    units = _find_units(key)
    amount = _AMOUNT.fullmatch(text.strip())
    return int(amount[1]) * units[amount[2]] if amount and amount[2] in units else None


def list_amount_units(key: str) -> tuple[str, ...]:
    """Return the units of amounts for a config key; none if the config is neither a time nor a size."""
    return tuple(_find_units(key))


def _find_units(key: str) -> Mapping[str, int]:
    if key.endswith(".ms"):
        return _MILLISECONDS
    return _BYTES if key.endswith("bytes") else {}


def parse_size(text: str) -> int | None:
    """Convert a string such as ``50MiB`` or ``1.5 GB`` to bytes. Return None if the string is not a size.

    Units with an ``i`` are powers of 1,024, and units without it are powers of 1,000.
    """
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        return None
    number, prefix, binary = size.groups()
    exponent = _SIZE_PREFIXES.index(prefix.lower()) if prefix else 0
    factor = int((1024 if binary else 1000) ** exponent)
    whole, _, decimals = number.partition(".")
    return int(whole + decimals) * factor // int(10 ** len(decimals))


def format_amount(key: str, number: int) -> str:
    """Format a config value in milliseconds or bytes with the most suitable unit: ``7 d``, ``1 GiB``."""
    if key.endswith(".ms"):
        return format_in_units(number, TIMES) or f"{number} ms"
    return format_in_units(number, SIZES) or f"{number} bytes"


def format_in_units(number: int, units: tuple[tuple[str, int], ...]) -> str:
    """Format a number in the largest unit that does not exceed the number.

    Return an empty string if all units are larger than the number.
    """
    for index, (unit, unit_size) in enumerate(units):
        if number < unit_size:
            continue
        quotient, remainder = divmod(number, unit_size)
        if remainder == 0:
            return f"{quotient:,} {unit}"
        if index + 1 < len(units):  # write 1 d 12 h instead of 1.5 d
            smaller_unit, smaller_size = units[index + 1]
            if remainder % smaller_size == 0 and units is TIMES:
                return f"{quotient:,} {unit} {remainder // smaller_size} {smaller_unit}"
        if number > _LARGEST_FLOAT:
            return f"≈ {quotient:,} {unit}"
        return f"≈ {number / unit_size:,.1f} {unit}".replace(".0 ", " ")
    return ""


def format_count(count: int, singular: str, plural_form: str = "") -> str:
    """Return a count with its noun: ``1 topic``, ``2 topics``."""
    return f"{count:,} {singular if count == 1 else plural_form or singular + 's'}"


def format_names(names: Sequence[str]) -> str:
    """Return the first five names, and the number of the remaining names: ``a, b, c, d, e and 3 more``."""
    omitted_count = len(names) - 5
    return f"{', '.join(names[:5])}{f' and {omitted_count:,} more' if omitted_count > 0 else ''}"


def join_nonempty(parts: Iterable[str]) -> str:
    """Join the nonempty parts of a sentence with commas."""
    return ", ".join(part for part in parts if part)


def format_duration(seconds: float) -> str:
    """Return a duration as text, rounded to a useful precision."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes} min {remainder} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_size(byte_count: float) -> str:
    """Return a number of bytes as text in the most suitable unit."""
    for unit, unit_size in SIZES:
        if byte_count >= unit_size:
            return f"{byte_count / unit_size:.1f} {unit}".replace(".0 ", " ")
    return f"{byte_count:.0f} B"


_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")


def parse_duration(value: object) -> float:
    """Convert a duration such as ``1h30m`` or ``500ms`` to seconds. Raises ValueError for other values."""
    if not isinstance(value, str):
        raise ValueError("Write a duration with its unit, such as 30s, 10m or 1h30m")
    number_unit_pairs = _DURATION.findall(value)
    if not number_unit_pairs or "".join(number + unit for number, unit in number_unit_pairs) != value:
        raise ValueError(f"'{value}' is not a duration; write 30s, 10m or 1h30m")
    return sum(float(number) * _UNITS_S[unit] for number, unit in number_unit_pairs)


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    Field(le=365 * 86400),
    WithJsonSchema({"type": "string", "examples": ["30s", "1h30m"]}),
]
"""The type of a field with a duration: a string with a unit in files (``30s``), and seconds in memory."""
