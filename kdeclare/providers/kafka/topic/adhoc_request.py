"""Ad hoc requests to create or alter one topic, with the semantics of KIP-4.

See KIP-4, "Create Topic Request" and "Alter Topic Request". If a topic is altered, assignments take
precedence over counts, and assigned partitions that do not exist are added. Without assignments, the
replication factor applies to all partitions, including added partitions. If the request contains only a
partition count, the existing partitions keep their replicas.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_value import parse_config_values
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.topic.spec import TopicBody, TopicSpec, parse_topic

Assignments = Mapping[int, tuple[int, ...]]
"""The brokers of each partition's replicas, with the preferred leader first."""


@dataclass(frozen=True, slots=True)
class AdhocTopicRequest:
    """A request for one topic. A field that is None or empty requests no change.

    configs: the values by key, as in the ``configs`` of a manifest: a value, ``{append, subtract}``, or None
        to remove the override.
    place: the position of the request, if the request comes from a file.
    """

    topic: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Assignments = field(default_factory=dict)
    configs: Mapping[str, Any] = field(default_factory=dict)
    place: SourcePosition | None = None

    @property
    def resource(self) -> ResourceId:
        """The resource id of the topic."""
        return ResourceId("Topic", self.topic)

    @property
    def is_empty(self) -> bool:
        """Whether the request contains nothing but the name of the topic."""
        counts = (self.partitions, self.replication_factor)
        return counts == (None, None) and not self.assignments and not self.configs


def build_created_topic(request: AdhocTopicRequest) -> tuple[TopicBody, tuple[Diagnostic, ...]]:
    """Return the topic to create, and the problems of the request.

    The function does not check whether the topic exists. As in Kafka's implementation of KIP-4, assignments
    and counts cannot be combined.
    """
    assignments = {n: list(replicas) for n, replicas in request.assignments.items()} or None
    spec = TopicSpec(
        partitions=request.partitions,
        replicationFactor=request.replication_factor,
        assignments=assignments,
        configs=dict(request.configs),
    )
    body, problems = parse_topic(request.topic, spec)
    return body, tuple(problem.diagnostic for problem in problems)


def build_altered_topic(
    request: AdhocTopicRequest, partition_count: int
) -> tuple[TopicBody, tuple[Diagnostic, ...]]:
    """Return the requested state of a topic, with errors and warnings.

    partition_count: the current number of partitions of the topic.
    """
    resource = str(request.resource)
    config_values, config_problems = parse_config_values(
        resource, request.configs, load_catalog(ConfigScope.TOPIC)
    )
    diagnostics = [problem.diagnostic for problem in config_problems]
    if not request.assignments:
        return TopicBody(request.partitions, request.replication_factor, configs=config_values), tuple(
            diagnostics
        )
    diagnostics += _warn_ignored_counts(request)
    diagnostics += _check_assignments(request, partition_count)
    total = max(request.assignments) + 1
    body = TopicBody(
        partitions=total if total > partition_count else None,
        assignments={n: request.assignments[n] for n in sorted(request.assignments)},
        configs=config_values,
    )
    return body, tuple(diagnostics)


def _warn_ignored_counts(request: AdhocTopicRequest) -> list[Diagnostic]:
    counts = {"partitions": request.partitions, "replication factor": request.replication_factor}
    names = [name for name, value in counts.items() if value is not None]
    if not names:
        return []
    return [
        warning(
            "counts-ignored",
            "Partition count or replication factor ignored",
            f"The replica assignment of topic '{request.topic}' takes precedence, so kdeclare ignores the "
            f"requested {' and '.join(names)}.",
            hint="Request either a replica assignment, or a partition count and a replication factor.",
            resource=str(request.resource),
        )
    ]


def _check_assignments(request: AdhocTopicRequest, partition_count: int) -> list[Diagnostic]:
    messages = []
    if min(request.assignments) < 0:
        messages.append(f"partition {min(request.assignments)} is invalid; partition numbers start at 0.")
    missing = set(range(partition_count, max(request.assignments))) - request.assignments.keys()
    if missing:
        messages.append(
            f"the topic has {partition_count} partitions, so partition {max(request.assignments)} cannot be "
            f"added without partition {min(missing)}."
        )
    for n, replicas in sorted(request.assignments.items()):
        if not replicas or len(set(replicas)) != len(replicas):
            messages.append(
                f"the replicas {list(replicas)} of partition {n} are invalid; a partition must have at least "
                "one replica, and all replicas must be on different brokers."
            )
    return [
        error(
            "invalid-assignments",
            "Invalid assignments",
            f"{request.resource}: {text}",
            place=request.place,
            resource=str(request.resource),
        )
        for text in messages
    ]
