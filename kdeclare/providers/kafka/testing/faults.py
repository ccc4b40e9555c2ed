"""The requests of the in-process cluster, for its plan of faults."""

from dataclasses import dataclass

from kdeclare.testing import faults

MUTATING = frozenset(
    {
        "create_topics",
        "delete_topics",
        "create_partitions",
        "alter_configs",
        "alter_quotas",
        "reassign",
        "elect_leaders",
        "move_log_dirs",
    }
)
"""The methods of the port that change something unless they only validate."""


@dataclass(frozen=True, slots=True)
class Call(faults.Call):
    """One request: the port's method, and what it was about.

    Items are written as ``orders``, ``TOPIC/orders``, ``orders-0``, and ``orders-0@1`` for the replica on
    broker 1.
    """

    @property
    def mutating(self) -> bool:
        """Whether it was meant to change something."""
        return self.method in MUTATING and not self.validate_only
