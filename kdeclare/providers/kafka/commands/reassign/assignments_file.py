"""Read and write the files of Kafka's kafka-reassign-partitions tool, with that tool's error messages.

kdeclare rejects all input that the tool rejects, for the same reasons. kdeclare also rejects some input that
the tool accepts or rejects too late:

- Anything after the JSON, which the tool ignores.
- Illegal topics, partitions, brokers and log directories, which the tool sometimes rejects only after moves
  have started.
- Mistakes that the tool detects for --execute, but not for --verify and --cancel.
- JSON that is nested more deeply than any valid file.
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
"""The only version of the file format."""
MAX_INT = 2**31 - 1

_MAX_SHOWN = 80
_MAX_DEPTH = 100
_TOO_DEEP = f"Nested more than {_MAX_DEPTH} levels deep"

_SPACE = re.compile(r"[ \t\n\r]*")
# Strings are matched first, so that their content is not mistaken for numbers.
_INVALID_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity|-?\d{1000,})')

JsonPath = tuple[str | int, ...]


class JsonSource:
    """A JSON file, and the mistakes that have been found in the file. Invalid values are read as None."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._problems: list[Diagnostic] = []
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._children: dict[int, dict[str | int, int]] = {}

    def items(self, field: str) -> list[tuple[JsonPath, JsonValue]] | None:
        """Return the elements of the list ``field`` with their paths, or None if the field is not a list.

        Raises KdeclareError if the file is not JSON or has an unsupported version.
        """
        document = self.as_object(self._parse_document(), ())
        if document is None:
            return None
        version = self.integer(document.get("version", VERSION), ("version",))
        if version not in (None, VERSION):
            detail = f"Not supported version field value {version}"
            self.wrong(("version",), "unsupported-version", "Not supported version", detail)
            self.check()
        items = document.get(field, [])
        if not isinstance(items, list):
            self._add_type_problem("JSON array", items, (field,))
            return None
        return [((field, n), item) for n, item in enumerate(items)]

    def as_object(self, value: JsonValue, path: JsonPath) -> dict[str, JsonValue] | None:
        """Return the value if it is an object. Otherwise, record a mistake and return None."""
        if isinstance(value, dict):
            return value
        self._add_type_problem("JSON object", value, path)
        return None

    def member(
        self, item: dict[str, JsonValue], name: str, path: JsonPath
    ) -> tuple[JsonPath, JsonValue] | None:
        """Return a required field and its path. If the field is missing, record a mistake and return None."""
        if name in item:
            return (*path, name), item[name]
        self.wrong(path, "missing-field", "Missing field", f"No such field exists: `{name}`")
        return None

    def as_array(self, value: JsonValue, path: JsonPath) -> list[tuple[JsonPath, JsonValue]] | None:
        """Return the elements of an array and their paths. If the value is not an array, record a mistake."""
        if isinstance(value, list):
            return [((*path, n), item) for n, item in enumerate(value)]
        self._add_type_problem("`JSON array` value", value, path)
        return None

    def integer(self, value: JsonValue, path: JsonPath) -> int | None:
        """Return the value if it is a 32-bit integer. Otherwise, record a mistake and return None."""
        if type(value) is int and -MAX_INT - 1 <= value <= MAX_INT:
            return value
        self._add_type_problem("`Integer` value", value, path)
        return None

    def string(self, value: JsonValue, path: JsonPath) -> str | None:
        """Return the value if it is a string. Otherwise, record a mistake and return None."""
        if isinstance(value, str):
            return value
        self._add_type_problem("`String` value", value, path)
        return None

    def wrong(self, path: JsonPath, code: str, summary: str, detail: str) -> None:
        """Record a mistake in the value at ``path``."""
        place = self._build_position(self._find_offset(path))
        self._problems.append(error(code, summary, f"{detail}{_format_path(path)}", place=place))

    def check(self) -> None:
        """Raise KdeclareError if mistakes were recorded."""
        if self._problems:
            raise KdeclareError(*self._problems)

    def _add_type_problem(self, expected: str, value: JsonValue, path: JsonPath) -> None:
        received = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        if len(received) > _MAX_SHOWN:
            received = f"{received[:_MAX_SHOWN]}…"
        self.wrong(path, "json-type", "Unexpected value", f"Expected {expected}, received {received}")

    def _parse_document(self) -> JsonValue:
        if not self._text.strip():
            self._reject_json("The input string shouldn't be empty", 0)
        try:
            document: JsonValue = json.loads(self._text, parse_constant=_reject_constant)
        except json.JSONDecodeError as syntax_error:
            self._reject_json(syntax_error.msg, syntax_error.pos)
        except ValueError:
            number_match = next(m for m in _INVALID_NUMBER.finditer(self._text) if m[1])
            self._reject_json(
                f"'{number_match[1][:_MAX_SHOWN]}' is not a valid JSON number", number_match.start()
            )
        except RecursionError:
            self._reject_json(_TOO_DEEP, 0)
        if _is_too_deep(document):
            self._reject_json(_TOO_DEEP, 0)
        return document

    def _reject_json(self, detail: str, offset: int) -> NoReturn:
        summary = "The input string is not a valid JSON"
        raise KdeclareError(error("json-syntax", summary, detail, place=self._build_position(offset)))

    def _build_position(self, offset: int) -> SourcePosition:
        line = bisect_right(self._lines, offset)
        return SourcePosition(self._file, line, offset - self._lines[line - 1] + 1)

    def _find_offset(self, path: JsonPath) -> int:
        """Return the offset of a value in the file. Slow: call this method only to report a mistake."""
        offset = _skip_space(self._text, 0)
        for step in path:
            if offset not in self._children:
                self._children[offset] = dict(_find_children(self._text, offset))
            offset = self._children[offset][step]
        return offset


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _is_too_deep(value: JsonValue) -> bool:
    """Return whether the nesting is so deep that a recursive search could exceed Python's recursion limit."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        nested = (v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list))
        level = list(chain.from_iterable(nested))
    return any(isinstance(v, dict | list) for v in level)


def _format_path(path: JsonPath) -> str:
    """Format a path for a message, such as `` (partitions[3].replicas)``.

    For the path of the whole file, return an empty string.
    """
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f" ({steps.removeprefix('.')})" if steps else ""


def _skip_space(text: str, offset: int) -> int:
    space_match = _SPACE.match(text, offset)
    return space_match.end() if space_match else offset


def _find_children(text: str, offset: int) -> Iterator[tuple[str | int, int]]:
    """Yield the key and the offset of each value in an object or array of valid JSON."""
    decode = json.JSONDecoder().raw_decode
    is_object = text[offset] == "{"
    offset = _skip_space(text, offset + 1)
    for index in count():
        if text[offset] in "]}":
            return
        key: str | int = index
        if is_object:
            key, end = decode(text, offset)
            offset = _skip_space(text, _skip_space(text, end) + 1)  # the position after the colon
        yield key, offset
        offset = _skip_space(text, decode(text, offset)[1])
        if text[offset] == ",":
            offset = _skip_space(text, offset + 1)


ANY_LOG_DIR = "any"
"""The placeholder for a log directory that the broker chooses."""

_ILLEGAL_BROKER = "Illegal broker id"

_INTEGER = re.compile(r"[+-]?\d{1,30}")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The current or requested replicas of one partition.

    log_dirs: the log directory of each replica (a path or ``any``), or None if the file has no log
    directories.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None = None


def parse_assignments(text: str, file: str) -> tuple[PartitionAssignment, ...]:
    """Parse the file of ``--reassignment-json-file``, in the order of the file.

    As in Kafka's tool, unknown fields are ignored and a missing version means 1.
    Raises KdeclareError with all mistakes: ``json-syntax``, ``json-type``, ``missing-field``,
    ``unsupported-version``, ``empty-reassignment``, ``illegal-topic-name``, ``illegal-partition``,
    ``duplicate-partition``, ``empty-replicas``, ``illegal-broker``, ``duplicate-replica``,
    ``log-dirs-size``, ``illegal-log-dir``.
    """
    source = JsonSource(text, file)
    items = source.items("partitions")
    if items is not None and not items:
        summary = "Partition reassignment list cannot be empty"
        source.wrong((), "empty-reassignment", summary, summary)
    parsed = [(path, _parse_assignment(source, item, path)) for path, item in items or ()]
    partitions = [(path, a.partition) for path, a in parsed if a is not None]
    for path, partition in _find_repeated(partitions):
        summary = "Partition reassignment contains duplicate topic partitions"
        source.wrong(path, "duplicate-partition", summary, f"{summary}: {partition}")
    source.check()
    return tuple(assignment for _, assignment in parsed if assignment is not None)


def parse_topics_to_move(text: str, file: str) -> tuple[str, ...]:
    """Parse the file of ``--topics-to-move-json-file``. An empty list is allowed, as in Kafka's tool.

    Raises KdeclareError with all mistakes: ``json-syntax``, ``json-type``, ``missing-field``,
    ``unsupported-version``, ``illegal-topic-name``, ``duplicate-topic``.
    """
    source = JsonSource(text, file)
    parsed = [(path, _parse_topic(source, item, path)) for path, item in source.items("topics") or ()]
    topics = [(path, topic) for path, topic in parsed if topic is not None]
    for path, topic in _find_repeated(topics):
        summary = "List of topics to reassign contains duplicate entries"
        source.wrong(path, "duplicate-topic", summary, f"{summary}: [{topic}]")
    source.check()
    return tuple(topic for _, topic in topics)


def parse_broker_list(text: str) -> tuple[int, ...]:
    """Parse the value of ``--broker-list``: ids separated by commas, without spaces.

    Raises KdeclareError with all mistakes: ``illegal-broker``, ``duplicate-broker``.
    """
    problems: list[Diagnostic] = []
    ids: list[int] = []
    for part in text.rstrip(",").split(","):  # Kafka's tool ignores empty elements at the end
        if not _INTEGER.fullmatch(part) or abs(int(part)) > MAX_INT:
            problems.append(_report_illegal_broker(f'For input string: "{part}"'))
        elif int(part) < 0:
            problems.append(_report_illegal_broker(f"Unknown broker id {int(part)}"))
        else:
            ids.append(int(part))
    duplicates = _find_duplicates(ids)
    if duplicates:
        summary = "Broker list contains duplicate entries"
        problems.append(error("duplicate-broker", summary, f"{summary}: {_format_java_list(duplicates)}"))
    if problems:
        raise KdeclareError(*problems)
    return tuple(ids)


def dump_assignments(assignments: Iterable[PartitionAssignment]) -> str:
    """Format assignments as JSON for Kafka's tool, on one line, sorted by topic and partition."""
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


