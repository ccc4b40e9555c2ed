"""How values read: big numbers explained, nothing that could play tricks on a terminal."""

import json
from functools import lru_cache

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.secrets.secret_refs import SHOWN, is_secret
from kdeclare.core.units import SIZES, TIMES, in_units
from kdeclare.core.units import duration as duration
from kdeclare.core.units import listed as listed
from kdeclare.core.units import plural as plural
from kdeclare.core.units import size as size

UNSET = "(unset)"
_FOREVER = 2**63 - 1
_ENDLESS = {"retention.ms", "retention.bytes", "log.retention.ms", "log.retention.bytes"}
_BYTES_PER_SECOND = ("throttled.rate", ".bytes.per.second", "byte_rate")
_LIKE_REMOTE = {"local.retention.ms", "local.retention.bytes"}


def clean(text: str) -> str:
    """The text with control characters made visible: values come from clusters and files of others."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def show(value: JsonValue, path: str = "") -> str:
    """A field's value as a person reads it; ``path`` tells its unit."""
    if value is None:
        return UNSET
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(show(item) for item in value)}]"
    if is_secret(value):
        return SHOWN
    if isinstance(value, dict):
        return clean(json.dumps(value, ensure_ascii=False))
    return str(value) + _explained(path, str(value))


def key_of(path: str) -> str:
    """A field's path without ``configs.``: Kafka's own name of the key."""
    return path.removeprefix("configs.")


def clipped(text: str, most: int) -> str:
    """Of a longer text, its first characters, ``most`` with the mark of it."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(value: str, path: str) -> str:
    if not value or value != value.strip():
        return json.dumps(value, ensure_ascii=False)
    return clean(value) + _explained(path, value)


@lru_cache(maxsize=4096)  # thousands of topics have the same few values
def _explained(path: str, value: str) -> str:
    key = key_of(path)
    if not key.endswith((".ms", ".bytes", *_BYTES_PER_SECOND)) or not value.lstrip("-").isascii():
        return ""
    try:
        number = int(value)
    except ValueError:
        return ""
    if number == _FOREVER or (number == -1 and key in _ENDLESS):
        return " (no limit)"
    if number == -2 and key in _LIKE_REMOTE:
        return " (as retention)"
    if key.endswith(".ms"):
        reading = in_units(number, TIMES)
    else:
        reading = in_units(number, SIZES)
        if reading and not key.endswith(".bytes"):
            reading = f"{reading}/s"
    return f" ({reading})" if reading else ""
