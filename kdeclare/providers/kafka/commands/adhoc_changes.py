"""Change topics and configs ad hoc. One command can change many topics in one request (KIP-4)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Annotated

from pydantic import Field

from kdeclare.app.adhoc.references import resolve_references
from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
from kdeclare.app.apply import ApplyOptions
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.manifests.syntax.substitution import UnresolvedReference
from kdeclare.providers.kafka.commands.topic_selection import (
    is_topic_pattern,
    report_unknown_topic,
    select_named_topics,
)
from kdeclare.providers.kafka.config.config_value import UNKNOWN_CONFIG
from kdeclare.providers.kafka.config.configs_kind import ConfigsBody, ConfigsKind
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState, Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.topic.adhoc_request import (
    AdhocTopicRequest,
    build_altered_topic,
    build_created_topic,
)
from kdeclare.providers.kafka.topic.diff import list_target_replicas
from kdeclare.providers.kafka.topic.spec import TopicBody
from kdeclare.report.adhoc import AdhocLabels, AdhocResult
from kdeclare.report.elements.values import format_count, join_nonempty

RequestBuilder = Callable[[Cluster], AdhocRequest]
"""A function that builds an ad hoc request from the live cluster."""

BodyBuilder = Callable[[AdhocTopicRequest], tuple[TopicBody, tuple[Diagnostic, ...]]]
"""A function that builds the body of a topic from a request, and diagnostics about the request."""

TOPIC_WORDING = AdhocLabels(
    ongoing="replicas are being moved",
    follow_hint="Follow the moves with 'kdeclare status --watch'.",
    look_hint="Check the topics with 'kdeclare topic describe'.",
)
_ALREADY_EXISTS = "The topic already exists."
_DOES_NOT_EXIST = "The topic does not exist."


def create_topics(
    workspace: Workspace,
    requests: Sequence[AdhocTopicRequest],
    options: AdhocOptions,
    apply_options: ApplyOptions,
    *,
    if_not_exists: bool,
) -> AdhocResult | None:
    """Create topics. Return the result, or None if the user declined. Raises KdeclareError.

    if_not_exists: whether to skip topics that already exist, rather than report an error.
    """

    def build_request(cluster: Cluster) -> AdhocRequest:
        draft = _RequestDraft()
        existing_topics = cluster.topics([item.topic for item in requests])
        for item in draft.select_last(requests):
            if item.topic in existing_topics and if_not_exists:
                draft.left_out[str(item.resource)] = _ALREADY_EXISTS
            elif item.topic in existing_topics:
                draft.fail(item.resource, _report_existing_topic(item))
            else:
                draft.add(workspace, item, build_created_topic)
        return draft.done()

    return run_adhoc(workspace, _build_command(build_request), options, apply_options)


def alter_topics(
    workspace: Workspace,
    requests: Sequence[AdhocTopicRequest],
    options: AdhocOptions,
    apply_options: ApplyOptions,
    *,
    if_exists: bool,
) -> AdhocResult | None:
    """Change topics as KIP-4 specifies. Return the result, or None if the user declined.

    A name can be a regular expression (see `topic_selection`), which selects all matching topics. Raises
    KdeclareError.
    if_exists: whether to skip topics that do not exist, rather than report an error.
    """

    def build_request(cluster: Cluster) -> AdhocRequest:
        draft = _RequestDraft()
        existing = _find_existing(cluster, [item.topic for item in requests])
        items = [replace(item, topic=name) for item in requests for name in existing.find_matches(item.topic)]
        for item in draft.select_last(items):
            topic = existing.topics.get(item.topic)
            if topic is not None:
                draft.add(
                    workspace, item, partial(build_altered_topic, partition_count=len(topic.partitions))
                )
            else:
                draft.add_missing(
                    item.resource, if_exists=if_exists, diagnostic=existing.missing(item.topic, item.place)
                )
        return draft.done()

    return run_adhoc(workspace, _build_command(build_request), options, apply_options)


def delete_topics(
    workspace: Workspace,
    names: Sequence[str],
    options: AdhocOptions,
    apply_options: ApplyOptions,
    *,
    if_exists: bool,
) -> AdhocResult | None:
    """Delete topics. Return the result, or None if the user declined.

    names, if_exists: see `alter_topics`.
    """

    def build_request(cluster: Cluster) -> AdhocRequest:
        draft = _RequestDraft()
        existing = _find_existing(cluster, names)
        for item in draft.select_last(
            AdhocTopicRequest(name) for text in names for name in existing.find_matches(text)
        ):
            if item.topic in existing.topics:
                draft.removals.add(item.resource)
            else:
                draft.add_missing(item.resource, if_exists=if_exists, diagnostic=existing.missing(item.topic))
        return draft.done()

    return run_adhoc(workspace, _build_command(build_request), options, apply_options)


def _build_command(build_request: RequestBuilder) -> AdhocCommand:
    return AdhocCommand(
        lambda connections: build_request(connections.get(KafkaConnection).cluster),
        summarize_topic,
        TOPIC_WORDING,
    )


def _filter_certain_errors(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the errors except unknown config keys. The brokers can know more keys than kdeclare."""
    return tuple(d for d in diagnostics if d.is_error and d.code != UNKNOWN_CONFIG)


