"""The files of Kafka's kafka-reassign-partitions tool: reading and writing them, in that tool's words.

Everything that the tool refuses is refused, for its reasons. Some things that it takes are refused too:
text after the JSON, which it leaves out without a word; topics, partitions, brokers and log directories that
no cluster can have, which it finds out late, some when the moves have begun; in files for --verify and
--cancel what it refuses in those for --execute; and nesting that no such file has any use for.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import TypeVar

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.jsontypes import Json
from kdeclare.providers.kafka.commands.reassign.json_source import MAX_INT, VERSION, Path, Source
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.topic.spec import is_legal_name

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


def _assignment(source: Source, item: Json, path: Path) -> Assignment | None:
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


def _topic(source: Source, item: Json, path: Path) -> str | None:
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


def _partition(source: Source, entry: dict[str, Json], path: Path) -> int | None:
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


def _replicas(source: Source, entry: dict[str, Json], path: Path) -> tuple[int, ...] | None:
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


def _log_dirs(source: Source, entry: dict[str, Json], path: Path) -> tuple[str, ...] | None:
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
