"""Where replicas go: valid, as the strategy says, with the least movement, then even. Pure.

`place` goes by stages, each on what the one before it left: sizes and drains (`seats`), the strategy's
repairs (`rules`), preferred leaders (`leading`), and for a rebalance `evening` until nothing is left to
gain. What they share is a `Board` of seats with numbers of replicas by broker and by topic.
"""

from kdeclare.providers.kafka.reassignment.placement.assignment import Load
from kdeclare.providers.kafka.reassignment.placement.place import SharedLoad, place, rack_findings
from kdeclare.providers.kafka.reassignment.placement.slots import FewerPartitions, NotEnoughBrokers

__all__ = ["FewerPartitions", "Load", "NotEnoughBrokers", "SharedLoad", "place", "rack_findings"]
