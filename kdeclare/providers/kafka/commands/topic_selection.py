"""Select the topics of a command by exact names, regular expressions, or a file."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.document_models import load_document, validate_document
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_position
from kdeclare.providers.kafka.topic.adhoc_request import AdhocTopicRequest
from kdeclare.providers.kafka.topic.spec import INT32

_NAME = re.compile(r"[a-zA-Z0-9._-]*")
"""The legal characters of a topic name (org.apache.kafka.common.internals.Topic.LEGAL_CHARS)."""


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """The topics that the names and expressions of a command select.

    found: the topics without duplicates, in the order of the names. The matches of one regular expression are
        sorted.
    missing: the names that match no topics, as the user wrote them.
    """

    found: tuple[str, ...]
    missing: tuple[str, ...]


def is_topic_pattern(name: str) -> bool:
    """Return whether a name is a regular expression: it contains a character that topic names cannot contain.

    ``a.b`` is a name. Kafka's tools treat every name as a regular expression, so that ``a.b`` also matches
    ``axb``.
    """
    return _NAME.fullmatch(name) is None


def select_named_topics(names: Sequence[str], existing_topics: Collection[str]) -> TopicSelection:
    """Select topics by names and regular expressions. If no names are given, select all existing topics.

    A regular expression (RE2) must match the whole name. Raises KdeclareError (``bad-pattern``) if an
    expression is invalid.
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
    """Build the error for a name that matches no topic."""
    if not is_topic_pattern(name):
        suggestion = format_suggestion(name, existing_topics)
        return error("no-such-topic", "No such topic", f"There is no topic '{name}'.", suggestion)
    return error(
        "no-such-topic",
        "No such topic",
        f"No topic name matches '{name}'.",
        "Pass several names as separate arguments, or as a comma-separated list with --topic."
        if "," in name
        else "Correct the regular expression. The expression must match the whole name of a topic.",
    )


def _find_matches(name: str, existing_topics: Collection[str]) -> list[str]:
    if not is_topic_pattern(name):
        return [name] if name in existing_topics else []
    try:
        pattern = compile_pattern(name)
    except PatternError as pattern_error:
        raise KdeclareError(_report_bad_pattern(name, pattern_error), exit_code=ExitCode.USAGE) from None
    return sorted(filter(pattern.matches, existing_topics))


def _report_bad_pattern(name: str, pattern_error: PatternError) -> Diagnostic:
    return error(
        "bad-pattern",
        "Invalid regular expression",
        f"'{name}' is neither a legal topic name nor a valid regular expression: "
        f"{pattern_error.located_reason}.",
        "In topic names, use only letters, digits, '.', '_' and '-'. To match all names that start with x, "
        f"write 'x.*'. {RE2_HINT}",
    )


class TopicEntry(BaseModel):
    """The request for one topic. The fields are the same as in the ``spec`` of a Topic manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topic: Annotated[str, Field(min_length=1)]
    partitions: Annotated[int, Field(ge=1, le=INT32)] | None = None
    replicationFactor: Annotated[int, Field(ge=1, le=32767)] | None = None  # noqa: N815
    assignments: dict[Annotated[int, Field(ge=0)], list[Annotated[int, Field(ge=0, le=INT32)]]] = {}
    configs: dict[str, Any] = {}


class TopicsFile(BaseModel):
    """The content of the file that is passed to --from-file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    topics: list[TopicEntry]
    version: int = 1  # The files of Kafka's tools also have this field.


def load_requests(file: Path) -> tuple[AdhocTopicRequest, ...]:
    """Return the requests in the order of the file. References such as ``${env.NAME}`` are not resolved.

    Raises KdeclareError with all mistakes in the file.
    """
    root = load_document(file, "Topics", "Pass a file with a list 'topics'.")
    manifest = validate_document(TopicsFile, root, NodeReader(None))
    if not manifest.topics:
        place = find_position(root, ("topics",))
        raise KdeclareError(
            error(
                "no-topics",
                "No topics",
                "The list 'topics' is empty.",
                hint="Add at least one topic to the list.",
                place=place,
            )
        )
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