@dataclass
class _RequestDraft:
    """A builder for ad hoc requests."""

    desired: list[DesiredResource] = field(default_factory=list)
    removals: set[ResourceId] = field(default_factory=set)
    failed: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def select_last(self, requests: Iterable[AdhocTopicRequest]) -> list[AdhocTopicRequest]:
        """Return the last request for each topic (KIP-4). Warn about topics with several requests."""
        last_by_topic: dict[str, AdhocTopicRequest] = {}
        repeated: dict[str, AdhocTopicRequest] = {}
        for item in requests:
            if item.topic in last_by_topic:
                repeated[item.topic] = item
            last_by_topic[item.topic] = item
        self.diagnostics += [_warn_repeated(item) for item in repeated.values()]
        return list(last_by_topic.values())

    def add(self, workspace: Workspace, item: AdhocTopicRequest, build_body: BodyBuilder) -> None:
        """Add the topic of a request. If the request has errors, add the errors instead."""
        try:
            item = replace(item, configs=resolve_references(workspace, item.configs, str(item.resource)))
        except UnresolvedReference as problem:
            self.fail(item.resource, replace(problem.diagnostic, place=item.place))
            return
        body, body_diagnostics = build_body(item)
        diagnostics = tuple(replace(d, place=d.place or item.place) for d in body_diagnostics)
        errors = _filter_certain_errors(diagnostics)
        if errors:
            self.failed[str(item.resource)] = errors
            return
        self.diagnostics += diagnostics
        self.desired.append(DesiredResource(item.resource, body, source=item.place))

    def fail(self, resource: ResourceId, problem: Diagnostic) -> None:
        """Record that the request for a resource is invalid."""
        self.failed[str(resource)] = (problem,)

    def add_missing(self, resource: ResourceId, *, if_exists: bool, diagnostic: Diagnostic) -> None:
        """Record that a resource does not exist. This is an error unless ``if_exists`` is set."""
        if if_exists:
            self.left_out[str(resource)] = _DOES_NOT_EXIST
        else:
            self.fail(resource, diagnostic)

    def done(self) -> AdhocRequest:
        """Return the finished request."""
        return AdhocRequest(
            tuple(self.desired),
            frozenset(self.removals),
            self.failed,
            self.left_out,
            tuple(self.diagnostics),
        )


def _report_existing_topic(item: AdhocTopicRequest) -> Diagnostic:
    return error(
        "topic-exists",
        "Topic already exists",
        f"Topic '{item.topic}' already exists and was not changed.",
        hint="Use 'kdeclare topic alter' to change the topic, or pass --if-not-exists to skip existing "
        "topics.",
        place=item.place,
        resource=str(item.resource),
    )


def _warn_repeated(item: AdhocTopicRequest) -> Diagnostic:
    return warning(
        "asked-twice",
        "Topic requested more than once",
        f"Topic '{item.topic}' was requested several times. kdeclare uses only the last request.",
        hint="Request each topic only once.",
        place=item.place,
        resource=str(item.resource),
    )


@dataclass(frozen=True, slots=True)
class ExistingTopics:
    """The existing topics that an ad hoc command has read.

    topics: the requested topics that exist, and possibly more topics.
    names: the names of all topics. They are read only if a requested topic is missing.
    """

    topics: Mapping[str, Topic]
    names: frozenset[str] = frozenset()

    def find_matches(self, text: str) -> tuple[str, ...]:
        """Return the topics that a name or expression matches. If none match, return the argument itself."""
        return select_named_topics([text], self.topics.keys()).found or (text,)

    def missing(self, text: str, place: SourcePosition | None = None) -> Diagnostic:
        """Build the error for a name that matches no topic."""
        return replace(report_unknown_topic(text, self.names), place=place, resource=f"Topic/{text}")


