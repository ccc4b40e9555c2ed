"""JSON as Python types: the type of any value, how text becomes one, and its canonical text.

Code that looks into JSON stands at an edge: it narrows what it finds with `as_object`, `as_list` and the
like, and hands on frozen values. Everything else passes a `JsonValue` along without a look.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

if TYPE_CHECKING:
    JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
    """Plain data. The containers are read-only here, so that a ``dict[str, int]`` is one, too."""
else:
    JsonValue = object  # whoever reads annotations (pydantic) must neither check nor copy what is inside

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""A JSON object."""


def parse_json(text: str | bytes) -> JsonValue:
    """Return what a JSON text says. Raises ValueError, or RecursionError where it is nested too deeply."""
    from pydantic_core import from_json  # what parses no JSON need not wait for it

    value: JsonValue
    try:
        value = from_json(text)  # in half the time of the standard library
    except (TypeError, ValueError):  # that one says what is wrong, and reads half surrogate pairs, too
        value = json.loads(text)
    return value


def dump_json(value: JsonValue) -> str | bytes:
    """Return a JSON text of plain data for another program part: quickly, in no particular form."""
    from pydantic_core import to_json

    try:
        return to_json(value)
    except ValueError:  # half a surrogate pair
        return json.dumps(value)


def as_object(value: JsonValue) -> JsonObject:
    """Return a value that is a JSON object. Raises TypeError for another one."""
    if not isinstance(value, Mapping):
        raise _build_type_error("an object", value)
    return value


def as_list(value: JsonValue) -> Sequence[JsonValue]:
    """Return a value that is a JSON array. Raises TypeError for another one."""
    if not isinstance(value, list | tuple):
        raise _build_type_error("an array", value)
    return value


def as_text(value: JsonValue) -> str:
    """Return a value that is a string. Raises TypeError for another one."""
    if not isinstance(value, str):
        raise _build_type_error("a string", value)
    return value


def as_int(value: JsonValue) -> int:
    """Return a value that is an integer; true and false are none. Raises TypeError for another one."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _build_type_error("an integer", value)
    return value


def as_number(value: JsonValue) -> int | float:
    """Return a value that is a number; true and false are none. Raises TypeError for another one."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _build_type_error("a number", value)
    return value


def as_float(value: JsonValue) -> float:
    """Return a value that is a number as one with a fraction. Raises TypeError for another one."""
    return float(as_number(value))


def as_bool(value: JsonValue) -> bool:
    """Return a value that is true or false. Raises TypeError for another one."""
    if not isinstance(value, bool):
        raise _build_type_error("true or false", value)
    return value


def as_text_or_none(value: JsonValue) -> str | None:
    """Return a value that is a string or null. Raises TypeError for another one."""
    return None if value is None else as_text(value)


def as_int_or_none(value: JsonValue) -> int | None:
    """Return a value that is an integer or null. Raises TypeError for another one."""
    return None if value is None else as_int(value)


def as_ints(value: JsonValue) -> tuple[int, ...]:
    """Return a value that is an array of integers. Raises TypeError for another one."""
    elements = as_list(value)
    return tuple(elements) if _is_all_ints(elements) else tuple(map(as_int, elements))


def as_texts(value: JsonValue) -> tuple[str, ...]:
    """Return a value that is an array of strings. Raises TypeError for another one."""
    elements = as_list(value)
    return tuple(elements) if _is_all_texts(elements) else tuple(map(as_text, elements))


# Without a call for each element: documents have long lists.


def _is_all_ints(values: Sequence[JsonValue]) -> TypeGuard[Sequence[int]]:
    return {int}.issuperset(map(type, values))


def _is_all_texts(values: Sequence[JsonValue]) -> TypeGuard[Sequence[str]]:
    return {str}.issuperset(map(type, values))


def _build_type_error(expected: str, value: JsonValue) -> TypeError:
    return TypeError(f"expected {expected}, got {type(value).__name__}")


def dump_canonical_json(value: JsonValue) -> str:
    """One text for one value: sorted keys, no white space, UTF-8 kept as it is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def hash_json(value: JsonValue) -> str:
    """SHA-256, in hex, of the canonical text."""
    return hashlib.sha256(dump_canonical_json(value).encode()).hexdigest()
