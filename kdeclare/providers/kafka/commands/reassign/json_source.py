"""JSON as people write it: read with the place of every mistake, in the words of Kafka's own reader."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain, count
from typing import NoReturn

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Place, error
from kdeclare.core.jsontypes import Json

VERSION = 1
"""The one version of these files."""
MAX_INT = 2**31 - 1

_SHOWN = 80
_MAX_DEPTH = 100
_TOO_DEEP = f"Nested more than {_MAX_DEPTH} levels deep"

_SPACE = re.compile(r"[ \t\n\r]*")
# Strings are matched first, so that nothing is found inside of one.
_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity|-?\d{1000,})')

Path = tuple[str | int, ...]


class Source:
    """A file as JSON, and the mistakes found in it. What is wrong is read as None."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._problems: list[Diagnostic] = []
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._children: dict[int, dict[str | int, int]] = {}

    def items(self, field: str) -> list[tuple[Path, Json]] | None:
        """What stands in the list that the file is about, with its path; None where that is no list.

        Raise KdeclareError where nothing can be told about it: this is no JSON, or of another version.
        """
        document = self.object(self._document(), ())
        if document is None:
            return None
        version = self.integer(document.get("version", VERSION), ("version",))
        if version not in (None, VERSION):
            detail = f"Not supported version field value {version}"
            self.wrong(("version",), "unsupported-version", "Not supported version", detail)
            self.check()
        items = document.get(field, [])
        if not isinstance(items, list):
            self._not("JSON array", items, (field,))
            return None
        return [((field, n), item) for n, item in enumerate(items)]

    def object(self, value: Json, path: Path) -> dict[str, Json] | None:
        """The value, which must be an object."""
        if isinstance(value, dict):
            return value
        self._not("JSON object", value, path)
        return None

    def member(self, item: dict[str, Json], name: str, path: Path) -> tuple[Path, Json] | None:
        """A field that must be there, with its path."""
        if name in item:
            return (*path, name), item[name]
        self.wrong(path, "missing-field", "Missing field", f"No such field exists: `{name}`")
        return None

    def array(self, value: Json, path: Path) -> list[tuple[Path, Json]] | None:
        """The elements, with their paths, of a value which must be an array."""
        if isinstance(value, list):
            return [((*path, n), item) for n, item in enumerate(value)]
        self._not("`JSON array` value", value, path)
        return None

    def integer(self, value: Json, path: Path) -> int | None:
        """The value, which must be a whole number of 32 bits."""
        if type(value) is int and -MAX_INT - 1 <= value <= MAX_INT:
            return value
        self._not("`Integer` value", value, path)
        return None

    def string(self, value: Json, path: Path) -> str | None:
        """The value, which must be a text."""
        if isinstance(value, str):
            return value
        self._not("`String` value", value, path)
        return None

    def wrong(self, path: Path, code: str, summary: str, detail: str) -> None:
        """Note a mistake in what ``path`` leads to."""
        place = self._place(self._position(path))
        self._problems.append(error(code, summary, f"{detail}{_said(path)}", place=place))

    def check(self) -> None:
        """Raise KdeclareError if there are mistakes."""
        if self._problems:
            raise KdeclareError(*self._problems)

    def _not(self, expected: str, value: Json, path: Path) -> None:
        received = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        if len(received) > _SHOWN:
            received = f"{received[:_SHOWN]}…"
        self.wrong(path, "json-type", "Unexpected value", f"Expected {expected}, received {received}")

    def _document(self) -> Json:
        if not self._text.strip():
            self._no_json("The input string shouldn't be empty", 0)
        try:
            document = json.loads(self._text, parse_constant=_refuse)
        except json.JSONDecodeError as problem:
            self._no_json(problem.msg, problem.pos)
        except ValueError:
            found = next(m for m in _NO_NUMBER.finditer(self._text) if m[1])
            self._no_json(f"'{found[1][:_SHOWN]}' is no number of JSON's", found.start())
        except RecursionError:
            self._no_json(_TOO_DEEP, 0)
        if _is_deep(document):
            self._no_json(_TOO_DEEP, 0)
        return document

    def _no_json(self, detail: str, position: int) -> NoReturn:
        summary = "The input string is not a valid JSON"
        raise KdeclareError(error("json-syntax", summary, detail, place=self._place(position)))

    def _place(self, position: int) -> Place:
        line = bisect_right(self._lines, position)
        return Place(self._file, line, position - self._lines[line - 1] + 1)

    def _position(self, path: Path) -> int:
        """Where a value begins; for a mistake only, as the values are read once more to find it."""
        position = _skip(self._text, 0)
        for step in path:
            if position not in self._children:
                self._children[position] = dict(_children(self._text, position))
            position = self._children[position][step]
        return position


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _is_deep(value: Json) -> bool:
    """Whether it is nested so deep that to read it once more, for a place, could run into Python's limit."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        nested = (v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list))
        level = list(chain.from_iterable(nested))
    return any(isinstance(v, dict | list) for v in level)


def _said(path: Path) -> str:
    """A path for a person: `` (partitions[3].replicas)``; nothing for the whole file."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f" ({steps.removeprefix('.')})" if steps else ""


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _children(text: str, position: int) -> Iterator[tuple[str | int, int]]:
    """Where the values in an object or array begin. The text is known to be JSON."""
    decode = json.JSONDecoder().raw_decode
    named = text[position] == "{"
    position = _skip(text, position + 1)
    for index in count():
        if text[position] in "]}":
            return
        key: str | int = index
        if named:
            key, end = decode(text, position)
            position = _skip(text, _skip(text, end) + 1)  # after the colon
        yield key, position
        position = _skip(text, decode(text, position)[1])
        if text[position] == ",":
            position = _skip(text, position + 1)