def _find_existing(cluster: Cluster, texts: Sequence[str]) -> ExistingTopics:
    has_patterns = any(map(is_topic_pattern, texts))
    topics = cluster.topics(None if has_patterns else list(dict.fromkeys(texts)))
    missing = select_named_topics(texts, topics.keys()).missing
    if not missing:
        return ExistingTopics(topics)
    return ExistingTopics(topics, frozenset(topics if has_patterns else cluster.topics()))


def alter_topic_configs(
    workspace: Workspace,
    names: Sequence[str],
    configs: Mapping[str, object],
    options: AdhocOptions,
    apply_options: ApplyOptions,
    *,
    if_exists: bool,
) -> AdhocResult | None:
    """Change the configs of topics in the same way as `alter_topics`. Raises KdeclareError."""
    requests = [AdhocTopicRequest(name, configs=configs) for name in names]
    return alter_topics(workspace, requests, options, apply_options, if_exists=if_exists)


def alter_resource_configs(
    workspace: Workspace,
    kind_name: str,
    names: Sequence[str],
    configs: Mapping[str, object],
    options: AdhocOptions,
    apply_options: ApplyOptions,
) -> AdhocResult | None:
    """Change dynamic configs of brokers, groups or client metrics subscriptions. Raises KdeclareError.

    kind_name: the name of a `ConfigsKind`.
    """
    kind = KINDS[kind_name]
    assert isinstance(kind, ConfigsKind)

    def build_request(cluster: Cluster) -> AdhocRequest:
        desired: list[DesiredResource] = []
        failed: dict[str, tuple[Diagnostic, ...]] = {}
        diagnostics: list[Diagnostic] = []
        for name in dict.fromkeys(names):
            resource = ResourceId(kind_name, name)
            try:
                resolved_configs = resolve_references(workspace, configs, str(resource))
            except UnresolvedReference as problem:
                failed[str(resource)] = (problem.diagnostic,)
                continue
            values, problems = kind.parse_configs(name, resolved_configs)
            body_diagnostics = tuple(problem.diagnostic for problem in problems)
            errors = _filter_certain_errors(body_diagnostics)
            if errors:
                failed[str(resource)] = errors
                continue
            diagnostics += body_diagnostics
            desired.append(DesiredResource(resource, ConfigsBody(values, is_partial=True)))
        return AdhocRequest(tuple(desired), failed=failed, diagnostics=tuple(diagnostics))

    return run_adhoc(workspace, _build_command(build_request), options, apply_options)


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """The state of a topic in the metadata after a change.

    factors: the distinct replication factors of the partitions, sorted.
    leaderless: the number of partitions without a leader.
    """

    schema_name = "SeenDocument"

    partitions: int
    factors: Annotated[tuple[int, ...], Field(description="Distinct replication factors of the partitions.")]
    replicas: Annotated[int, Field(description="Total number of replicas of the topic.")]
    in_sync: Annotated[int, Field(description="Number of replicas that the leaders report as in sync.")]
    leaderless: int

    def describe(self) -> str:
        """Describe the topic on one line."""
        factors = "/".join(map(str, self.factors))
        replicas = "replica" if factors == "1" else "replicas"
        lagging_count = self.replicas - self.in_sync
        sync_text = (
            "all in sync"
            if not lagging_count
            else f"{lagging_count:,} of {format_count(self.replicas, 'replica')} not in sync"
        )
        return join_nonempty(
            [
                f"{format_count(self.partitions, 'partition')} × {factors} {replicas}",
                f"{sync_text} according to their leaders",
                f"{self.leaderless:,} without a leader" if self.leaderless else "",
            ]
        )


def summarize_topic(resource: ResourceId, live: LiveState) -> TopicSummary | None:
    """Return the summary of a topic, or None if the resource is not an existing topic."""
    if not is_topic(resource):
        return None
    cluster = live.get(KafkaState)
    topic = cluster.topics.get(resource.name)
    if topic is None:
        return None
    replicas = list_target_replicas(cluster, topic)
    return TopicSummary(
        partitions=len(topic.partitions),
        factors=tuple(sorted({len(r) for r in replicas})),
        replicas=sum(len(r) for r in replicas),
        in_sync=sum(len(set(p.isr) & set(r)) for p, r in zip(topic.partitions, replicas, strict=True)),
        leaderless=sum(p.leader is None for p in topic.partitions),
    )
