"""What people can choose for a plan about a Kafka cluster. Every ``--help`` reads it: it imports little."""

from typing import Annotated, Literal

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import PlanOptions
from kdeclare.core.provider.plan_options import PlanOption


@dataclass(frozen=True, slots=True)
class KafkaPlanOptions:
    """The part of `PlanOptions` that is about Kafka.

    rf_guard: who guards the replication factor where the brokers cannot; None is the brokers.
    await_reassignments: what someone else's move is in the way of waits for it, instead of being denied.
    override_reassignments: the partitions of someone else's move are sent elsewhere.
    delete_by_name: delete topics also where the cluster has no topic ids: then one that was created again
        under the same name is deleted in place of the one that was seen.
    """

    rf_guard: Annotated[
        Literal["broker", "client"] | None,
        PlanOption(
            "Who keeps a move from changing the replication factor: the brokers (default; Kafka 4.1 "
            "and later), or kdeclare, which cannot exclude a change right before the request.",
            metavar="broker|client",
        ),
    ] = None
    await_reassignments: Annotated[
        bool, PlanOption("Let changes wait for moves of others that are in their way.")
    ] = False
    override_reassignments: Annotated[
        bool, PlanOption("Send partitions elsewhere that others are moving right now.")
    ] = False
    delete_by_name: Annotated[
        bool,
        PlanOption(
            "Delete topics by name where the cluster has no topic ids: also one that was created again "
            "meanwhile.",
            is_about_deletions=True,
        ),
    ] = False


def get_kafka_options(options: PlanOptions) -> KafkaPlanOptions:
    """Return what was chosen about Kafka; the defaults where nothing was."""
    return options.find(KafkaPlanOptions) or KafkaPlanOptions()


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """The part of `PlanOptions` about what is removed after moves.

    keep_throttles: whether the throttles that kdeclare has set are left.
    """

    keep_throttles: bool = False


KEEP_THROTTLES = PlanOptions(CleanupOptions(keep_throttles=True))
"""Of a run that is going to say itself which throttles it takes away."""
