"""Compute placements: valid, as the strategy requires, with minimal movement, then evenly spread. Pure.

`place_replicas` works in stages, each on the result of the previous one: replication factors, drains and the
rack constraints of the strategy (`slots`), repairs of the rack spread, preferred leaders (`leaders`), and for
a rebalance `rebalance` until nothing improves anymore. The stages share a `WorkingAssignment` of slots with
the numbers of replicas by broker and by topic (`assignment`).
"""

from kdeclare.providers.kafka.reassignment.placement.assignment import Load
from kdeclare.providers.kafka.reassignment.placement.placer import (
    LoadAwarePlacer,
    explain_rack_layout,
    place_replicas,
)
from kdeclare.providers.kafka.reassignment.placement.slots import FewerPartitions, NotEnoughBrokers

__all__ = [
    "FewerPartitions",
    "Load",
    "LoadAwarePlacer",
    "NotEnoughBrokers",
    "explain_rack_layout",
    "place_replicas",
]
