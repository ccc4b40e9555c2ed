"""The usage of topics as ``kdeclare usage`` shows it. The JSON output has the structure of these classes."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.documents import Diagnostics, Second, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.units import format_count, format_names
from kdeclare.providers.kafka.impact.wording import UNKNOWN_READERS
from kdeclare.providers.kafka.usage.topic_purpose import TopicPurpose
from kdeclare.providers.kafka.usage.topic_usage import (
    ClusterUsage,
    TopicUsage,
    Unknown,
    explain_unknown_groups,
    get_known,
)

_Milliseconds = Field(description="Milliseconds since 1970; null if there are no records, or if unknown.")


@dataclass(frozen=True, slots=True)
class GroupUsageView:
    """One group that reads a topic."""

    schema_name = "GroupUsageDocument"

    id: str
    state: Annotated[str, Field(description="The state of the group, as Kafka reports it.")]
    members: Annotated[
        int | None,
        Field(
            description="Number of members that have partitions of the topic; null if the group has members "
            "without partitions, which may soon read the topic."
        ),
    ]
    unread: Annotated[
        int | None, Field(description="Records of the topic that the group has not read; null if unknown.")
    ]


@dataclass(frozen=True, slots=True)
class UnknownView:
    """The values of a topic that could not be determined, all for the same reason."""

    schema_name = "UnknownUsageDocument"

    fields: Annotated[tuple[str, ...], Field(description="The fields of the topic that are null.")]
    reason: str


@dataclass(frozen=True, slots=True)
class TopicUsageView:
    """Who writes and reads one topic. An unknown value is None, and ``unknown`` has the reason."""

    schema_name = "TopicUsageDocument"

    name: str
    purpose: Annotated[
        TopicPurpose | None,
        Field(
            description="The system that, according to the topic's name, stores its own data in the topic."
        ),
    ]
    partition_count: int
    records: Annotated[int | None, Field(description="The number of offsets; null if unknown.")]
    bytes: Annotated[int | None, Field(description="The size of the leader replicas; null if unknown.")]
    newest_record_ms: Annotated[int | None, _Milliseconds]
    active_producers: Annotated[
        int | None,
        Field(
            description="Producers that wrote within the last hour or have an open transaction; null if "
            "unknown."
        ),
    ]
    groups: Annotated[
        tuple[GroupUsageView, ...] | None, Field(description="Those with members first; null if unknown.")
    ]
    unknown: Annotated[tuple[UnknownView, ...], Field(description="Empty if all values are known.")]

    def is_unknown(self, name: str) -> bool:
        """Return whether the value of a field could not be determined."""
        return any(name in item.fields for item in self.unknown)


@dataclass(frozen=True, slots=True)
class UndeterminedView:
    """A topic for which kdeclare cannot determine whether it is unused."""

    schema_name = "UndeterminedTopicDocument"

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class UsageView:
    """Who writes and reads the topics of a cluster.

    unused_for_s: if only unused topics were requested, the minimum time since the last write, in seconds.
    of_topics: the number of topics that were examined.
    undetermined: topics for which kdeclare cannot determine whether they are unused. ``topics`` does not
        contain them.
    """

    cluster: str
    read_at: Second
    unused_for_s: Annotated[
        float | None,
        Field(description="With --unused, the minimum age of the last write in seconds; otherwise null."),
    ]
    of_topics: Annotated[int, Field(serialization_alias="topics_looked_at")]
    topics: tuple[TopicUsageView, ...]
    undetermined: Annotated[
        tuple[UndeterminedView, ...],
        Field(
            description="With --unused, the topics for which kdeclare cannot determine whether they are "
            "unused."
        ),
    ]
    all_groups_visible: Annotated[
        bool, Field(description="False if groups may exist that the principal is not permitted to see.")
    ]
    unknown_groups: Annotated[
        tuple[str, ...],
        Field(description=f"Groups whose topics are unknown: {UNKNOWN_READERS}."),
    ]
    diagnostics: Diagnostics = ()


def build_usage_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas by name; see `publish_schemas`."""
    return publish_schemas({"usage": UsageView})


