"""Check that what a plan shows is what its operations do: the hash of a plan file can be recomputed.

Everything that a person reads of a plan follows from its operations or is compared with them here. What an
operation was planned on (``expect``) is not believed either: apply compares it with the live cluster.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kdeclare.core.capabilities import assess_field
from kdeclare.core.changes import Action, Change, Reason, Risk
from kdeclare.core.diagnostics import Severity
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_arguments import find_argument_error
from kdeclare.core.operations import Operation
from kdeclare.core.plan import Plan
from kdeclare.core.registry import KINDS, OPERATION_TYPES, type_of
from kdeclare.engine.planning.trimming import count_ongoing_work, find_action
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.scope import find_config_scope
from kdeclare.providers.kafka.ids import ConfigScope, TopicPartition
from kdeclare.providers.kafka.reassignment.throttles import ALL_RATES

_RISKS = list(Risk)
_ACTING = (Action.CREATE, Action.UPDATE, Action.DELETE)
_ENGINE_KIND = "Moves"
"""The kind of what accompanies the moves of several resources; nothing is declared or owned of it."""
_CLUSTER_DEFAULT = "cluster-default"
_MANNER = frozenset({"pace", "pause_s", "group", "client_guard"})
_VERBS_OF: Mapping[str, frozenset[str]] = {
    "Topic": frozenset(
        {"topic.create", "topic.delete", "partitions.increase", "configs.alter", "partitions.reassign"}
    ),
    "BrokerConfig": frozenset({"configs.alter"}),
    "Reassignment": frozenset({"partitions.reassign", "moves.cancel", "replicas.relocate"}),
    "ConnectWorkerConfig": frozenset({"connect.worker-config.patch"}),
}

Sides = tuple[Json, Json]
"""A field before and after."""


def find_unknown_parts(plan: Plan) -> list[str]:
    """Verbs and kinds that this kdeclare does not have: such a plan can be shown, never applied."""
    verbs = {op.verb for op in plan.operations} - OPERATION_TYPES.keys()
    acting = [c.id for c in plan.changes if c.action is not Action.NO_OP]
    ids = [*acting, *(op.resource for op in plan.operations), *(item.id for item in plan.ownership)]
    kinds = {id_.kind for id_ in ids} - KINDS.keys() - {_ENGINE_KIND}
    return [*(f"verb '{verb}'" for verb in sorted(verbs)), *(f"kind '{kind}'" for kind in sorted(kinds))]


def find_inconsistencies(plan: Plan) -> Iterator[str]:
    """What a plan of known verbs and kinds shows otherwise than it does, in sentences."""
    wrong = [text for op in plan.operations for text in _operation_errors(op)]
    yield from wrong
    if wrong:
        return  # what such an operation does cannot be told
    operations: dict[ResourceId, list[Operation]] = defaultdict(list)
    for op in plan.operations:
        if not type_of(op).is_auxiliary:
            operations[op.resource].append(op)
    moved = _replicas_moved(plan.operations)
    changes = {change.id: change for change in plan.changes}
    if len(changes) < len(plan.changes):
        yield "two changes are about the same resource"
    for id_ in operations.keys() - changes.keys():
        yield f"operation '{operations[id_][0].id}' acts on {id_}, which no change shows"
    for change in plan.changes:
        yield from _change_errors(plan, change, operations.get(change.id, []), moved)
    yield from _summary_errors(plan)
    yield from _ownership_errors(plan, changes)
    yield from _rollback_errors(plan)


def _operation_errors(op: Operation) -> Iterator[str]:
    verb = type_of(op)
    wrong = find_argument_error(op.verb, dict(op.args))
    if wrong is not None:
        yield f"operation '{op.id}' ({op.verb}): {wrong}"
        return
    try:
        if not verb.is_auxiliary:
            yield from _subject_errors(op)
            missing = sorted(verb.claims(op).keys() - op.expect.keys())
            if missing:
                yield f"operation '{op.id}' does not say what it expects of {missing[0]}"
                return
        yield from _inverse_errors(op)
    except (TypeError, ValueError, KeyError, AttributeError):
        yield f"operation '{op.id}' ({op.verb}) expects what this verb does not know"


def _subject_errors(op: Operation) -> Iterator[str]:
    """The cluster object of an operation is the resource that the plan names."""
    kind, name = op.resource.kind, op.resource.name
    if op.verb not in _VERBS_OF.get(kind, ()):
        yield f"operation '{op.id}': {op.verb} is not something that is done to a {kind}"
    if kind == "Topic":
        others = {topic for topic in _topics_of(op) if topic != name}
        others |= {op.args["entity_type"]} - {ConfigScope.TOPIC} if op.verb == "configs.alter" else set()
        if others:
            yield f"operation '{op.id}' of {op.resource} acts on {sorted(others)[0]}"
    if op.verb == "topic.delete" and op.args.get("topic_id") not in (None, op.expect.get("topic")):
        yield f"operation '{op.id}' deletes another topic than the one that it expects"
    if kind == "BrokerConfig" and op.verb == "configs.alter":
        entity = (op.args["entity_type"], op.args["entity_name"])
        if entity != (ConfigScope.BROKER, "" if name == _CLUSTER_DEFAULT else name):
            yield f"operation '{op.id}' of {op.resource} acts on {'/'.join(entity)}"


def _topics_of(op: Operation) -> Iterator[str]:
    if "topic" in op.args:
        yield str(op.args["topic"])
    if op.verb == "configs.alter":
        yield str(op.args["entity_name"])
    for partition in op.args.get("partitions") or () if type_of(op).goes_on else ():
        yield TopicPartition.parse(partition).topic


def _inverse_errors(op: Operation) -> Iterator[str]:
    """What is said to undo it is what undoes it, and what cannot be undone is said to be so."""
    if type_of(op).is_auxiliary or op.irreversible is not None:
        return
    inverse = op.inverse or {}
    verb, args = inverse.get("verb"), inverse.get("args")
    if not isinstance(verb, str) or verb not in OPERATION_TYPES:
        yield f"operation '{op.id}' is undone by an unknown verb"
        return
    wrong = find_argument_error(verb, args)
    if wrong is not None:
        yield f"the inverse of operation '{op.id}' ({verb}): {wrong}"
        return
    undo = type_of(op).invert(op, type_of(op).expected_state(op), allow_data_loss=False)
    if undo.lost:
        yield f"operation '{op.id}' cannot be undone, and the plan says that it can"
    elif undo.args is not None and (undo.verb, _deed(undo.args)) != (verb, _deed(args)):
        yield f"the inverse of operation '{op.id}' does not undo it"


def _replicas_moved(operations: Sequence[Operation]) -> dict[str, Json]:
    """Where all operations together move replicas: of two resources that say the same, one moves them."""
    moves = (op for op in operations if type_of(op).goes_on)
    return {f"replicas.{name}": list(to) for op in moves for name, to in op.args["partitions"].items()}


def _deed(args: Json) -> dict[str, Json]:
    """Arguments without those that say how it is gone about."""
    return {name: value for name, value in args.items() if name not in _MANNER}


def _change_errors(
    plan: Plan, change: Change, operations: Sequence[Operation], moved: Mapping[str, Json]
) -> Iterator[str]:
    if not operations:
        acts = change.action in _ACTING and not change.blocked
        left = [f for f in change.fields if _full_path(change.id, f.path) not in moved]
        # of what two resources move, a policy may deny one part, and the other resource moves the rest
        others_do_the_rest = len(left) < len(change.fields) and _is_denied_in_part(plan, change)
        if acts and left and not others_do_the_rest:
            yield f"{change.id} is shown as changed, and no operation changes it"
        yield from _risk_errors(change, Risk.SAFE)
        return
    if change.blocked or change.action not in _ACTING:
        shown = "blocked" if change.blocked else change.action.value
        yield f"{change.id} is shown as {shown}, and operation '{operations[0].id}' acts on it"
        return
    action = find_action(operations)
    if action is not change.action:
        yield f"{change.id} is shown as {change.action.value}, and its operations {action.value} it"
        return
    if action is Action.CREATE:
        yield from _creation_errors(change, operations)
    elif action is Action.UPDATE:
        yield from _update_errors(plan, change, operations, moved)
    yield from _risk_errors(change, Risk.DESTRUCTIVE if action is Action.DELETE else Risk.SAFE)


def _risk_errors(change: Change, least: Risk) -> Iterator[str]:
    if change.action not in _ACTING:
        return
    highest = least
    for field in change.fields:
        if change.id.kind not in KINDS:
            break  # it accompanies the moves of several resources, and has no fields
        real = assess_field(change.id.kind, change.action, field)
        # what an unset config means depends on the brokers' own value, which the plan was rated with
        is_inherited = field.path.startswith("configs.") and None in (field.before, field.after)
        if not is_inherited and _RISKS.index(field.risk) < _RISKS.index(real.risk):
            yield f"{change.id}: {field.path} is shown as {field.risk.value}, and it is {real.risk.value}"
        highest = max(highest, field.risk, key=_RISKS.index)
    if _RISKS.index(change.risk) < _RISKS.index(highest):
        yield f"{change.id} is shown as {change.risk.value}, and it is {highest.value}"


def _creation_errors(change: Change, operations: Sequence[Operation]) -> Iterator[str]:
    create = next(op for op in operations if op.verb == "topic.create")
    if len(operations) > 1:
        yield f"{change.id} is shown as created, and operation '{operations[-1].id}' does more"
        return
    made_fields = type_of(create).fields(create)
    shown = {field.path: _text(change, field.path, field.after) for field in change.fields}
    made = {field.path: _text(change, field.path, field.after) for field in made_fields}
    for path in sorted(shown.keys() | made.keys()):
        if shown.get(path) == made.get(path) or (path not in shown and _follows(path, shown)):
            continue
        yield _differs(change, path, shown.get(path), made.get(path))


def _follows(path: str, shown: Mapping[str, Json]) -> bool:
    """Whether a count that is not shown follows from the assignments that are."""
    return path in ("partitions", "replicationFactor") and any(p.startswith("assignments.") for p in shown)


def _update_errors(
    plan: Plan, change: Change, operations: Sequence[Operation], moved: Mapping[str, Json]
) -> Iterator[str]:
    """Every field that operations change is shown as they change it, and no other."""
    done = _fields_done(change.id, operations)
    shown: dict[str, Sides] = {}
    for field in change.fields:
        path = _full_path(change.id, field.path)
        first = shown[path][0] if path in shown else field.before
        shown[path] = first, field.after
    factor = shown.pop("replicationFactor", None)
    denied = _is_denied_in_part(plan, change)
    for path in sorted(done.keys() | shown.keys()):
        if (
            path in ALL_RATES
            or path.startswith("workers.")
            or _same(change, path, shown.get(path), done.get(path))
        ):
            continue
        if path not in shown and done[path][0] == done[path][1]:
            continue  # sent again for workers that have refused it
        if path not in done and (denied or path in moved):
            continue  # shown as denied, or left to another resource's operation
        chosen = change.id.kind == "Topic" and path.startswith("replicas.") and path not in shown
        if chosen and (_resizes(factor, done[path]) or done[path][0] is None):
            continue  # kdeclare chose the replicas, of a new replication factor or an added partition
        yield _differs(change, path, shown.get(path), done.get(path))
    resized = (_resizes(factor, sides) for path, sides in done.items() if path.startswith("replicas."))
    if factor is None or denied or any(resized):
        return
    if not any(path.startswith(f"replicas.{change.id.name}-") for path in moved):
        yield _differs(change, "replicationFactor", factor, None)


def _fields_done(resource: ResourceId, operations: Sequence[Operation]) -> dict[str, Sides]:
    done: dict[str, Sides] = {}
    for op in operations:
        for field in type_of(op).fields(op):
            path = field.path
            first = done[path][0] if path in done else field.before
            done[path] = first, field.after
        if op.verb == "partitions.increase":
            before = op.expect.get("partitions") or 0
            for number, replicas in enumerate(op.args["assignments"] or (), start=before):
                done[f"replicas.{resource.name}-{number}"] = None, replicas
    return done


def _full_path(resource: ResourceId, path: str) -> str:
    """A field's path with replicas named by topic and partition, as operations have them."""
    number = path.removeprefix("assignments.")
    return path if number == path or resource.kind != "Topic" else f"replicas.{resource.name}-{number}"


