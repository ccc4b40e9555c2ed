"""The files of Kafka's kafka-reassign-partitions tool: reading and writing them, in that tool's words.

Everything that the tool refuses is refused, for its reasons. Some things that it takes are refused too:
text after the JSON, which it leaves out without a word; topics, partitions, brokers and log directories that
no cluster can have, which it finds out late, some when the moves have begun; in files for --verify and
--cancel what it refuses in those for --execute; and nesting that no such file has any use for.
"""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, count
from pathlib import PurePosixPath, PureWindowsPath
from typing import NoReturn, TypeVar

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.topic.spec import is_legal_name

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

    def items(self, field: str) -> list[tuple[Path, JsonValue]] | None:
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

    def object(self, value: JsonValue, path: Path) -> dict[str, JsonValue] | None:
        """The value, which must be an object."""
        if isinstance(value, dict):
            return value
        self._not("JSON object", value, path)
        return None

    def member(self, item: dict[str, JsonValue], name: str, path: Path) -> tuple[Path, JsonValue] | None:
        """A field that must be there, with its path."""
        if name in item:
            return (*path, name), item[name]
        self.wrong(path, "missing-field", "Missing field", f"No such field exists: `{name}`")
        return None

    def array(self, value: JsonValue, path: Path) -> list[tuple[Path, JsonValue]] | None:
        """The elements, with their paths, of a value which must be an array."""
        if isinstance(value, list):
            return [((*path, n), item) for n, item in enumerate(value)]
        self._not("`JSON array` value", value, path)
        return None

    def integer(self, value: JsonValue, path: Path) -> int | None:
        """The value, which must be a whole number of 32 bits."""
        if type(value) is int and -MAX_INT - 1 <= value <= MAX_INT:
            return value
        self._not("`Integer` value", value, path)
        return None

    def string(self, value: JsonValue, path: Path) -> str | None:
        """The value, which must be a text."""
        if isinstance(value, str):
            return value
        self._not("`String` value", value, path)
        return None

    def wrong(self, path: Path, code: str, summary: str, detail: str) -> None:
        """Note a mistake in what ``path`` leads to."""
        place = self._place(self._position(path))
        self._problems.append(error(code, summary, f"{detail}{_show_path(path)}", place=place))

    def check(self) -> None:
        """Raise KdeclareError if there are mistakes."""
        if self._problems:
            raise KdeclareError(*self._problems)

    def _not(self, expected: str, value: JsonValue, path: Path) -> None:
        received = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        if len(received) > _SHOWN:
            received = f"{received[:_SHOWN]}…"
        self.wrong(path, "json-type", "Unexpected value", f"Expected {expected}, received {received}")

    def _document(self) -> JsonValue:
        if not self._text.strip():
            self._no_json("The input string shouldn't be empty", 0)
        try:
            document: JsonValue = json.loads(self._text, parse_constant=_refuse)
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

    def _place(self, position: int) -> SourcePosition:
        line = bisect_right(self._lines, position)
        return SourcePosition(self._file, line, position - self._lines[line - 1] + 1)

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


