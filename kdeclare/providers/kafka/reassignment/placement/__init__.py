"""Compute placements that satisfy the strategy, move few replicas, and spread replicas evenly. Pure.

`place_replicas` works in stages:

- `slots` applies replication factors, drains and the rack constraints of the strategy.
- If the strategy requires it, replicas are spread over racks.
- `leaders` chooses the preferred leaders.
- For a rebalance, the functions of `rebalance` run repeatedly, until they change nothing more.

All stages change the same `WorkingAssignment` (`assignment`), which contains the slots and the numbers of
replicas by broker and by topic.
"""

from kdeclare.providers.kafka.reassignment.placement.assignment import Load
from kdeclare.providers.kafka.reassignment.placement.placer import place_replicas
from kdeclare.providers.kafka.reassignment.placement.rack_layout import explain_rack_layout
from kdeclare.providers.kafka.reassignment.placement.slots import FewerPartitions, NotEnoughBrokers

__all__ = [
    "FewerPartitions",
    "Load",
    "NotEnoughBrokers",
    "explain_rack_layout",
    "place_replicas",
]