def _resizes(factor: Sides | None, replicas: Sides) -> bool:
    return factor is not None and isinstance(replicas[1], list) and len(replicas[1]) == factor[1]


def _same(change: Change, path: str, shown: Sides | None, done: Sides | None) -> bool:
    if shown is None or done is None:
        return shown is done
    return [_text(change, path, side) for side in shown] == [_text(change, path, side) for side in done]


def _text(change: Change, path: str, value: Json) -> Json:
    """A value as Kafka takes it, so that lists and their texts are the same."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    scope = find_config_scope(change.id.kind)
    if isinstance(value, str) and scope is not None:
        return catalog(scope).canonical(path.removeprefix("configs."), value)
    return None if value is None else str(value)


def _is_denied_in_part(plan: Plan, change: Change) -> bool:
    """Whether a policy or a guard denies a part of the change; the plan shows that beside it."""
    name = str(change.id)
    denials = [d.resource for d in plan.diagnostics if d.severity is Severity.DENIED]
    return name in denials or any(v.denies and v.resource == name for v in plan.verdicts)


def _differs(change: Change, path: str, shown: object, done: object) -> str:
    if shown is None:
        return f"{change.id}: its operations change {path}, which is not shown"
    if done is None:
        return f"{change.id}: {path} is shown as changed, and no operation changes it"
    return f"{change.id}: {path} is shown otherwise than its operations change it"


def _summary_errors(plan: Plan) -> Iterator[str]:
    blocked = {d.resource for d in plan.diagnostics if d.blocks}
    counts = Counter(c.action for c in plan.changes if not c.blocked and str(c.id) not in blocked)
    acting = Counter(c.action for c in plan.changes if not c.blocked)
    moved = count_ongoing_work(plan.operations)
    s = plan.summary
    stated = {
        Action.CREATE: s.create,
        Action.UPDATE: s.update,
        Action.DELETE: s.delete,
        Action.FORGET: s.forget,
        Action.NO_OP: s.orphaned,
    }
    for action, count in stated.items():
        if not counts[action] <= count <= acting[action]:
            yield f"the summary counts {count} of {action.value}, and the changes are {counts[action]}"
    if s.reassign != moved:
        yield f"the summary counts {s.reassign} partitions to move, and the operations move {moved}"
    if s.blocked < sum(bool(c.blocked) for c in plan.changes):
        yield f"the summary counts {s.blocked} blocked, and more changes are"
    unmanaged = sum(map(len, plan.unmanaged_configs.values()))
    if s.unmanaged_configs != unmanaged:
        yield f"the summary counts {s.unmanaged_configs} unmanaged configs, and {unmanaged} are listed"


def _ownership_errors(plan: Plan, changes: Mapping[ResourceId, Change]) -> Iterator[str]:
    seen: set[ResourceId] = set()
    for item in plan.ownership:
        change = changes.get(item.id)
        if item.id in seen:
            yield f"two records of ownership are about {item.id}"
        seen.add(item.id)
        for record in (item.before, item.after):
            if record is not None and not isinstance(record, dict):
                yield f"the record of ownership of {item.id} is not an object"
        if change is None or plan.undoes:
            continue
        gone = change.action in (Action.DELETE, Action.FORGET)
        if change.blocked:
            yield f"{change.id} is shown as blocked, and its ownership changes"
        elif gone and item.after is not None:
            yield f"{change.id} is shown as {change.action.value}, and stays owned afterwards"
        elif not gone and item.before is not None and item.after is None and not _is_reset(change):
            yield f"{change.id} is shown as {change.action.value}, and is no longer owned afterwards"
        elif change.action is Action.NO_OP and item.after != item.before:
            yield f"{change.id} is shown as an orphan, and its ownership changes"


def _is_reset(change: Change) -> bool:
    """Whether it lets go of something that always exists, such as a broker's configs."""
    return change.action is Action.UPDATE and change.reason is Reason.ORPHANED


def _rollback_errors(plan: Plan) -> Iterator[str]:
    for change in plan.changes:
        if (change.reason is Reason.ROLLBACK) is not (plan.undoes is not None):
            shown = "a rollback" if change.reason is Reason.ROLLBACK else change.reason.value
            yield f"{change.id} is shown as {shown}, and the plan undoes {plan.undoes or 'no run'}"
            return