def _is_deep(value: JsonValue) -> bool:
    """Whether it is nested so deep that to read it once more, for a place, could run into Python's limit."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        nested = (v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list))
        level = list(chain.from_iterable(nested))
    return any(isinstance(v, dict | list) for v in level)


def _show_path(path: Path) -> str:
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


ANY_LOG_DIR = "any"
"""Stands for whatever log directory the broker chooses."""

_NO_BROKER = "Illegal broker id"

_INTEGER = re.compile(r"[+-]?\d{1,30}")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where one partition's replicas are, or are to be.

    log_dirs: one for each replica, a path or ``any``; None where nothing is said of them.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None = None


def parse_reassignment(text: str, file: str) -> tuple[Assignment, ...]:
    """Read what ``--reassignment-json-file`` names, in the order of the file.

    Fields that are not known are left alone and a missing version is 1, as Kafka's tool has it.
    Raise KdeclareError with every mistake there is: ``json-syntax``, ``json-type``, ``missing-field``,
    ``unsupported-version``, ``empty-reassignment``, ``illegal-topic-name``, ``illegal-partition``,
    ``duplicate-partition``, ``empty-replicas``, ``illegal-broker``, ``duplicate-replica``,
    ``log-dirs-size``, ``illegal-log-dir``.
    """
    source = Source(text, file)
    items = source.items("partitions")
    if items is not None and not items:
        summary = "Partition reassignment list cannot be empty"
        source.wrong((), "empty-reassignment", summary, summary)
    found = [(path, _assignment(source, item, path)) for path, item in items or ()]
    partitions = [(path, a.partition) for path, a in found if a is not None]
    for path, partition in _repeated(partitions):
        summary = "Partition reassignment contains duplicate topic partitions"
        source.wrong(path, "duplicate-partition", summary, f"{summary}: {partition}")
    source.check()
    return tuple(assignment for _, assignment in found if assignment is not None)


def parse_topics_to_move(text: str, file: str) -> tuple[str, ...]:
    """Read what ``--topics-to-move-json-file`` names; no topics at all are allowed, as by Kafka's tool.

    Raise KdeclareError with every mistake there is: ``json-syntax``, ``json-type``, ``missing-field``,
    ``unsupported-version``, ``illegal-topic-name``, ``duplicate-topic``.
    """
    source = Source(text, file)
    found = [(path, _topic(source, item, path)) for path, item in source.items("topics") or ()]
    topics = [(path, topic) for path, topic in found if topic is not None]
    for path, topic in _repeated(topics):
        summary = "List of topics to reassign contains duplicate entries"
        source.wrong(path, "duplicate-topic", summary, f"{summary}: [{topic}]")
    source.check()
    return tuple(topic for _, topic in topics)


def parse_broker_list(text: str) -> tuple[int, ...]:
    """Read what ``--broker-list`` is given: ids with commas between them and no spaces.

    Raise KdeclareError with every mistake there is: ``illegal-broker``, ``duplicate-broker``.
    """
    problems: list[Diagnostic] = []
    ids: list[int] = []
    for part in text.rstrip(",").split(","):  # Kafka's tool leaves out what is empty at the end
        if not _INTEGER.fullmatch(part) or abs(int(part)) > MAX_INT:
            problems.append(_illegal_broker(f'For input string: "{part}"'))
        elif int(part) < 0:
            problems.append(_illegal_broker(f"Unknown broker id {int(part)}"))
        else:
            ids.append(int(part))
    duplicates = _duplicates(ids)
    if duplicates:
        summary = "Broker list contains duplicate entries"
        problems.append(error("duplicate-broker", summary, f"{summary}: {_java_list(duplicates)}"))
    if problems:
        raise KdeclareError(*problems)
    return tuple(ids)


def reassignment_json(assignments: Iterable[Assignment]) -> str:
    """The text that Kafka's tool prints and takes, on one line, sorted by topic and partition."""
    partitions = [
        {
            "topic": a.partition.topic,
            "partition": a.partition.partition,
            "replicas": a.replicas,
            "log_dirs": a.log_dirs if a.log_dirs is not None else (ANY_LOG_DIR,) * len(a.replicas),
        }
        for a in sorted(assignments, key=lambda a: a.partition)
    ]
    document = {"version": VERSION, "partitions": partitions}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _assignment(source: Source, item: JsonValue, path: Path) -> Assignment | None:
    entry = source.object(item, path)
    if entry is None:
        return None
    topic = _topic(source, entry, path)
    partition = _partition(source, entry, path)
    replicas = _replicas(source, entry, path)
    log_dirs = _log_dirs(source, entry, path)
    if topic is None or partition is None:
        return None
    where = TopicPartition(topic, partition)
    if replicas is None:
        return Assignment(where, ())  # read on, so that a second entry for this partition is noticed
    _check_replicas(source, where, replicas, path)
    if log_dirs is not None and len(log_dirs) != len(replicas):
        detail = (
            f"Size of replicas list {_java_list(replicas)} is different from "
            f"size of log dirs list {_java_list(log_dirs)} for partition {where}"
        )
        source.wrong((*path, "log_dirs"), "log-dirs-size", "Wrong number of log directories", detail)
    return Assignment(where, replicas, log_dirs)


