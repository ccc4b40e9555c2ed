"""Build the requests of ad hoc commands that change topics and configs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from kdeclare.app.adhoc.references import resolve_references
from kdeclare.app.adhoc.run import AdhocRequest
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error, warning
from kdeclare.core.frozen_dataclass import dataclass
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
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.topic.adhoc_request import (
    AdhocTopicRequest,
    build_altered_topic,
    build_created_topic,
)
from kdeclare.providers.kafka.topic.spec import TopicBody

BodyBuilder = Callable[[AdhocTopicRequest], tuple[TopicBody, tuple[Diagnostic, ...]]]
"""A function that returns the desired body of a topic for a request, and diagnostics about the request."""

_ALREADY_EXISTS = "The topic already exists."
_DOES_NOT_EXIST = "The topic does not exist."


def build_create_request(
    workspace: Workspace, requests: Sequence[AdhocTopicRequest], cluster: Cluster, *, if_not_exists: bool
) -> AdhocRequest:
    """Build the request to create topics.

    if_not_exists: whether to skip topics that already exist, rather than report an error.
    """
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


def build_alter_request(
    workspace: Workspace, requests: Sequence[AdhocTopicRequest], cluster: Cluster, *, if_exists: bool
) -> AdhocRequest:
    """Build the request to change topics as KIP-4 specifies.

    A name can be a regular expression (see `topic_selection`), which selects all matching topics.
    if_exists: whether to skip topics that do not exist, rather than report an error.
    """
    draft = _RequestDraft()
    existing = _find_existing(cluster, [item.topic for item in requests])
    items = [replace(item, topic=name) for item in requests for name in existing.find_matches(item.topic)]
    for item in draft.select_last(items):
        topic = existing.topics.get(item.topic)
        if topic is not None:
            draft.add(workspace, item, partial(build_altered_topic, partition_count=len(topic.partitions)))
        else:
            draft.add_missing(
                item.resource, if_exists=if_exists, diagnostic=existing.missing(item.topic, item.place)
            )
    return draft.done()


def build_delete_request(names: Sequence[str], cluster: Cluster, *, if_exists: bool) -> AdhocRequest:
    """Build the request to delete topics. names, if_exists: see `build_alter_request`."""
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


def build_configs_request(
    workspace: Workspace, kind_name: str, names: Sequence[str], configs: Mapping[str, object]
) -> AdhocRequest:
    """Build the request to change configs of brokers, groups or client metrics subscriptions.

    kind_name: the name of a `ConfigsKind`.
    """
    kind = KINDS[kind_name]
    assert isinstance(kind, ConfigsKind)
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


def _filter_certain_errors(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the errors, except errors about unknown config keys.

    The brokers can know keys that kdeclare does not know.
    """
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
        """Add the topic that ``item`` requests or, if ``item`` has errors, add the errors."""
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