def build_usage_view(
    cluster: str, read_at: datetime, usage: ClusterUsage, unused_for_s: float | None = None
) -> UsageView:
    """Return the view of all topics, or of the unused topics.

    unused_for_s: a topic is unused if no group has members that read it, and if the last record was written
        at least this many seconds ago. None selects all topics.
    """
    topics, undetermined = _select_topics(usage.topics, read_at, unused_for_s)
    return UsageView(
        cluster,
        read_at,
        unused_for_s,
        len(usage.topics),
        tuple(map(_build_topic_view, topics)),
        tuple(undetermined),
        usage.all_groups_visible,
        usage.unknown_groups,
        tuple(_report_unknown(usage)),
    )


def _select_topics(
    topics: Sequence[TopicUsage], read_at: datetime, unused_for_s: float | None
) -> tuple[Sequence[TopicUsage], list[UndeterminedView]]:
    if unused_for_s is None:
        return topics, []
    since_ms = int((read_at.timestamp() - unused_for_s) * 1000)
    unused: list[TopicUsage] = []
    undetermined: list[UndeterminedView] = []
    for topic in topics:
        answer = topic.check_unused(since_ms)
        if isinstance(answer, Unknown):
            undetermined.append(UndeterminedView(topic.name, answer.reason))
        elif answer:
            unused.append(topic)
    return unused, undetermined


def _build_topic_view(topic: TopicUsage) -> TopicUsageView:
    unknown: dict[str, list[str]] = {}
    for name, value in _list_values(topic):
        if isinstance(value, Unknown):
            unknown.setdefault(value.reason, []).append(name)
    return TopicUsageView(
        topic.name,
        topic.purpose,
        topic.partitions,
        get_known(topic.records),
        get_known(topic.size),
        get_known(topic.newest_ms),
        get_known(topic.producers),
        None
        if isinstance(topic.groups, Unknown)
        else tuple(GroupUsageView(g.id, g.state, g.members, g.unread) for g in topic.groups),
        tuple(UnknownView(tuple(names), reason) for reason, names in unknown.items()),
    )


def _list_values(topic: TopicUsage) -> Iterator[tuple[str, object]]:
    """Yield the values of a topic, each with its name in the JSON output."""
    yield "records", topic.records
    yield "bytes", topic.size
    yield "newest_record_ms", topic.newest_ms
    yield "active_producers", topic.producers
    yield "groups", topic.groups


_NOUNS = {
    "records": "the records",
    "bytes": "the size",
    "newest_record_ms": "the newest record",
    "active_producers": "the producers",
    "groups": "the groups",
}


def _report_unknown(usage: ClusterUsage) -> Iterator[Diagnostic]:
    """Yield warnings about the values that could not be determined, grouped by reason."""
    names_by_problem: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for topic in usage.topics:
        fields_by_reason: dict[str, list[str]] = {}
        for name, value in _list_values(topic):
            if isinstance(value, Unknown):
                fields_by_reason.setdefault(value.reason, []).append(name)
        for reason, names in fields_by_reason.items():
            names_by_problem.setdefault((tuple(names), reason), []).append(topic.name)
    for (fields, reason), topics in names_by_problem.items():
        what = _join_nouns([_NOUNS[name] for name in fields])
        of_topics = f"{format_count(len(topics), 'topic')} ({format_names(topics)})"
        yield _warn_unknown(f"kdeclare could not determine {what} of {of_topics}: {reason}.")
    for reason, unknown_topics in usage.unknown_storage.items():
        of_topics = f"{format_count(len(unknown_topics), 'topic')} ({format_names(unknown_topics)})"
        yield _warn_unknown(
            f"kdeclare could not determine whether tiered storage is used for {of_topics}: {reason}. Sizes "
            "do not include data in tiered storage."
        )
    if not usage.all_groups_visible:
        yield warning(
            "hidden-groups",
            "Some groups may be hidden",
            "Groups that are not shown may also read these topics: without the Describe permission on the "
            "cluster, kdeclare sees only the groups that it is permitted to describe.",
            "Grant kdeclare the Describe permission on the cluster.",
        )
    if usage.unknown_groups:
        yield warning(
            "unknown-readers",
            "Topics of some groups are unknown",
            f"{explain_unknown_groups(usage)}. kdeclare cannot determine the topics of {UNKNOWN_READERS}.",
            "Run kdeclare group list to see the types and states of the groups.",
        )


def _join_nouns(nouns: Sequence[str]) -> str:
    return nouns[0] if len(nouns) == 1 else f"{', '.join(nouns[:-1])} and {nouns[-1]}"


def _warn_unknown(detail: str) -> Diagnostic:
    return warning("usage-unknown", "Usage is only partly known", detail)
