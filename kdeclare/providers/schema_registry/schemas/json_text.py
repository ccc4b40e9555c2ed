"""Parse the JSON text of schemas into normalized values, and find the positions of values in the text."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import NoReturn, TypeAlias

from kdeclare.core.jsontypes import JsonValue, dump_canonical_json
from kdeclare.providers.schema_registry.schemas.problems import SchemaError, SchemaProblem

JsonPath: TypeAlias = tuple[str | int, ...]
"""The steps from the root of a JSON text to a value: keys of objects and indexes of arrays."""

MAX_DEPTH = 200
"""The maximum nesting depth of arrays and objects.

The depth is limited, because all further processing is recursive.
"""

_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_MAX_EXACT_INTEGER = 2**53


def parse_json_text(text: str) -> JsonValue:
    """Parse JSON text. Whole numbers such as ``1.0`` become integers; keys keep their order.

    Raises SchemaError with the position if the text is not valid JSON (RFC 8259), contains a number or a
    character that cannot be represented, or is nested too deeply.
    """
    try:
        value: JsonValue = json.loads(
            text, parse_constant=_reject_constant, parse_float=_read_float, parse_int=_read_integer
        )
    except JSONDecodeError as error:
        raise SchemaError(
            SchemaProblem(f"The text is not valid JSON: {error.msg}.", "", error.lineno, error.colno)
        ) from None
    except _InvalidNumberError as error:
        raise SchemaError(SchemaProblem(f"The text contains the invalid number {error}.")) from None
    except RecursionError:
        raise SchemaError(SchemaProblem(_TOO_DEEP)) from None
    if _measure_depth(value) > MAX_DEPTH:
        raise SchemaError(SchemaProblem(_TOO_DEEP))
    try:
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise SchemaError(
            SchemaProblem("The text contains half of a surrogate pair, which is not a character.")
        ) from None
    return value


_TOO_DEEP = f"The schema has more than {MAX_DEPTH} levels of nested arrays and objects."


class _InvalidNumberError(Exception):
    pass


def _reject_constant(name: str) -> NoReturn:
    raise _InvalidNumberError(name)


def _read_float(text: str) -> int | float:
    number = float(text)
    if not math.isfinite(number):
        raise _InvalidNumberError(text)
    is_negative_zero = number == 0 and text.startswith("-")
    if number.is_integer() and abs(number) < _MAX_EXACT_INTEGER and not is_negative_zero:
        return int(number)
    return number


def _read_integer(text: str) -> int | float:
    if text == "-0":
        return -0.0
    try:
        return int(text)
    except ValueError:  # Python limits the number of digits
        raise _InvalidNumberError(f"{text[:20]}…") from None


def _measure_depth(value: JsonValue) -> int:
    """Return the nesting depth of arrays and objects, without recursion."""
    depth, level = 0, [value]
    while True:
        level = [child for parent in level for child in _list_children(parent)]
        if not level:
            return depth
        depth += 1


def _list_children(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def locate_json_value(text: str, path: JsonPath) -> tuple[int, int] | None:
    """Return the line and the column of a value in a valid JSON text; None if there is no such value.

    If an object contains a key twice, the last value counts, as in `parse_json_text`.
    """
    try:
        offset = _find_offset(text, path)
    except (JSONDecodeError, RecursionError, IndexError):
        return None
    if offset is None:
        return None
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def _find_offset(text: str, path: JsonPath) -> int | None:
    offset = _skip_white_space(text, 0)
    for step in path:
        child = _find_child(text, offset, step)
        if child is None:
            return None
        offset = child
    return offset


_DECODER = JSONDecoder()


def _find_child(text: str, offset: int, step: str | int) -> int | None:
    opening = text[offset]
    if opening != ("[" if isinstance(step, int) else "{"):
        return None
    closing, child, index = "]" if opening == "[" else "}", None, 0
    offset = _skip_white_space(text, offset + 1)
    while text[offset] != closing:
        key: str | int = index
        if opening == "{":
            key, offset = _DECODER.raw_decode(text, offset)
            offset = _skip_white_space(text, _skip_white_space(text, offset) + 1)  # the colon
        if key == step:
            child = offset
        _, offset = _DECODER.raw_decode(text, offset)
        offset = _skip_white_space(text, offset)
        if text[offset] == ",":
            offset = _skip_white_space(text, offset + 1)
        index += 1
    return child


def _skip_white_space(text: str, offset: int) -> int:
    match = _WHITE_SPACE.match(text, offset)
    return match.end() if match else offset


def format_json_path(path: JsonPath) -> str:
    """Return a path as text: ``fields[2].type``. Keys that are not plain words are quoted."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_KEY.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{json.dumps(step, ensure_ascii=False)}]")
    return "".join(parts)


def build_json_problem(text: str, path: JsonPath, message: str) -> SchemaProblem:
    """Return a problem with the value at a path.

    The position of the problem is that of the value in the text or, if the value is missing, of its parent.
    """
    position = locate_json_value(text, path)
    if position is None and path:
        position = locate_json_value(text, path[:-1])
    return SchemaProblem(message, format_json_path(path), *(position or (None, None)))


def format_value(value: JsonValue, max_length: int = 60) -> str:
    """Return a value as JSON for messages. A long value is cut off with ``…``."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def is_equal_json(first: JsonValue, second: JsonValue) -> bool:
    """Whether two values are equal as JSON.

    Unlike ``==``, this function distinguishes ``true`` from 1, and 0 from -0.
    """
    return dump_canonical_json(first) == dump_canonical_json(second)


def as_sequence(value: JsonValue) -> Sequence[JsonValue]:
    """Return an array, or an empty sequence for any other value."""
    return value if isinstance(value, list | tuple) else ()


def as_mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    """Return an object, or an empty mapping for any other value."""
    return value if isinstance(value, Mapping) else {}