def _parse_assignment(source: JsonSource, item: JsonValue, path: JsonPath) -> PartitionAssignment | None:
    entry = source.as_object(item, path)
    if entry is None:
        return None
    topic = _parse_topic(source, entry, path)
    partition = _parse_partition(source, entry, path)
    replicas = _parse_replicas(source, entry, path)
    log_dirs = _parse_log_dirs(source, entry, path)
    if topic is None or partition is None:
        return None
    topic_partition = TopicPartition(topic, partition)
    if replicas is None:
        return PartitionAssignment(
            topic_partition, ()
        )  # keep the entry, so that a second entry for this partition is detected
    _check_replicas(source, topic_partition, replicas, path)
    if log_dirs is not None and len(log_dirs) != len(replicas):
        detail = (
            f"Size of replicas list {_format_java_list(replicas)} is different from "
            f"size of log dirs list {_format_java_list(log_dirs)} for partition {topic_partition}"
        )
        source.wrong((*path, "log_dirs"), "log-dirs-size", "Wrong number of log directories", detail)
    return PartitionAssignment(topic_partition, replicas, log_dirs)


def _parse_topic(source: JsonSource, item: JsonValue, path: JsonPath) -> str | None:
    entry = source.as_object(item, path)
    member = source.member(entry, "topic", path) if entry is not None else None
    if member is None:
        return None
    value_path, value = member
    topic = source.string(value, value_path)
    if topic is None or is_legal_name(topic):
        return topic
    topic_text = json.dumps(topic)  # the name can contain characters that a terminal or file cannot represent
    detail = f"The given topic name {topic_text} is not a legal topic name"
    source.wrong(value_path, "illegal-topic-name", "Illegal topic name", detail)
    return None


