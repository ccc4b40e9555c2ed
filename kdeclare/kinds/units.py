"""Amounts with a unit, as people write them where Kafka takes a bare number."""

import re

_AMOUNT = re.compile(r"([0-9]+) ?([A-Za-z]+)")
_MILLISECONDS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def as_bare_number(key: str, text: str) -> int | None:
    """The milliseconds or bytes that a text such as ``7d`` means for a key; None where it is not plain."""
    if key.endswith(".ms"):
        units = _MILLISECONDS
    elif key.endswith("bytes"):
        units = _BYTES
    else:
        return None
    amount = _AMOUNT.fullmatch(text.strip())
    return int(amount[1]) * units[amount[2]] if amount and amount[2] in units else None
