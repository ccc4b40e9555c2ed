"""Where replicas go: valid, as the strategy says, with the least movement, then even. Pure.

`place` goes by stages, each on what the one before it left: sizes and drains (`seats`), the strategy's
repairs (`rules`), preferred leaders (`leading`), and for a rebalance `evening` until nothing is left to
gain. What they share is a `WorkingAssignment` of seats with numbers of replicas by broker and by topic.
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
