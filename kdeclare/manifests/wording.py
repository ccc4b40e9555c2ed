"""The words for pydantic's error codes, and for values that a message may show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kdeclare.core.references import Referenced

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
}
_SCALARS = ("a whole number", "a number", "text", "true or false")

BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda c: f"must be more than {c['gt']}",
    "greater_than_equal": lambda c: f"must be at least {c['ge']}",
    "less_than": lambda c: f"must be less than {c['lt']}",
    "less_than_equal": lambda c: f"must be at most {c['le']}",
    "multiple_of": lambda c: f"must be a multiple of {c['multiple_of']}",
    "too_short": lambda c: f"needs {_counted(c['min_length'], 'element')}",
    "too_long": lambda c: f"takes at most {c['max_length']} elements",
    "string_too_short": lambda c: f"needs {_counted(c['min_length'], 'character')}",
    "string_too_long": lambda c: f"takes at most {c['max_length']} characters",
    "string_pattern_mismatch": lambda c: f"does not match the pattern {c['pattern']}",
    "finite_number": lambda _: "must be a finite number",
}
"""What a value must be, from an error's context."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """Stands in messages for a scalar that is a secret, and says only of what type it is."""

    what: str

    def __str__(self) -> str:
        return self.what


def withhold(value: str | float | bool) -> Withheld:  # any scalar of YAML
    """What messages may say of a secret."""
    if isinstance(value, bool):
        return Withheld("a boolean")
    return Withheld("text" if isinstance(value, str) else "a number")


def expected_type(code: str) -> str | None:
    """What a field takes, when an error of this type says that it got something of another type."""
    for suffix in ("_type", "_parsing", "_from_float", "_parsing_size"):
        if code.endswith(suffix):
            return _EXPECTED.get(code.removesuffix(suffix))
    return None


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: ``spec.partitions[0].topic``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def described(value: Any, expected: Sequence[str]) -> str:
    """What a field got, without more of it than can be told."""
    if value is None:
        return "null"
    if isinstance(value, Referenced):
        return shown(value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    # a scalar where a mapping or a list belongs can be anything, a secret too
    if not all(word in _SCALARS for word in expected):
        return "text" if isinstance(value, str) else "a single value"
    return f"the text {shown(value)}" if isinstance(value, str) else shown(value)


def type_hint(value: Any, expected: Sequence[str]) -> str:
    """What to write instead, where that is plain."""
    if value is None:
        return "Leave the field out where there is nothing to say."
    if isinstance(value, dict | list | Referenced):
        return ""
    if expected == ["text"]:
        return "Put it in quotes."
    if isinstance(value, str):
        number = value.strip().lstrip("-").isdigit() and "a whole number" in expected
        truth = value.lower() in ("true", "false") and "true or false" in expected
        return "Write it without the quotes." if number or truth else ""
    return ""


def _counted(least: int, what: str) -> str:
    return f"at least one {what}" if least == 1 else f"at least {least} {what}s"


def is_number(value: Any) -> bool:
    """Whether it is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A scalar for a message; one that a reference stood for is not repeated."""
    if isinstance(value, Referenced):
        return f"the value of {value.reference}"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    text = text if len(text) <= 40 else f"{text[:37]}…"
    return f"'{text}'" if isinstance(value, str) else text