def _topic(source: Source, item: JsonValue, path: Path) -> str | None:
    entry = source.object(item, path)
    member = source.member(entry, "topic", path) if entry is not None else None
    if member is None:
        return None
    at, value = member
    topic = source.string(value, at)
    if topic is None or is_legal_name(topic):
        return topic
    shown = json.dumps(topic)  # it can hold what no terminal and no file takes
    detail = f"The given topic name {shown} cannot be a topic's"
    source.wrong(at, "illegal-topic-name", "Illegal topic name", detail)
    return None


def _partition(source: Source, entry: dict[str, JsonValue], path: Path) -> int | None:
    member = source.member(entry, "partition", path)
    if member is None:
        return None
    at, value = member
    partition = source.integer(value, at)
    if partition is not None and partition < 0:
        detail = f"The given partition index {partition} is not valid"
        source.wrong(at, "illegal-partition", "Illegal partition", detail)
        return None
    return partition


def _replicas(source: Source, entry: dict[str, JsonValue], path: Path) -> tuple[int, ...] | None:
    member = source.member(entry, "replicas", path)
    items = source.array(member[1], member[0]) if member is not None else None
    if items is None:
        return None
    ids = [source.integer(value, at) for at, value in items]
    for (at, _), broker in zip(items, ids, strict=True):
        if broker is not None and broker < 0:
            source.wrong(at, "illegal-broker", _NO_BROKER, f"Unknown broker id {broker}")
    return None if None in ids else tuple(i for i in ids if i is not None)


def _check_replicas(source: Source, partition: TopicPartition, replicas: tuple[int, ...], path: Path) -> None:
    at = (*path, "replicas")
    if not replicas:
        summary = "Partition replica list cannot be empty"
        source.wrong(at, "empty-replicas", summary, f"{summary}: {partition}")
    duplicates = _duplicates(replicas)
    if duplicates:
        summary = "Partition replica lists may not contain duplicate entries"
        entries = ",".join(map(str, duplicates))
        detail = f"{summary}: {partition} contains multiple entries for {entries}"
        source.wrong(at, "duplicate-replica", summary, detail)


def _log_dirs(source: Source, entry: dict[str, JsonValue], path: Path) -> tuple[str, ...] | None:
    if "log_dirs" not in entry:
        return None
    items = source.array(entry["log_dirs"], (*path, "log_dirs"))
    if items is None:
        return None
    folders = [source.string(value, at) for at, value in items]
    for (at, _), folder in zip(items, folders, strict=True):
        if folder is not None and not _is_log_dir(folder):
            detail = f"'{folder}' is neither 'any' nor an absolute path"
            source.wrong(at, "illegal-log-dir", "Illegal log directory", detail)
    return None if None in folders else tuple(f for f in folders if f is not None)


def _is_log_dir(folder: str) -> bool:
    """Whether it can be one, on whatever system the broker runs."""
    absolute = PurePosixPath(folder).is_absolute() or PureWindowsPath(folder).is_absolute()
    return folder == ANY_LOG_DIR or absolute


def _illegal_broker(detail: str) -> Diagnostic:
    hint = "Write the ids of brokers with commas between them and no spaces: 1,2,3"
    return error("illegal-broker", _NO_BROKER, detail, hint=hint)


def _repeated(found: Iterable[tuple[Path, T]]) -> Iterator[tuple[Path, T]]:
    """What comes a second time, there; a third time says nothing new."""
    seen: Counter[T] = Counter()
    for path, value in found:
        seen[value] += 1
        if seen[value] == 2:
            yield path, value


def _duplicates(ids: Iterable[int]) -> list[int]:
    return sorted(value for value, times in Counter(ids).items() if times > 1)


def _java_list(values: Iterable[object]) -> str:
    """A list as Java writes it."""
    return f"[{', '.join(map(str, values))}]"
