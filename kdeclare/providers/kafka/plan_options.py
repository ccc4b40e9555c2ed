"""What people can choose for a plan about a Kafka cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel

from kdeclare.core.parts import PlanOptions
from kdeclare.core.planning import PlanSettings
from kdeclare.providers.kafka.reassignment.pace import Pace, PaceSpec, pace_of


@dataclass(frozen=True, slots=True)
class KafkaPlanOptions:
    """The part of `PlanOptions` that is about Kafka.

    client_guard: whether kdeclare guards the replication factor where the brokers cannot.
    await_moves: what someone else's move is in the way of waits for it, instead of being denied.
    override_moves: the partitions of someone else's move are sent elsewhere.
    delete_by_name: delete topics also where the cluster has no topic ids: then one that was created again
        under the same name is deleted in place of the one that was seen.
    pace: of moves whose manifest says nothing else.
    keep_throttles: whether tidying up leaves the throttles that kdeclare has set.
    """

    client_guard: bool = False
    await_moves: bool = False
    override_moves: bool = False
    delete_by_name: bool = False
    pace: Pace = field(default_factory=Pace)
    keep_throttles: bool = False


KEEP_THROTTLES = PlanOptions(KafkaPlanOptions(keep_throttles=True))
"""Of a run that is going to say itself which throttles it takes away."""


def find_kafka_options(options: PlanOptions) -> KafkaPlanOptions:
    """Return what was chosen about Kafka; the defaults where nothing was."""
    return options.find(KafkaPlanOptions) or KafkaPlanOptions()


def with_pace(options: PlanOptions, pace: Pace) -> PlanOptions:
    """Return the options with this pace of moves whose manifest says nothing else."""
    return options.with_part(replace(find_kafka_options(options), pace=pace))


def complete_pace(options: PlanOptions, stated: Sequence[BaseModel]) -> PlanOptions:
    """Return the options with a pace where the chosen one leaves something open."""
    pace = find_kafka_options(options).pace
    for spec in stated:
        if isinstance(spec, PaceSpec):
            pace = pace.over(pace_of(spec))
    return with_pace(options, pace)


REASSIGNMENTS = PlanSettings(
    "reassignments",
    PaceSpec,
    complete_pace,
    description="How moves of replicas are gone about, where a manifest says nothing else.",
    environment_description="How moves of replicas are gone about here.",
)
