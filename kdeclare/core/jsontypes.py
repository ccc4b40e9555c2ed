"""Types for JSON values, and functions that parse, check and serialize JSON.

Code that reads files or responses checks JSON values with `as_object`, `as_list` and similar functions, and
returns frozen values. All other code passes a `JsonValue` on without inspecting it.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

if TYPE_CHECKING:
    JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
    """Plain data. The container types are read-only, so that ``dict[str, int]`` is also a `JsonValue`."""
else:
    JsonValue = object  # so that pydantic, which reads annotations, does not validate or copy the content

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""A JSON object."""


def parse_json(text: str | bytes) -> JsonValue:
    """Parse JSON. Raises ValueError for invalid JSON, and RecursionError if the JSON is nested too deeply."""
    from pydantic_core import from_json  # imported here because most commands parse no JSON

    value: JsonValue
    try:
        value = from_json(text)  # twice as fast as the standard library
    except (TypeError, ValueError):  # the standard library has clearer errors and accepts lone surrogates
        value = json.loads(text)
    return value


def dump_json(value: JsonValue) -> str | bytes:
    """Return plain data as JSON for internal use. The function is fast, but the JSON is not canonical."""
    from pydantic_core import to_json

    try:
        return to_json(value)
    except ValueError:  # a lone surrogate
        return json.dumps(value)


def as_object(value: JsonValue) -> JsonObject:
    """Return the value as a JSON object. Raises TypeError for any other value."""
    if not isinstance(value, Mapping):
        raise _build_type_error("an object", value)
    return value


def as_list(value: JsonValue) -> Sequence[JsonValue]:
    """Return the value as a JSON array. Raises TypeError for any other value."""
    if not isinstance(value, list | tuple):
        raise _build_type_error("an array", value)
    return value


def as_text(value: JsonValue) -> str:
    """Return the value as a string. Raises TypeError for any other value."""
    if not isinstance(value, str):
        raise _build_type_error("a string", value)
    return value


def as_int(value: JsonValue) -> int:
    """Return the value as an integer. Raises TypeError for any other value, including true and false."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _build_type_error("an integer", value)
    return value


def as_number(value: JsonValue) -> int | float:
    """Return the value as a number. Raises TypeError for any other value, including true and false."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _build_type_error("a number", value)
    return value


def to_float(number: int | float) -> float:
    """Return a number as a float. An integer that is too large for a float becomes infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def as_bool(value: JsonValue) -> bool:
    """Return the value as a Boolean. Raises TypeError for any other value."""
    if not isinstance(value, bool):
        raise _build_type_error("true or false", value)
    return value


def as_text_or_none(value: JsonValue) -> str | None:
    """Return the value as a string, or None for null. Raises TypeError for any other value."""
    return None if value is None else as_text(value)


def as_int_or_none(value: JsonValue) -> int | None:
    """Return the value as an integer, or None for null. Raises TypeError for any other value."""
    return None if value is None else as_int(value)


def as_ints(value: JsonValue) -> tuple[int, ...]:
    """Return an array of integers as a tuple. Raises TypeError for any other value."""
    elements = as_list(value)
    return tuple(elements) if _is_all_ints(elements) else tuple(map(as_int, elements))


def as_texts(value: JsonValue) -> tuple[str, ...]:
    """Return an array of strings as a tuple. Raises TypeError for any other value."""
    elements = as_list(value)
    return tuple(elements) if _is_all_texts(elements) else tuple(map(as_text, elements))


# Documents contain long lists, so these checks avoid a function call per element.


def _is_all_ints(values: Sequence[JsonValue]) -> TypeGuard[Sequence[int]]:
    return {int}.issuperset(map(type, values))


def _is_all_texts(values: Sequence[JsonValue]) -> TypeGuard[Sequence[str]]:
    return {str}.issuperset(map(type, values))


def _build_type_error(expected: str, value: JsonValue) -> TypeError:
    return TypeError(f"expected {expected}, got {type(value).__name__}")


def dump_canonical_json(value: JsonValue) -> str:
    """Return the canonical JSON of a value: sorted keys, no white space, non-ASCII characters not escaped."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def hash_json(value: JsonValue) -> str:
    """Return the SHA-256 hash of the canonical JSON of a value, in hexadecimal."""
    return hashlib.sha256(dump_canonical_json(value).encode()).hexdigest()
