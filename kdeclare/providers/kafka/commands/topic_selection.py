"""Which topics a command is about: exact names, regular expressions, and files of names."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.document_models import load_document, validate_document
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_position
from kdeclare.providers.kafka.topic.adhoc_request import AdhocTopicRequest
from kdeclare.providers.kafka.topic.spec import INT32

_NAME = re.compile(r"[a-zA-Z0-9._-]*")
"""What a topic's name consists of (org.apache.kafka.common.internals.Topic.LEGAL_CHARS)."""


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """What names come to.

    found: topics, each once, in the order of the names; what one regular expression matches is sorted.
    missing: the names that stand for no topic, as they were given.
    """

    found: tuple[str, ...]
    missing: tuple[str, ...]


def is_topic_pattern(name: str) -> bool:
    """Whether a name is a regular expression: it holds what no topic's name does.

    A dot alone makes none. To Kafka's tools all names are expressions, and ``a.b`` means ``axb`` as well.
    """
    return _NAME.fullmatch(name) is None


def select_named_topics(names: Sequence[str], existing_topics: Collection[str]) -> TopicSelection:
    """The topics that are meant, of those that are ``there``; without names all of them.

    A regular expression (RE2) means what it matches as a whole. Raises KdeclareError (``bad-pattern``) for
    one that is malformed.
    """
    if not names:
        return TopicSelection(tuple(sorted(existing_topics)), ())
    topics: dict[str, None] = {}
    missing: dict[str, None] = {}
    for name in names:
        matches = _find_matches(name, existing_topics)
        topics |= dict.fromkeys(matches)
        if not matches:
            missing[name] = None
    return TopicSelection(tuple(topics), tuple(missing))


def report_unknown_topic(name: str, existing_topics: Collection[str]) -> Diagnostic:
    """The error about one name that stands for no topic."""
    if not is_topic_pattern(name):
        suggestion = format_suggestion(name, existing_topics)
        return error("no-such-topic", "No such topic", f"There is no topic '{name}'.", suggestion)
    hint = "Several names are arguments of their own, or go with --topic." if "," in name else ""
    return error("no-such-topic", "No such topic", f"No topic's name matches '{name}'.", hint)


def _find_matches(name: str, existing_topics: Collection[str]) -> list[str]:
    if not is_topic_pattern(name):
        return [name] if name in existing_topics else []
    try:
        pattern = compile_pattern(name)
    except PatternError as pattern_error:
        raise KdeclareError(_report_bad_pattern(name, pattern_error)) from None
    return sorted(filter(pattern.matches, existing_topics))


def _report_bad_pattern(name: str, pattern_error: PatternError) -> Diagnostic:
    return error(
        "bad-pattern",
        "Not a regular expression",
        f"'{name}' is no name of a topic, and no regular expression either: {pattern_error.located_reason}.",
        "Names consist of letters, digits, '.', '_' and '-'; for all that begin with x, write 'x.*'. "
        f"Regular expressions: {RE2_HINT.removeprefix('They are ')}",
    )


class TopicEntry(BaseModel):
    """What is asked of one topic; the fields are those of a Topic manifest's ``spec``."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topic: Annotated[str, Field(min_length=1)]
    partitions: Annotated[int, Field(ge=1, le=INT32)] | None = None
    replicationFactor: Annotated[int, Field(ge=1, le=32767)] | None = None  # noqa: N815
    assignments: dict[Annotated[int, Field(ge=0)], list[Annotated[int, Field(ge=0, le=INT32)]]] = {}
    configs: dict[str, Any] = {}


class TopicsFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topics: list[TopicEntry]
    version: int = 1  # as in the files of Kafka's own tools


def load_requests(file: Path) -> tuple[AdhocTopicRequest, ...]:
    """The instructions in the order of the file; references in their configs are still to be read.

    Raises KdeclareError with all that is wrong with the file.
    """
    root = load_document(file, "Topics", "Name a file with a list 'topics'.")
    manifest = validate_document(TopicsFile, root, NodeReader(None))
    if not manifest.topics:
        place = find_position(root, ("topics",))
        raise KdeclareError(error("no-topics", "No topics", "The list 'topics' is empty.", place=place))
    return tuple(
        AdhocTopicRequest(
            topic=entry.topic,
            partitions=entry.partitions,
            replication_factor=entry.replicationFactor,
            assignments={n: tuple(replicas) for n, replicas in entry.assignments.items()},
            configs=entry.configs,
            place=find_position(root, ("topics", index, "topic")),
        )
        for index, entry in enumerate(manifest.topics)
    )
