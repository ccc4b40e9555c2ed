"""From desired, live and owned to the plan."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.changes import Action, Change
from kdeclare.core.compared import Compared
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, in_order, info
from kdeclare.core.ids import ResourceId
from kdeclare.core.operations import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.plan import Base, ClusterRef, Ownership, Plan, Summary, Verdict
from kdeclare.core.progress import Progress
from kdeclare.core.registry import KINDS, type_of
from kdeclare.core.secrets import SecretSource
from kdeclare.engine.observation import kafka_of, observe_expected
from kdeclare.engine.planning import order
from kdeclare.engine.planning.compare import compare, owned_topics, unknown_names, what_to_observe
from kdeclare.engine.planning.deletion_limit import MAX_DELETES, deletions_of, exceed_limit
from kdeclare.engine.planning.judging import POLICY_VIOLATION, declared_labels, labels_to_keep, owned_labels
from kdeclare.engine.planning.out_of_scope import find_out_of_scope
from kdeclare.engine.planning.preflight import preflight
from kdeclare.engine.planning.request import PlanRequest
from kdeclare.engine.planning.trimming import trimmed
from kdeclare.policy.judge import Judgement, judge
from kdeclare.policy.requests.facts import Facts
from kdeclare.providers.kafka.collector import CLUSTER
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.observe import moves_not_seen
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.batching import at_pace
from kdeclare.providers.kafka.reassignment.disk_capacity import lack_of_room
from kdeclare.providers.kafka.reassignment.leftovers import leftovers_of
from kdeclare.providers.kafka.reassignment.placement import SharedLoad, rack_findings
from kdeclare.providers.kafka.reassignment.placement_constraints import barred, clashes
from kdeclare.providers.kafka.reassignment.placing import Placement, PlacementError
from kdeclare.providers.kafka.reassignment.replication_factor_guard import (
    awaited,
    lacks_guard,
    unguarded,
    with_guard,
)
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.topic.deletion_by_id import deletes_by_name, lacks_topic_id
from kdeclare.providers.kafka.topic.diff import MOVE_IN_FLIGHT, not_placed
from kdeclare.providers.kafka.topic.renames import find_renames, order_colliding_names
from kdeclare.providers.kafka.topic_effects import find_effects
from kdeclare.providers.kafka.unknown_keys import weighed
from kdeclare.providers.kafka.visibility import Patience


def build_plan(request: PlanRequest, cluster: Cluster, secrets: SecretSource, progress: Progress) -> Plan:
    """Observe, diff, order, check with the cluster; changes nothing anywhere.

    Raises Fault when the cluster does not answer, KdeclareError when the state is another cluster's.
    """
    selections = what_to_observe(request)
    query = CLUSTER.merge(selections) or KafkaSelection()
    progress("Reading the cluster", 0, 0)
    patience = Patience(request.scope.visibility_timeout_s, progress)
    seen = observe_expected(cluster, selections, owned_topics(request, query), patience, all_topics=True)
    live = kafka_of(seen.live)
    if request.state is not None:
        check_cluster_id(request.state.cluster_id, live.cluster.id, request.cluster_name)
    placer = SharedLoad(live, barred(request.desired, live))
    context = PlanContext(Placement(placer))
    compared = compare(request, seen.live, context, seen.pending)
    preflights = request.scope.preflight
    diagnostics = [*weighed(cluster, live, request.diagnostics, preflight=preflights)]
    diagnostics += [*unknown_names(request), *_nothing_declared(request)]
    if not live.sees_moves:
        diagnostics.append(moves_not_seen())
    operations, problems, limited = _operations(request, compared, seen.live, context)
    diagnostics += problems
    blocked = {d.resource: d.code for d in problems if d.resource and d.blocks} | limited
    operations = _without(operations, blocked)
    said = _judged(request, cluster, query, live, operations)
    operations, denied = trimmed(order.standing(operations, said.stands_on), said.denied)
    blocked |= dict.fromkeys(map(str, denied), POLICY_VIOLATION)
    operations, moved = order.one_mover(operations)
    diagnostics += moved
    operations = _moves_to_wait_for(request, compared, live, operations)
    verdicts = said.verdicts
    if preflights and not any(d.is_error for d in diagnostics):
        refused = preflight(cluster, operations, secrets, progress)
        verdicts += refused.verdicts
        crammed = lack_of_room(operations, cluster, request.pace)
        found = [*crammed, *refused.diagnostics]
        diagnostics += found
        blocked |= {d.resource: d.code for d in found if d.resource and d.blocks}
        blocked |= {v.resource: POLICY_VIOLATION for v in refused.verdicts}
        operations = _without(operations, blocked)
    if not any(d.is_error for d in diagnostics):
        left = leftovers_of(request.state)
        operations, findings = at_pace(operations, cluster, live, request.pace, left)
        diagnostics += findings
        if placer.has_moved:
            racks = rack_findings(live.cluster.brokers)
            diagnostics += [info("racks", "The racks are not alike", text) for text in racks]
    return _assembled(request, live, compared, operations, verdicts, diagnostics, blocked)


def check_cluster_id(planned: str, live: str, cluster_name: str) -> None:
    """Refuse a plan or state of another cluster. Raises KdeclareError."""
    if planned == live:
        return
    raise KdeclareError(
        error(
            "other-cluster",
            "This is another cluster",
            f"The plan or state is about cluster {planned}, and {cluster_name} is cluster {live}.",
            hint="Check --bootstrap-server and --env; another cluster needs an environment of its own.",
        )
    )


def _operations(
    request: PlanRequest, compared: Sequence[Compared], state: LiveState, context: PlanContext
) -> tuple[tuple[Operation, ...], list[Diagnostic], dict[str, str]]:
    """All operations in order, and the problems with them; a problem blocks its resource.

    The last result has the resources that are blocked by a problem of the whole plan, with its code.
    """
    operations: list[Operation] = []
    problems: list[Diagnostic] = []
    live = kafka_of(state)
    for item in compared:
        change = item.change
        if change is None or change.blocked or change.action in (Action.NO_OP, Action.FORGET):
            continue
        try:
            operations += KINDS[item.id.kind].plan_operations(
                change, item.desired, state, item.owned, context
            )
        except PlacementError as reason:
            place = item.desired.source if item.desired else None
            problems.append(not_placed(str(item.id), str(reason), place))
    operations, too_many, refused = _limited(request, operations)
    problems += too_many
    guarded = [with_guard(op, live, client=request.scope.client_guard) for op in operations]
    problems += find_out_of_scope(request, operations)
    problems += order.contradictions(request.desired)
    problems += clashes(request.desired, live.topics)
    problems += order.deleted_and_used(guarded)
    problems += [unguarded(op) for op in guarded if lacks_guard(op, live)]
    if not request.scope.delete_by_name:
        problems += [lacks_topic_id(op) for op in guarded if deletes_by_name(op)]
    if not request.scope.by_hand:  # brokers answer for what was asked for by name
        guarded, collisions = order_colliding_names(guarded, live.topics)
        problems += [*collisions, *find_renames(compared, collisions)]
    return order.in_order(order.linked(guarded)), problems, refused


def _limited(
    request: PlanRequest, operations: list[Operation]
) -> tuple[list[Operation], list[Diagnostic], dict[str, str]]:
    """Without the deletions of kinds that exceed the limit. Ad hoc commands name what they delete: exempt."""
    if request.scope.by_hand:
        return operations, [], {}
    owned = request.state.resources if request.state else {}
    problems = exceed_limit(operations, owned, request.scope.max_deletes)
    refused = deletions_of(operations, {d.subject for d in problems})
    return (
        [op for op in operations if op not in refused],
        problems,
        {str(op.resource): MAX_DELETES for op in refused},
    )


def _nothing_declared(request: PlanRequest) -> list[Diagnostic]:
    """An empty folder would orphan everything: more likely a wrong path than an intention."""
    scope = request.scope
    if scope.by_hand or scope.allow_empty or not scope.complete or request.desired:
        return []
    owned = request.state.resources if request.state else {}
    if set(owned) <= {str(id_) for id_ in scope.forget | scope.deletes}:  # each is named
        return []
    return [
        error(
            "no-manifests",
            "The project has no manifests",
            f"No manifest declares a resource, but the state owns {len(owned):,}.",
            hint="Check the project's manifests folder and the checkout. Pass --allow-empty if the project "
            "is meant to declare nothing anymore.",
        )
    ]


def _moves_to_wait_for(
    request: PlanRequest, compared: Sequence[Compared], live: KafkaState, operations: Sequence[Operation]
) -> tuple[Operation, ...]:
    scope = request.scope
    if scope.override_moves and not scope.await_moves:
        return tuple(operations)
    let_through = (d for i in compared for d in i.difference.diagnostics if d.code == MOVE_IN_FLIGHT)
    stopped = {ResourceId.parse(d.resource) for d in let_through if d.resource and not d.blocks}
    return awaited(operations, stopped, live)


def _without(operations: Sequence[Operation], blocked: dict[str, str]) -> tuple[Operation, ...]:
    """What is left without what is ``blocked`` (codes by resource) and what needs that.

    A resource of which nothing is left then is blocked by the same code.
    """
    left = order.without(operations, [op.id for op in operations if str(op.resource) in blocked])
    acting = {str(op.resource) for op in left}
    codes = {op.id: blocked[str(op.resource)] for op in operations if str(op.resource) in blocked}
    for op in operations:
        code = next((codes[need] for need in op.needs if need in codes), None)
        if code is not None and op.id not in codes:
            codes[op.id] = code
            if str(op.resource) not in acting:
                blocked[str(op.resource)] = code
    return left


def _judged(
    request: PlanRequest,
    cluster: Cluster,
    query: KafkaSelection,
    live: KafkaState,
    operations: Sequence[Operation],
) -> Judgement:
    """What the policies say of the operations, which are in order."""
    owned = request.state.resources if request.state else {}
    overrides = request.scope.overrides
    return judge(
        request.policies,
        operations,
        lambda topics: Facts(cluster, topics, live, query),
        declared_labels(request.desired, owned),
        owned_labels(owned),
        lambda verdict: overrides.get(verdict.policy),
    )


def _assembled(
    request: PlanRequest,
    live: KafkaState,
    compared: Sequence[Compared],
    operations: tuple[Operation, ...],
    verdicts: tuple[Verdict, ...],
    diagnostics: list[Diagnostic],
    blocked: Mapping[str, str],
) -> Plan:
    changes = tuple(_blocked(item.change, blocked) for item in compared if item.change is not None)
    by_id = {change.id: change for change in changes}
    for item in compared:
        diagnostics += item.difference.diagnostics
    state = request.state
    owned = state.resources if state else {}
    operated = {op.resource for op in operations}
    ownership = () if request.scope.by_hand else tuple(_ownership(compared, by_id, operated))
    labels = declared_labels(request.desired, owned) if request.policies else {}
    return Plan(
        project=request.project,
        env=request.env,
        cluster=ClusterRef(live.cluster.id, request.cluster_name),
        base=Base(state.lineage if state else None, state.serial if state else 0),
        summary=_summary(request, live, compared, by_id.values(), operations),
        changes=changes,
        operations=operations,
        ownership=ownership,
        verdicts=verdicts,
        diagnostics=in_order(diagnostics),
        unmanaged_configs={
            str(item.id): item.difference.unmanaged for item in compared if item.difference.unmanaged
        },
        labels=labels_to_keep(labels, owned, ownership) if labels else {},
        racks=_racks(live, operations),
        max_deletes=str(request.scope.max_deletes) if request.scope.max_deletes else None,
    )


def _racks(live: KafkaState, operations: Iterable[Operation]) -> Mapping[int, str]:
    """Those of the brokers, where an operation says which replicas go where."""
    if not any(effect.replicas for op in operations for effect in find_effects(op).values()):
        return {}
    return {broker.id: broker.rack for broker in live.cluster.brokers if broker.rack is not None}


def _blocked(change: Change, blocked: Mapping[str, str]) -> Change:
    code = blocked.get(str(change.id))
    return replace(change, blocked=code) if code and not change.blocked else change


def _ownership(
    compared: Sequence[Compared], changes: Mapping[ResourceId, Change], operated: Set[ResourceId]
) -> Iterable[Ownership]:
    """What apply is to take over or let go of; a blocked resource stays as it is.

    A resource with operations is named in any case: that it is owned as it was is an expectation.
    """
    for item in compared:
        change = changes.get(item.id)
        stuck = any(d.blocks for d in item.difference.diagnostics) or (change and change.blocked)
        if not stuck and (item.difference.owned != item.owned or item.id in operated):
            yield Ownership(item.id, item.owned, item.difference.owned)


def _summary(
    request: PlanRequest,
    live: KafkaState,
    compared: Sequence[Compared],
    changes: Iterable[Change],
    operations: Sequence[Operation],
) -> Summary:
    counts = dict.fromkeys(Action, 0)
    blocked = {item.id for item in compared if any(d.blocks for d in item.difference.diagnostics)}
    blocked |= {change.id for change in changes if change.blocked}
    for change in changes:
        if change.id not in blocked:
            counts[change.action] += 1
    in_order = [i for i in compared if i.desired and i.change is None and not i.difference.deferred]
    unchanged = [i for i in in_order if i.id not in blocked]
    known = {str(d.id) for d in request.desired} | set(request.state.resources if request.state else ())
    unmanaged = [t for t in live.topics.values() if not t.internal and f"Topic/{t.name}" not in known]
    return Summary(
        create=counts[Action.CREATE],
        update=counts[Action.UPDATE],
        delete=counts[Action.DELETE],
        forget=counts[Action.FORGET],
        unchanged=len(unchanged),
        orphaned=counts[Action.NO_OP],
        blocked=len(blocked),
        unmanaged=0 if request.scope.by_hand else len(unmanaged),
        reassign=sum(len(o.args["partitions"]) for o in operations if type_of(o).goes_on),
        unmanaged_configs=sum(len(item.difference.unmanaged) for item in compared),
    )
