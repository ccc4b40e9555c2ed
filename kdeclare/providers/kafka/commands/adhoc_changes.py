"""Change topics and configs ad hoc. One command can change many topics in one request (KIP-4)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated

from pydantic import Field

from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
from kdeclare.app.apply import ApplyOptions
from kdeclare.app.workspace import Workspace
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.commands.topic_requests import (
    build_alter_request,
    build_configs_request,
    build_create_request,
    build_delete_request,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.topic.adhoc_request import (
    AdhocTopicRequest,
)
from kdeclare.providers.kafka.topic.diff import list_target_replicas
from kdeclare.report.adhoc import AdhocLabels, AdhocResult
from kdeclare.report.elements.values import format_count, join_nonempty

RequestBuilder = Callable[[Cluster], AdhocRequest]
"""A function that builds an ad hoc request from the live cluster."""

TOPIC_WORDING = AdhocLabels(
    ongoing="replicas are being moved",
    follow_hint="Follow the moves with 'kdeclare status --watch'.",
    look_hint="Check the topics with 'kdeclare topic describe'.",
)


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
    build_request = partial(build_create_request, workspace, requests, if_not_exists=if_not_exists)
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

    Raises KdeclareError. requests, if_exists: see `build_alter_request`.
    """
    build_request = partial(build_alter_request, workspace, requests, if_exists=if_exists)
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

    names, if_exists: see `build_delete_request`.
    """
    build_request = partial(build_delete_request, names, if_exists=if_exists)
    return run_adhoc(workspace, _build_command(build_request), options, apply_options)


def _build_command(build_request: RequestBuilder) -> AdhocCommand:
    return AdhocCommand(
        lambda connections: build_request(connections.get(KafkaConnection).cluster),
        summarize_topic,
        TOPIC_WORDING,
    )


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
    command = _build_command(lambda _: build_configs_request(workspace, kind_name, names, configs))
    return run_adhoc(workspace, command, options, apply_options)


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
