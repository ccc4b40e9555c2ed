"""What is asked of one topic by hand, and what KIP-4 says that it means.

KIP-4, "Create Topic Request" and "Alter Topic Request": assignments win over the counts, and a partition that
is not there yet is added; without them the replication factor is about all partitions, those that are added
among them; without that, only the added ones are placed.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, Place, error, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.wishes import parse_wishes
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.topic.spec import TopicBody, TopicSpec, parse_topic

Assignments = Mapping[int, tuple[int, ...]]
"""Replicas by partition, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One instruction about one topic; None and empty is "nothing is said of it".

    configs: as a manifest's ``configs`` has them: a value, ``{append, subtract}``, or None for no override.
    place: where it stands, if in a file.
    """

    topic: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: Assignments = field(default_factory=dict)
    configs: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = None

    @property
    def resource(self) -> ResourceId:
        """The topic."""
        return ResourceId("Topic", self.topic)

    @property
    def says_nothing(self) -> bool:
        """Whether it names a topic and nothing else."""
        counts = (self.partitions, self.replication_factor)
        return counts == (None, None) and not self.assignments and not self.configs


def created(asked: Asked) -> tuple[TopicBody, tuple[Diagnostic, ...]]:
    """The topic that is to be created, and what is wrong with it; that it is not there is for others to see.

    KIP-4 as Kafka shipped it: assignments and counts do not go together.
    """
    assignments = {n: list(replicas) for n, replicas in asked.assignments.items()} or None
    spec = TopicSpec(
        partitions=asked.partitions,
        replicationFactor=asked.replication_factor,
        assignments=assignments,
        configs=dict(asked.configs),
    )
    body, problems = parse_topic(asked.topic, spec)
    return body, tuple(problem.diagnostic for problem in problems)


def altered(asked: Asked, count: int) -> tuple[TopicBody, tuple[Diagnostic, ...]]:
    """What a topic of ``count`` partitions is to be like, and what is wrong or should be known."""
    resource = str(asked.resource)
    wishes, wrong = parse_wishes(resource, asked.configs, catalog(ConfigScope.TOPIC))
    diagnostics = [problem.diagnostic for problem in wrong]
    if not asked.assignments:
        return TopicBody(asked.partitions, asked.replication_factor, configs=wishes), tuple(diagnostics)
    diagnostics += _ignored(asked)
    diagnostics += _wrong_assignments(asked, count)
    total = max(asked.assignments) + 1
    body = TopicBody(
        partitions=total if total > count else None,
        assignments={n: asked.assignments[n] for n in sorted(asked.assignments)},
        configs=wishes,
    )
    return body, tuple(diagnostics)


def _ignored(asked: Asked) -> list[Diagnostic]:
    stated = {"partitions": asked.partitions, "replication factor": asked.replication_factor}
    names = [name for name, value in stated.items() if value is not None]
    if not names:
        return []
    return [
        warning(
            "counts-ignored",
            "Ignored beside a replica assignment",
            f"{asked.resource}: what is said of its {' and '.join(names)} is ignored, as it follows from the "
            "replica assignment.",
            resource=str(asked.resource),
        )
    ]


def _wrong_assignments(asked: Asked, count: int) -> list[Diagnostic]:
    said = []
    if min(asked.assignments) < 0:
        said.append(f"there is no partition {min(asked.assignments)}; they count from 0.")
    missing = set(range(count, max(asked.assignments))) - asked.assignments.keys()
    if missing:
        said.append(
            f"it has {count} partitions, and partition {max(asked.assignments)} cannot be added without "
            f"partition {min(missing)}."
        )
    for n, replicas in sorted(asked.assignments.items()):
        if not replicas or len(set(replicas)) != len(replicas):
            said.append(f"partition {n} needs replicas, each broker once, not {list(replicas)}.")
    return [
        error(
            "invalid-assignments",
            "Invalid assignments",
            f"{asked.resource}: {text}",
            place=asked.place,
            resource=str(asked.resource),
        )
        for text in said
    ]
