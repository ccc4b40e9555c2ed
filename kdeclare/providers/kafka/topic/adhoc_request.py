"""What is asked of one topic by hand, and what KIP-4 says that it means.

KIP-4, "Create Topic Request" and "Alter Topic Request": assignments win over the counts, and a partition that
is not there yet is added; without them the replication factor is about all partitions, those that are added
among them; without that, only the added ones are placed.
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
"""Replicas by partition, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class AdhocTopicRequest:
    """One instruction about one topic; None and empty is "nothing is said of it".

    configs: as a manifest's ``configs`` has them: a value, ``{append, subtract}``, or None for no override.
    place: where it stands, if in a file.
    """

    topic: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Assignments = field(default_factory=dict)
    configs: Mapping[str, Any] = field(default_factory=dict)
    place: SourcePosition | None = None

    @property
    def resource(self) -> ResourceId:
        """The topic."""
        return ResourceId("Topic", self.topic)

    @property
    def is_empty(self) -> bool:
        """Whether it names a topic and nothing else."""
        counts = (self.partitions, self.replication_factor)
        return counts == (None, None) and not self.assignments and not self.configs


def build_created_topic(request: AdhocTopicRequest) -> tuple[TopicBody, tuple[Diagnostic, ...]]:
    """The topic that is to be created, and what is wrong with it; that it is not there is for others to see.

    KIP-4 as Kafka shipped it: assignments and counts do not go together.
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
    """What a topic of ``partition_count`` partitions is to be like, and what is wrong or should be known."""
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
            "Ignored beside a replica assignment",
            f"{request.resource}: what is said of its {' and '.join(names)} is "
            f"ignored, as it follows from the "
            "replica assignment.",
            resource=str(request.resource),
        )
    ]


def _check_assignments(request: AdhocTopicRequest, partition_count: int) -> list[Diagnostic]:
    messages = []
    if min(request.assignments) < 0:
        messages.append(f"there is no partition {min(request.assignments)}; they count from 0.")
    missing = set(range(partition_count, max(request.assignments))) - request.assignments.keys()
    if missing:
        messages.append(
            f"it has {partition_count} partitions, and partition {max(request.assignments)} "
            f"cannot be added without "
            f"partition {min(missing)}."
        )
    for n, replicas in sorted(request.assignments.items()):
        if not replicas or len(set(replicas)) != len(replicas):
            messages.append(f"partition {n} needs replicas, each broker once, not {list(replicas)}.")
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
