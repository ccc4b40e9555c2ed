"""Config values as Kafka reads them: types, ranges, and the text that a describe shows.

Follows org.apache.kafka.common.config.ConfigDef (parseType, convertToString, Range, ValidString).
"""

import math
import re
from collections.abc import Callable
from enum import StrEnum

from kdeclare.core.frozen import dataclass


class Type(StrEnum):
    """ConfigDef.Type, as far as topic and broker keys use it."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    PASSWORD = "PASSWORD"
    CLASS = "CLASS"


_RANGES = {Type.INT: (-(2**31), 2**31 - 1), Type.LONG: (-(2**63), 2**63 - 1)}
_INTEGER = re.compile(r"[+-]?\d+")
_COMMA = re.compile(r"\s*,\s*")

Value = bool | int | float | str | tuple[str, ...]
Check = Callable[[Value], str | tuple[str, str] | None]
"""None, or what is wrong in the words of the ConfigDef validator; the bad element before it, if it is one."""


class Invalid(ValueError):
    """A value that is not of its type or not in its range; the text is ConfigException's."""


@dataclass(frozen=True, slots=True)
class Key:
    """One config key. ``default`` is text; None where Kafka's default is null.

    unique: elements of the list count once (ValidList since 4.2).
    """

    name: str
    type: Type
    default: str | None
    check: Check | None = None
    unique: bool = False

    @property
    def sensitive(self) -> bool:
        """Whether a describe hides the value."""
        return self.type is Type.PASSWORD

    def parse(self, text: str) -> Value:
        """The typed value. Raises Invalid."""
        value = _parse(self.name, self.type, text)
        if self.unique and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        problem = self.check(value) if self.check else None
        if problem:
            shown, reason = problem if isinstance(problem, tuple) else (_shown(value), problem)
            raise Invalid(f"Invalid value {shown} for configuration {self.name}: {reason}")
        return value

    def normal(self, text: str) -> str:
        """The text that a describe shows for the stored ``text``."""
        try:
            return to_text(self.parse(text))
        except Invalid:  # stored by a path that checks nothing; shown as it is
            return text


def _parse(name: str, kind: Type, text: str) -> Value:
    trimmed = text.strip()
    match kind:
        case Type.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise Invalid(
                    f"Invalid value {text} for configuration {name}: "
                    "Expected value to be either true or false"
                )
            return trimmed.lower() == "true"
        case Type.INT | Type.LONG:
            low, high = _RANGES[kind]
            if not _INTEGER.fullmatch(trimmed) or not low <= int(trimmed) <= high:
                raise _not_a_number(name, kind, text)
            return int(trimmed)
        case Type.DOUBLE:
            try:
                return float(trimmed.rstrip("dDfF") or "x")
            except ValueError:
                raise _not_a_number(name, kind, text) from None
        case Type.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        case Type.PASSWORD:
            return text
        case _:
            return trimmed


def _not_a_number(name: str, kind: Type, text: str) -> Invalid:
    return Invalid(f"Invalid value {text} for configuration {name}: Not a number of type {kind}")


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    return to_text(value)


def to_text(value: Value) -> str:
    """ConfigDef.convertToString."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _double(value)
    return str(value)


def _double(value: float) -> str:
    """Double.toString: plain between 10^-3 and 10^7, else with an E."""
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


def at_least(low: float) -> Check:
    """Range.atLeast."""

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        return f"Value must be at least {_number(low)}" if value < low else None

    return check


def between(low: float, high: float) -> Check:
    """Range.between."""

    def check(value: Value) -> str | None:
        assert isinstance(value, int | float)
        if value < low:
            return f"Value must be at least {_number(low)}"
        return f"Value must be no more than {_number(high)}" if value > high else None

    return check


def _number(value: float) -> str:
    return str(value)


def one_of(*words: str) -> Check:
    """ValidString.in."""

    def check(value: Value) -> str | None:
        return None if value in words else f"String must be one of: {', '.join(words)}"

    return check


def items_of(name: str, *words: str) -> Check:
    """ValidList.in, where the list may be empty but no element of it."""

    def check(value: Value) -> tuple[str, str] | None:
        assert isinstance(value, tuple)
        bad = next((v for v in value if v not in words), None)
        if bad == "":
            raise Invalid(f"Configuration '{name}' values must not be empty.")
        return None if bad is None else (bad, f"String must be one of: {', '.join(words)}")

    return check


def throttled_replicas(name: str) -> Check:
    """ThrottledReplicaListValidator: ``*`` alone, or partition:broker pairs; empty parts are forgiven."""

    def check(value: Value) -> str | None:
        assert isinstance(value, tuple)
        pairs = all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in value)
        if pairs or "".join(value) == "*":
            return None
        return (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    return check