def _parse_partition(source: JsonSource, entry: dict[str, JsonValue], path: JsonPath) -> int | None:
    member = source.member(entry, "partition", path)
    if member is None:
        return None
    value_path, value = member
    partition = source.integer(value, value_path)
    if partition is not None and partition < 0:
        detail = f"The given partition index {partition} is not valid"
        source.wrong(value_path, "illegal-partition", "Illegal partition", detail)
        return None
    return partition


def _parse_replicas(
    source: JsonSource, entry: dict[str, JsonValue], path: JsonPath
) -> tuple[int, ...] | None:
    member = source.member(entry, "replicas", path)
    items = source.as_array(member[1], member[0]) if member is not None else None
    if items is None:
        return None
    ids = [source.integer(value, at) for at, value in items]
    for (value_path, _), broker in zip(items, ids, strict=True):
        if broker is not None and broker < 0:
            source.wrong(value_path, "illegal-broker", _ILLEGAL_BROKER, f"Unknown broker id {broker}")
    return None if None in ids else tuple(i for i in ids if i is not None)


def _check_replicas(
    source: JsonSource, partition: TopicPartition, replicas: tuple[int, ...], path: JsonPath
) -> None:
    value_path = (*path, "replicas")
    if not replicas:
        summary = "Partition replica list cannot be empty"
        source.wrong(value_path, "empty-replicas", summary, f"{summary}: {partition}")
    duplicates = _find_duplicates(replicas)
    if duplicates:
        summary = "Partition replica lists may not contain duplicate entries"
        entries = ",".join(map(str, duplicates))
        detail = f"{summary}: {partition} contains multiple entries for {entries}"
        source.wrong(value_path, "duplicate-replica", summary, detail)


