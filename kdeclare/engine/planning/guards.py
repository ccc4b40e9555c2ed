"""What has to be so before replicas are moved: somebody guards the factor, nobody else is moving them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, Severity, denied
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.operations import Operation
from kdeclare.core.registry import VERBS
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.manifests.name_scope import out_of_scope
from kdeclare.providers.kafka.collector import select_topics
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import topics_of
from kdeclare.providers.kafka.reassignment.operations.moves import waiting
from kdeclare.providers.kafka.topic_effects import find_effects
from kdeclare.providers.kafka.topic_identity import identities

_ORPHAN_OUT_OF_SCOPE = "Release it with --forget, or extend spec.scope in the project file."


def with_guard(op: Operation, live: KafkaState, *, client: bool) -> Operation:
    """``op`` with kdeclare as its guard where the brokers have none and people chose that."""
    if not VERBS[op.verb].moves or live.cluster.rf_guard or not client:
        return op
    return replace(op, args={**op.args, "client_guard": True})


def lacks_guard(op: Operation, live: KafkaState) -> bool:
    """Whether nobody would guard a move that is to be guarded."""
    guarded = VERBS[op.verb].moves and not op.args["allow_replication_factor_change"]
    return guarded and not live.cluster.rf_guard and not op.args.get("client_guard")


def unguarded(op: Operation) -> Diagnostic:
    """The brokers know version 0 of the request only; in the words of KIP-860."""
    return denied(
        "replication-factor-guard",
        "The brokers cannot guard the replication factor",
        "The broker does not support the AllowReplicationFactorChange option for the "
        "AlterPartitionReassignments API. Consider re-sending the request without the option or updating the "
        f"server version. So {op.resource} is not reassigned.",
        hint="Upgrade to Kafka 4.1, or take --rf-guard=client: kdeclare then compares the sizes itself right "
        "before the request, and a change in between goes unseen.",
        resource=str(op.resource),
    )


def deletes_by_name(op: Operation) -> bool:
    """Whether it deletes whatever topic has the name by then, because no id is known."""
    return VERBS[op.verb].destroys and "topic_id" in op.args and op.args["topic_id"] is None


def find_out_of_scope(request: PlanRequest, operations: Iterable[Operation]) -> Iterator[Diagnostic]:
    """Yield an error for each resource whose operations touch what the project must not touch."""
    if not request.names.entries:
        return
    topics: dict[ResourceId, set[str]] = {}
    for op in operations:
        topics.setdefault(op.resource, set()).update(find_effects(op))
    places = {desired.id: desired.source for desired in request.desired}
    for resource, touched in topics.items():
        forbidden = request.names.find_forbidden(resource, touched)
        if forbidden:
            found = out_of_scope(resource, forbidden, request.names, places.get(resource))
            is_orphan = resource not in places and not request.scope.by_hand
            yield replace(found, severity=Severity.DENIED, hint=_ORPHAN_OUT_OF_SCOPE) if is_orphan else found


def lacks_topic_id(op: Operation) -> Diagnostic:
    """The cluster has no topic ids, so nothing tells the topic from a later one of the same name."""
    return denied(
        "no-topic-id",
        "The cluster has no topic ids",
        f"{op.resource}: brokers know topic ids from Kafka 2.8 on (KIP-516). Without one, a topic that was "
        "created again under the same name in the meantime would be deleted in its place.",
        hint="Upgrade the brokers, or pass --delete-by-name to delete it by name.",
        resource=str(op.resource),
    )


def awaited(
    operations: Sequence[Operation], stopped: Collection[ResourceId], live: KafkaState
) -> tuple[Operation, ...]:
    """With a step for each of the ``stopped`` resources that waits for the moves in its way."""
    result: list[Operation] = []
    for resource in sorted(stopped):
        mine = [op for op in operations if op.resource == resource]
        targets = _in_the_way(mine, live)
        if not mine or not targets:
            continue
        wait = waiting(str(resource), resource, targets, {})
        wait = replace(wait, expect={**targets, **identities(topics_of(targets), live)})
        because = {wait.id: "waits for a move that is under way"}
        result += [wait, *(replace(op, needs={**op.needs, **because}) for op in mine)]
    others = [op for op in operations if op.resource not in stopped or op.id not in {o.id for o in result}]
    return (*others, *result)


def _in_the_way(operations: Sequence[Operation], live: KafkaState) -> Mapping[str, Json]:
    """Where the partitions are heading that these operations are about."""
    named = {p for op in operations if VERBS[op.verb].moves for p in op.args["partitions"]}
    whole = {
        t for op in operations if not VERBS[op.verb].moves for t in select_topics(VERBS[op.verb].select(op))
    }
    return {
        str(partition): list(move.target)
        for partition, move in sorted(live.moves.items())
        if str(partition) in named or partition.topic in whole
    }
