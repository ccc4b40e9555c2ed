"""The plan options for Kafka clusters. Every ``--help`` imports this module, so it has few imports."""

from typing import Annotated, Literal

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import PlanOptions
from kdeclare.core.provider.plan_options import PlanOption


@dataclass(frozen=True, slots=True)
class KafkaPlanOptions:
    """The Kafka options in `PlanOptions`.

    rf_guard: ``client`` if kdeclare checks the replication factor for brokers that do not support the check.
        None leaves the check to the brokers.
    await_reassignments: whether to wait for a reassignment by another client that blocks a change, instead of
        denying the change.
    override_reassignments: whether to redirect partitions that another client is reassigning.
    delete_by_name: whether to delete topics by name if the cluster has no topic ids. If a topic was
        re-created under the same name in the meantime, the new topic is deleted.
    allow_acl_lockout: whether kdeclare may change ACLs even if it thereby loses its own permissions to change
        or read ACLs.
    """

    rf_guard: Annotated[
        Literal["broker", "client"] | None,
        PlanOption(
            "Who prevents a reassignment from accidentally changing a replication factor: the brokers "
            "(broker, the default; requires Kafka 4.1 or later) or kdeclare (client; can miss a change made "
            "right before the request).",
            metavar="broker|client",
        ),
    ] = None
    await_reassignments: Annotated[
        bool,
        PlanOption(
            "If another client's in-flight reassignment blocks a change, wait for the reassignment "
            "and then make the change."
        ),
    ] = False
    override_reassignments: Annotated[
        bool, PlanOption("Redirect partitions that other clients are currently reassigning.")
    ] = False
    delete_by_name: Annotated[
        bool,
        PlanOption(
            "Delete topics by name if the cluster has no topic ids. This also deletes a topic that was "
            "re-created under the same name in the meantime.",
            permits_loss=True,
        ),
    ] = False
    allow_acl_lockout: Annotated[
        bool,
        PlanOption(
            "Change ACLs even if kdeclare loses, or may lose, its own permission to change or read ACLs.",
            permits_loss=True,
        ),
    ] = False


def get_kafka_options(options: PlanOptions) -> KafkaPlanOptions:
    """Return the Kafka options of a plan, or the default options."""
    return options.find(KafkaPlanOptions) or KafkaPlanOptions()


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """The options in `PlanOptions` for the cleanup after reassignments.

    keep_throttles: whether to keep the throttles that kdeclare has set.
    """

    keep_throttles: bool = False


KEEP_THROTTLES = PlanOptions(CleanupOptions(keep_throttles=True))
"""Plan options for a recovery that keeps throttles, because the calling command handles the throttles."""


ACL_LOCKOUT = "acl-lockout"
"""The name of verdicts about changes that take away kdeclare's own rights on ACLs (`allow_acl_lockout`)."""

LOCKOUT_HINT = (
    "Keep bindings that allow kdeclare ALTER and DESCRIBE on the cluster, apply as a different principal, or "
    "pass --allow-acl-lockout (the override is recorded)."
)
