"""Everything that moves of replicas contribute to the Kafka provider."""

from kdeclare.core.provider.kind_group import KindGroup
from kdeclare.providers.kafka.reassignment.kind import ReassignmentKind
from kdeclare.providers.kafka.reassignment.operations.elect import ElectLeaders
from kdeclare.providers.kafka.reassignment.operations.reassign import (
    AwaitMoves,
    CancelMoves,
    ReassignPartitions,
    RelocateReplicas,
)
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle, SetThrottle
from kdeclare.providers.kafka.reassignment.planning import MovePlanning

REPLICA_MOVES = KindGroup(
    kinds=(ReassignmentKind(),),
    operation_types=(
        ReassignPartitions(),
        SetThrottle(),
        ClearThrottle(),
        ElectLeaders(),
        CancelMoves(),
        RelocateReplicas(),
        AwaitMoves(),
    ),
    start_plan=MovePlanning,
)
