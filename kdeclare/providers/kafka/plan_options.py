"""Options of a plan for a Kafka cluster. Every ``--help`` loads this module, so it imports little."""

from typing import Annotated, Literal

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import PlanOptions
from kdeclare.core.provider.plan_options import PlanOption


@dataclass(frozen=True, slots=True)
class KafkaPlanOptions:
    """The Kafka part of `PlanOptions`.

    rf_guard: ``client`` makes kdeclare guard the replication factor if the brokers cannot; None relies on the
        brokers.
    await_reassignments: wait for another client's reassignment that blocks a change, instead of denying the
        change.
    override_reassignments: redirect partitions that another client is reassigning.
    delete_by_name: delete topics even if the cluster has no topic ids. A topic that was re-created under the
        same name is then deleted instead of the planned topic.
    """

    rf_guard: Annotated[
        Literal["broker", "client"] | None,
        PlanOption(
            "What keeps a reassignment from changing the replication factor by accident: the brokers "
            "(default; requires Kafka 4.1 or later) or kdeclare (client), which can miss a change made right "
            "before its request.",
            metavar="broker|client",
        ),
    ] = None
    await_reassignments: Annotated[
        bool,
        PlanOption("Wait for in-flight reassignments by other clients before the changes that they block."),
    ] = False
    override_reassignments: Annotated[
        bool, PlanOption("Redirect partitions that other clients are reassigning right now.")
    ] = False
    delete_by_name: Annotated[
        bool,
        PlanOption(
            "Delete topics by name if the cluster has no topic ids. This also deletes a topic that was "
            "re-created under the same name in the meantime.",
            is_about_deletions=True,
        ),
    ] = False


def get_kafka_options(options: PlanOptions) -> KafkaPlanOptions:
    """Return the Kafka options of a plan, or their defaults."""
    return options.find(KafkaPlanOptions) or KafkaPlanOptions()


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """The part of `PlanOptions` about cleanup after reassignments.

    keep_throttles: whether to keep the throttles that kdeclare has set.
    """

    keep_throttles: bool = False


KEEP_THROTTLES = PlanOptions(CleanupOptions(keep_throttles=True))
"""Plan options that leave throttles in place, because the run removes them in its own operations."""
