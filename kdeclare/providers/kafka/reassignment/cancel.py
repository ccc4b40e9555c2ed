"""The plan that stops moves in flight."""

from collections.abc import Collection, Mapping

from kdeclare.core.changes import Action, Change, Reason, Risk, highest_risk
from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_type import with_inverse
from kdeclare.core.operations import Operation
from kdeclare.core.plan import Base, ClusterRef, Plan, Summary
from kdeclare.core.registry import type_of
from kdeclare.engine.planning.build import check_cluster_id
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import topics_of
from kdeclare.providers.kafka.reassignment.execute import Replica, relocation
from kdeclare.providers.kafka.reassignment.operations.moves import CancelMoves
from kdeclare.providers.kafka.risks import assess_placement_field
from kdeclare.providers.kafka.topic_identity import identities

RESOURCE = ResourceId("Reassignment", "cancel")

_CANCEL = CancelMoves()


def cancel_plan(
    request: PlanRequest,
    live: KafkaState,
    partitions: Collection[TopicPartition],
    replicas: Collection[Replica] = (),
) -> Plan:
    """Cancel what of ``partitions`` is being moved, and send ``replicas`` back that change log directories.

    request: without any resources. live: the topics with their moves, and their log directories.
    Raises KdeclareError when the state is another cluster's.
    """
    state = request.state
    if state is not None:
        check_cluster_id(state.cluster_id, live.cluster.id, request.cluster_name)
    moving = sorted(set(partitions) & live.moves.keys())
    back = {r: path for r in sorted(set(replicas)) if (path := _origin(live, r))}
    operations = [_cancelling(moving, live)] if moving else []
    operations += [relocation(RESOURCE, back, live)] if back else []
    fields = tuple(assess_placement_field(f) for op in operations for f in type_of(op).fields(op))
    risk = highest_risk(fields, least=Risk.DISRUPTIVE)
    change = Change(RESOURCE, Action.UPDATE, Reason.ASKED, risk, fields)
    return Plan(
        project=request.project,
        env=request.env,
        cluster=ClusterRef(live.cluster.id, request.cluster_name),
        base=Base(state.lineage if state else None, state.serial if state else 0),
        summary=Summary(update=1 if operations else 0),
        changes=(change,) if operations else (),
        operations=tuple(operations),
        diagnostics=tuple(_grown(p, live) for p in moving if _grows(p, live)),
    )


def _grows(partition: TopicPartition, live: KafkaState) -> bool:
    move = live.moves[partition]
    return len(move.origin) > len(move.target)


def _grown(partition: TopicPartition, live: KafkaState) -> Diagnostic:
    move = live.moves[partition]
    return warning(
        "cancel-grows",
        "Cancelling leaves more replicas than are wanted",
        f"{partition} was sent elsewhere more than once, or is to lose replicas: a cancel leaves all of "
        f"{list(move.origin)}, and it is heading for {list(move.target)}.",
        hint="kdeclare rollback goes back to the recorded list instead.",
        resource=str(RESOURCE),
        subject=str(partition),
    )


def _origin(live: KafkaState, replica: Replica) -> str | None:
    """The log directory that a replica is about to leave; one that a cancelled move was adding goes."""
    move = live.moves.get(replica[0])
    dirs = live.dirs.get(replica)
    if dirs is None or dirs.arriving is None or (move and replica[1] in move.adding):
        return None
    return dirs.path


def _cancelling(moving: Collection[TopicPartition], live: KafkaState) -> Operation:
    heading: dict[str, Json] = {str(p): list(live.moves[p].target) for p in moving}
    stays: dict[str, Json] = {str(p): list(live.moves[p].origin) for p in moving}
    expect: Mapping[str, Json] = heading | identities(topics_of(heading), live)
    bare = Operation(f"{_CANCEL.name}:{RESOURCE}", _CANCEL.name, RESOURCE, {"partitions": stays}, expect)
    return with_inverse(_CANCEL, bare)
