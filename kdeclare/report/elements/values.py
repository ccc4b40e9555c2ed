"""Format values as text, with units for large numbers and escapes for control characters."""

import json
from functools import lru_cache

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, is_secret
from kdeclare.core.units import SIZES, TIMES, format_in_units
from kdeclare.core.units import format_count as format_count
from kdeclare.core.units import format_duration as format_duration
from kdeclare.core.units import format_size as format_size
from kdeclare.core.units import join_nonempty as join_nonempty

UNSET = "(unset)"
_UNLIMITED_VALUE = 2**63 - 1
_UNLIMITED_KEYS = {"retention.ms", "retention.bytes", "log.retention.ms", "log.retention.bytes"}
_RATE_SUFFIXES = ("throttled.rate", ".bytes.per.second", "byte_rate")
_FOLLOWS_RETENTION_KEYS = {"local.retention.ms", "local.retention.bytes"}


def sanitize_for_terminal(text: str) -> str:
    """Replace control characters with visible escapes. Untrusted text can contain control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def format_value(value: JsonValue, path: str = "") -> str:
    """Format the value of a field as text.

    path: the path of the field. The path determines the unit.
    """
    if value is None:
        return UNSET
    if isinstance(value, str):
        return _format_text(value, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(format_value(item) for item in value)}]"
    if is_secret(value):
        return SENSITIVE_MASK
    if isinstance(value, dict):
        return _format_object(value)
    return str(value) + _format_unit_note(path, str(value))


def strip_configs_prefix(path: str) -> str:
    """Return the path of a field without ``configs.``. For a Kafka config, this is the config key."""
    return path.removeprefix("configs.")


def truncate(text: str, max_length: int) -> str:
    """Truncate text to ``max_length`` characters, including the ``…`` at the end of truncated text."""
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def _format_object(value: dict[str, JsonValue]) -> str:
    """Format an object as ``iterations 8192, password (sensitive)``, or as JSON if it is nested or empty."""
    if not value or any(isinstance(item, dict | list) and not is_secret(item) for item in value.values()):
        return sanitize_for_terminal(json.dumps(value, ensure_ascii=False))
    return ", ".join(
        f"{sanitize_for_terminal(key)} {_format_item(item)}" for key, item in sorted(value.items())
    )


def _format_item(item: JsonValue) -> str:
    """Format a value in an object. Text that could be mistaken for several items is quoted."""
    is_ambiguous = isinstance(item, str) and ("," in item or '"' in item)
    return sanitize_for_terminal(json.dumps(item, ensure_ascii=False)) if is_ambiguous else format_value(item)


def _format_text(value: str, path: str) -> str:
    if not value or value != value.strip():
        return json.dumps(value, ensure_ascii=False)
    return sanitize_for_terminal(value) + _format_unit_note(path, value)


@lru_cache(maxsize=4096)  # thousands of topics have the same few values
def _format_unit_note(path: str, value: str) -> str:
    key = strip_configs_prefix(path)
    if not key.endswith((".ms", ".bytes", *_RATE_SUFFIXES)) or not value.lstrip("-").isascii():
        return ""
    try:
        number = int(value)
    except ValueError:
        return ""
    if number == _UNLIMITED_VALUE or (number == -1 and key in _UNLIMITED_KEYS):
        return " (no limit)"
    if number == -2 and key in _FOLLOWS_RETENTION_KEYS:
        return " (as retention)"
    if key.endswith(".ms"):
        amount = format_in_units(number, TIMES)
    else:
        amount = format_in_units(number, SIZES)
        if amount and not key.endswith(".bytes"):
            amount = f"{amount}/s"
    return f" ({amount})" if amount else ""
