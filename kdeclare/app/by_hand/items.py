"""What came of a command by hand, resource by resource."""

from kdeclare.app.by_hand.wanted import Wanted
from kdeclare.core.changes import Action
from kdeclare.core.diagnostics import Severity
from kdeclare.core.ids import ResourceId
from kdeclare.core.run import RunResult, Status
from kdeclare.engine.executor.verifying import Verified
from kdeclare.providers.kafka.ids import is_topic
from kdeclare.providers.kafka.live import KafkaState, Topic
from kdeclare.providers.kafka.topic.diff import true_replicas
from kdeclare.report.by_hand_views import Came, HandView, Item, Seen

_WORST_FIRST = {
    Status.FAILED: Came.FAILED,
    Status.DENIED: Came.DENIED,
    Status.UNKNOWN: Came.UNKNOWN,
    Status.STALE: Came.STALE,
    Status.SKIPPED: Came.FAILED,
    Status.INTERRUPTED: Came.NOT_BEGUN,
    Status.STARTED: Came.MOVING,
}


def nothing_to_plan(wanted: Wanted) -> HandView:
    """Where everything failed, or was left out, before there was a plan."""
    return HandView(None, (*_never_planned(wanted),), wanted.failed)


def _never_planned(wanted: Wanted) -> list[Item]:
    failed = [
        Item(resource, Came.FAILED, " ".join(problem.detail or problem.summary for problem in problems))
        for resource, problems in wanted.failed.items()
    ]
    return failed + [Item(resource, Came.LEFT_OUT, why) for resource, why in wanted.left_out.items()]


def viewed(run: RunResult, wanted: Wanted, verified: Verified | None) -> HandView:
    """What came of each resource."""
    resources = [str(desired.id) for desired in wanted.desired] + [str(id_) for id_ in wanted.removals]
    items = [_item(run, name, verified) for name in resources if name not in wanted.failed]
    ordered = sorted([*items, *_never_planned(wanted)], key=lambda item: item.resource)
    return HandView(run, tuple(ordered), wanted.failed, verified.seconds if verified else None)


def _item(run: RunResult, resource: str, verified: Verified | None) -> Item:
    change = next((c for c in run.plan.changes if str(c.id) == resource), None)
    operations = [op for op in run.plan.operations if str(op.resource) == resource]
    denials = [v.message for v in run.verdicts if v.resource == resource and v.denies]
    denials += [
        d.detail for d in run.plan.diagnostics if d.resource == resource and d.severity is Severity.DENIED
    ]
    seen = _seen(resource, verified)
    if change is None and not operations and not denials:
        return Item(resource, Came.UNCHANGED, seen=seen)
    if (change is not None and change.blocked) or (denials and not operations):
        return Item(resource, Came.DENIED, " ".join(denials))
    unlike = tuple(e for op in operations for e in (verified.unlike.get(op.id, ()) if verified else ()))
    results = [run.results.get(op.id) for op in operations]
    for status, came in _WORST_FIRST.items():
        of_these = [r for r in results if (r.status if r else Status.INTERRUPTED) is status]
        if of_these:
            why = next((r.message or r.error or "" for r in of_these if r), "")
            return Item(resource, came, why, unlike if came is Came.MOVING else (), seen)
    if not operations:
        return Item(resource, Came.UNCHANGED, seen=seen)
    deed = {Action.CREATE: Came.CREATED, Action.DELETE: Came.DELETED}
    return Item(resource, deed.get(change.action, Came.ALTERED) if change else Came.ALTERED, "", unlike, seen)


def _seen(resource: str, verified: Verified | None) -> Seen | None:
    id_ = ResourceId.parse(resource)
    if verified is None or not is_topic(id_):
        return None
    cluster = verified.live.get(KafkaState)
    topic = cluster.topics.get(id_.name)
    return _counted(topic, cluster) if topic else None


def _counted(topic: Topic, cluster: KafkaState) -> Seen:
    replicas = true_replicas(cluster, topic)
    return Seen(
        partitions=len(topic.partitions),
        factors=tuple(sorted({len(r) for r in replicas})),
        replicas=sum(len(r) for r in replicas),
        in_sync=sum(len(set(p.isr) & set(r)) for p, r in zip(topic.partitions, replicas, strict=True)),
        leaderless=sum(p.leader is None for p in topic.partitions),
    )