def _parse_log_dirs(
    source: JsonSource, entry: dict[str, JsonValue], path: JsonPath
) -> tuple[str, ...] | None:
    if "log_dirs" not in entry:
        return None
    items = source.as_array(entry["log_dirs"], (*path, "log_dirs"))
    if items is None:
        return None
    log_dirs = [source.string(value, at) for at, value in items]
    for (value_path, _), log_dir in zip(items, log_dirs, strict=True):
        if log_dir is not None and not _is_log_dir(log_dir):
            detail = f"'{log_dir}' is neither 'any' nor an absolute path"
            source.wrong(value_path, "illegal-log-dir", "Illegal log directory", detail)
    return None if None in log_dirs else tuple(f for f in log_dirs if f is not None)


def _is_log_dir(log_dir: str) -> bool:
    """Return whether the string can be the path of a log directory on any operating system."""
    is_absolute = PurePosixPath(log_dir).is_absolute() or PureWindowsPath(log_dir).is_absolute()
    return log_dir == ANY_LOG_DIR or is_absolute


def _report_illegal_broker(detail: str) -> Diagnostic:
    hint = "Separate broker ids with commas and without spaces: 1,2,3"
    return error("illegal-broker", _ILLEGAL_BROKER, detail, hint=hint)


def _find_repeated(values: Iterable[tuple[JsonPath, T]]) -> Iterator[tuple[JsonPath, T]]:
    """Yield every value that occurs more than once, with the path of its second occurrence."""
    occurrences: Counter[T] = Counter()
    for path, value in values:
        occurrences[value] += 1
        if occurrences[value] == 2:
            yield path, value


def _find_duplicates(ids: Iterable[int]) -> list[int]:
    return sorted(value for value, times in Counter(ids).items() if times > 1)


def _format_java_list(values: Iterable[object]) -> str:
    """Format a list as Java prints it."""
    return f"[{', '.join(map(str, values))}]"
