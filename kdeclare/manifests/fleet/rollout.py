"""The rollout of a fleet: the order of the clusters, and what must be healthy before each wave."""

from collections.abc import Mapping
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RolloutHealth:
    """What must be healthy before each wave of a rollout.

    limits: for each health check, the largest number that counts as healthy.
    command: a command that must succeed; empty for none.
    timeout_s: how long to wait for the clusters to become healthy, in seconds.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    timeout_s: float = 300.0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is checked, because there are neither limits nor a command."""
        return not self.limits and not self.command


@dataclass(frozen=True, slots=True)
class Rollout:
    """The order in which the clusters of a fleet are changed.

    canary: the labels of the clusters that are changed first.
    batch_size: the number of clusters to change at a time after the canaries, or None for no limit.
    max_failures: the number of failed clusters that are tolerated. If more clusters fail, no further
        plans are applied.
    health: what must be healthy before each wave.
    """

    canary: Mapping[str, str] = field(default_factory=dict)
    batch_size: int | None = None
    max_failures: int = 0
    health: RolloutHealth = RolloutHealth()
