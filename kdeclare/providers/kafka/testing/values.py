"""Parsing of config values as in Kafka: types, ranges, and the form in which DescribeConfigs returns values.

The functions follow org.apache.kafka.common.config.ConfigDef (parseType, convertToString, Range,
ValidString).
"""

import math
import re
from collections.abc import Callable
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass


class ValueType(StrEnum):
    """The types of ConfigDef.Type that topic and broker keys use."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    PASSWORD = "PASSWORD"
    CLASS = "CLASS"


_RANGES = {ValueType.INT: (-(2**31), 2**31 - 1), ValueType.LONG: (-(2**63), 2**63 - 1)}
_INTEGER = re.compile(r"[+-]?\d+")
_COMMA = re.compile(r"\s*,\s*")

TypedValue = bool | int | float | str | tuple[str, ...]
ValueCheck = Callable[[TypedValue], str | tuple[str, str] | None]
"""A function that checks a value. It returns None, or the message of ConfigDef if the value is invalid.

For a list, it returns the invalid element and the message.
"""


class InvalidValueError(ValueError):
    """The error for a value of the wrong type or out of range, with the message of ConfigException."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One config key. ``default`` is the default as a string; None if Kafka's default is null.

    unique: whether repeated list elements count only once (ValidList since 4.2).
    """

    name: str
    type: ValueType
    default: str | None
    check: ValueCheck | None = None
    unique: bool = False

    @property
    def sensitive(self) -> bool:
        """Whether DescribeConfigs hides the value."""
        return self.type is ValueType.PASSWORD

    def parse(self, text: str) -> TypedValue:
        """Parse and check a value, and return it as a typed value. Raises InvalidValueError."""
        value = _parse_value(self.name, self.type, text)
        if self.unique and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        problem = self.check(value) if self.check else None
        if problem:
            displayed, reason = problem if isinstance(problem, tuple) else (_format_value(value), problem)
            raise InvalidValueError(f"Invalid value {displayed} for configuration {self.name}: {reason}")
        return value

    def normalize(self, text: str) -> str:
        """Return the stored ``text`` as DescribeConfigs returns it."""
        try:
            return to_text(self.parse(text))
        except InvalidValueError:  # the value was stored without validation, so it is returned unchanged
            return text


def _parse_value(name: str, value_type: ValueType, text: str) -> TypedValue:
    trimmed = text.strip()
    match value_type:
        case ValueType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise InvalidValueError(
                    f"Invalid value {text} for configuration {name}: "
                    "Expected value to be either true or false"
                )
            return trimmed.lower() == "true"
        case ValueType.INT | ValueType.LONG:
            low, high = _RANGES[value_type]
            if not _INTEGER.fullmatch(trimmed) or not low <= int(trimmed) <= high:
                raise _build_not_a_number_error(name, value_type, text)
            return int(trimmed)
        case ValueType.DOUBLE:
            try:
                return float(trimmed.rstrip("dDfF") or "x")
            except ValueError:
                raise _build_not_a_number_error(name, value_type, text) from None
        case ValueType.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        case ValueType.PASSWORD:
            return text
        case _:
            return trimmed


def _build_not_a_number_error(name: str, value_type: ValueType, text: str) -> InvalidValueError:
    return InvalidValueError(
        f"Invalid value {text} for configuration {name}: Not a number of type {value_type}"
    )


def _format_value(value: TypedValue) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    return to_text(value)


def to_text(value: TypedValue) -> str:
    """Format a value as ConfigDef.convertToString does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _format_double(value)
    return str(value)


def _format_double(value: float) -> str:
    """Format a number like Java's Double.toString, without an exponent between 10^-3 and 10^7."""
    if math.isinf(value) or math.isnan(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = repr(float(value)).partition("e")
    if not exponent:
        digits, _, exponent = f"{value:.16e}".partition("e")
        digits = digits.rstrip("0")
        digits += "0" if digits.endswith(".") else ""
    elif "." not in digits:
        digits += ".0"
    return f"{digits}E{int(exponent)}"


def make_min_check(low: float) -> ValueCheck:
    """Build a check like Kafka's Range.atLeast."""

    def check(value: TypedValue) -> str | None:
        assert isinstance(value, int | float)
        return f"Value must be at least {_format_number(low)}" if value < low else None

    return check


def make_range_check(low: float, high: float) -> ValueCheck:
    """Build a check like Kafka's Range.between."""

    def check(value: TypedValue) -> str | None:
        assert isinstance(value, int | float)
        if value < low:
            return f"Value must be at least {_format_number(low)}"
        return f"Value must be no more than {_format_number(high)}" if value > high else None

    return check


def _format_number(value: float) -> str:
    return str(value)


def make_choice_check(*words: str) -> ValueCheck:
    """Build a check like Kafka's ValidString.in."""

    def check(value: TypedValue) -> str | None:
        return None if value in words else f"String must be one of: {', '.join(words)}"

    return check


def make_list_check(name: str, *words: str) -> ValueCheck:
    """Build a check like Kafka's ValidList.in. The list can be empty, but its elements cannot."""

    def check(value: TypedValue) -> tuple[str, str] | None:
        assert isinstance(value, tuple)
        invalid_element = next((v for v in value if v not in words), None)
        if invalid_element == "":
            raise InvalidValueError(f"Configuration '{name}' values must not be empty.")
        return (
            None
            if invalid_element is None
            else (invalid_element, f"String must be one of: {', '.join(words)}")
        )

    return check


def make_throttled_replicas_check(name: str) -> ValueCheck:
    """Build a check like Kafka's ThrottledReplicaListValidator.

    Valid values are ``*`` and lists of partition:broker pairs. Empty parts are ignored.
    """

    def check(value: TypedValue) -> str | None:
        assert isinstance(value, tuple)
        has_only_pairs = all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in value)
        if has_only_pairs or "".join(value) == "*":
            return None
        return (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    return check
