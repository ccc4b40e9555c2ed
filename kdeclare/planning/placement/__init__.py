"""Where replicas go: valid, as the strategy says, with the least movement, then even. Pure.

`place` goes by stages, each on what the one before it left: sizes and drains (`seats`), the strategy's
repairs (`rules`), preferred leaders (`leading`), and for a rebalance `evening` until nothing is left to
gain. What they share is a `Board` of seats with numbers of replicas by broker and by topic.
"""

from kdeclare.planning.placement.errors import FewerPartitions, NotEnoughBrokers
from kdeclare.planning.placement.ground import Load
from kdeclare.planning.placement.place import place
from kdeclare.planning.placement.racks import rack_findings
from kdeclare.planning.placement.shared import SharedLoad

__all__ = ["FewerPartitions", "Load", "NotEnoughBrokers", "SharedLoad", "place", "rack_findings"]
