"""Words that the messages of several rules share."""

from collections.abc import Iterable

_SHOWN = 8
_LONGEST = 60


def counted(number: int, what: str) -> str:
    """A number of things: ``1 partition``, ``1,200 partitions``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def listed(items: Iterable[object], last: str = "and") -> str:
    """The first few of several: ``0, 1 and 2``, ``0, 1 … and 40 more``."""
    words = [str(item) for item in items]
    if len(words) > _SHOWN + 1:
        return f"{', '.join(words[:_SHOWN])} {last} {len(words) - _SHOWN:,} more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def partitions(numbers: Iterable[int]) -> str:
    """Partitions by their numbers, as the beginning of a sentence."""
    chosen = sorted(numbers)
    return f"Partition{'s' if len(chosen) > 1 else ''} {listed(chosen)}"


def setting(key: str, value: str) -> str:
    """A config with its value, as Kafka's tools write it."""
    return f"{key}={value if len(value) <= _LONGEST else value[: _LONGEST - 1] + '…'}"
