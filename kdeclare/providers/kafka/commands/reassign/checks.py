"""What `kdeclare reassign` refuses or warns of, in the words of Kafka's tool."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from kdeclare.app.recovery import clean_up_workspace, recover_under_lock, report_cleanup, warn_run_in_progress
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, denied, error, warning
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.parts import Connections
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.name_scope import NameScope, report_out_of_scope
from kdeclare.engine.executor.recovery import find_unfinished_runs
from kdeclare.providers.kafka.collector import observe
from kdeclare.providers.kafka.commands.reassign.assignments_file import Assignment
from kdeclare.providers.kafka.commands.reassign.plans import Execution, Replica
from kdeclare.providers.kafka.commands.reassign.tool_output import (
    VERIFY_AGAIN,
    dirs_throttle_set,
    throttle_set,
    throttles_cleared,
)
from kdeclare.providers.kafka.config.config_diff import ConfigOverride
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.plan_options import KEEP_THROTTLES
from kdeclare.providers.kafka.port import Cluster, LogDir
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import (
    ThrottledReplicas,
    ThrottleEntries,
    ThrottleValue,
    get_move_cleanup,
)

_EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)


def existing_moves() -> KdeclareError:
    """What to say where replicas are being moved already."""
    found = denied("existing-assignment", "Replicas are being moved", _EXISTING)
    return KdeclareError(found, exit_code=ExitCode.DENIED)


def check_places(
    assignments: Sequence[Assignment],
    directories: Mapping[Replica, str],
    live: KafkaState,
    there: Mapping[int, Sequence[LogDir]],
) -> None:
    """Refuse brokers, topics, partitions and log directories that are not there. Raises KdeclareError."""
    registered = {broker.id: broker for broker in live.cluster.brokers}
    problems = []
    for id_ in sorted({broker for a in assignments for broker in a.replicas}):
        broker = registered.get(id_)
        if broker is None or broker.fenced:
            hint = "It is registered and does not serve." if broker else f"There are {sorted(registered)}."
            problems.append(error("unknown-broker", "No such broker", f"Unknown broker id {id_}", hint=hint))
    if problems:
        raise KdeclareError(*problems)
    check_topics({a.partition.topic for a in assignments}, live)
    gone = [str(p) for p in sorted(a.partition for a in assignments) if live.replicas(p) is None]
    if gone:
        detail = f"Unable to find partition: {', '.join(gone)}"
        raise KdeclareError(error("unknown-partition", "No such partition", detail))
    _check_directories(directories, there)


def check_names(topics: Iterable[str], scope: NameScope) -> None:
    """Refuse topics outside the scope of the project. Raises KdeclareError."""
    ids = (ResourceId("Topic", topic) for topic in sorted(topics))
    forbidden = [id_ for id_ in ids if not scope.permits(id_)]
    if forbidden:
        raise KdeclareError(report_out_of_scope(None, forbidden, scope))


def check_topics(topics: Iterable[str], live: KafkaState) -> None:
    """Refuse topics that are not there. Raises KdeclareError."""
    missing = sorted(set(topics) - live.topics.keys())
    if missing:
        raise KdeclareError(
            *(error("unknown-topic", "No such topic", f"Topic {name} not found.") for name in missing)
        )


def _check_directories(directories: Mapping[Replica, str], there: Mapping[int, Sequence[LogDir]]) -> None:
    """A broker that does not say which directories it has is left to answer for itself."""
    problems = []
    for (partition, broker), path in sorted(directories.items()):
        paths = [log_dir.path for log_dir in there.get(broker, ()) if log_dir.error is None]
        if broker in there and path not in paths:
            detail = f"Failed to alter dir for {partition}-{broker}: the broker has no log directory {path}"
            hint = f"It has {', '.join(paths)}." if paths else "None of its log directories is online."
            problems.append(error("unknown-log-dir", "No such log directory", detail, hint=hint))
    if problems:
        raise KdeclareError(*problems)


Out = Callable[[str], None]
"""Takes what the tool prints, piece by piece; each ends in a new line."""
Told = Callable[[Iterable[Diagnostic]], None]
"""Takes what else should be known."""

_CLEAR = ClearThrottle()


def limits(workspace: Workspace, wanted: Execution) -> str:
    """What is said of the throttles that are in force now."""
    state = workspace.store.read()
    set_: ThrottleEntries = get_move_cleanup(state).throttles
    rates = {key: {keys.get(key) for keys in set_.values()} for key in throttles.ALL_RATE_KEYS}
    text = ""
    if wanted.throttle is not None and str(wanted.throttle) in rates[throttles.RATE_KEYS[0]]:
        text += throttle_set(wanted.throttle)
    if wanted.dirs_throttle is not None and str(wanted.dirs_throttle) in rates[throttles.LOG_DIRS_RATE_KEY]:
        text += dirs_throttle_set(wanted.dirs_throttle)
    return VERIFY_AGAIN + text if text else ""


def settle_and_clear(workspace: Workspace, connections: Connections, what: str, out: Out, tell: Told) -> None:
    """Settle what earlier runs left open, and take their throttles away."""
    store = workspace.store
    state = store.read()
    if not find_unfinished_runs(store) and not (state and state.pending_cleanup):
        return
    try:
        with store.lock(what):
            tell(recover_under_lock(workspace, connections, what, options=KEEP_THROTTLES))
            clear(workspace, connections, what, out, tell)
    except KdeclareError as taken:
        tell(warn_run_in_progress(taken))


def clear(workspace: Workspace, connections: Connections, what: str, out: Out, tell: Told) -> None:
    """Take away what kdeclare has throttled moves with that are over, and say so in the tool's words."""
    tidied = clean_up_workspace(workspace, connections, what)
    results = tidied.run.results if tidied.run else {}
    brokers: set[int] = set()
    topics: set[str] = set()
    for op in tidied.run.plan.operations if tidied.run else ():
        if op.verb == _CLEAR.name and op.id in results and results[op.id].status is Status.DONE:
            resources = [throttles.parse_entity(entity) for entity in get_arguments(op, ThrottleArgs).entries]
            brokers.update(throttles.list_brokers(get_arguments(op, ThrottleArgs).entries))
            topics.update(r.name for r in resources if r.scope is ConfigScope.TOPIC)
    out(throttles_cleared(brokers, topics))
    tell(d for d in report_cleanup(tidied) if d.severity is not Severity.INFO)


def foreign(workspace: Workspace, cluster: Cluster, topics: Iterable[str]) -> tuple[Diagnostic, ...]:
    """What to say of throttles that are not kdeclare's; Kafka's tool would take them away all the same."""
    state = workspace.store.read()
    own: ThrottleEntries = get_move_cleanup(state).throttles
    entities = [f"{ConfigScope.BROKER}/{broker.id}" for broker in cluster.describe().brokers]
    entities += [f"{ConfigScope.TOPIC}/{name}" for name in sorted(topics)]
    seen = observe(cluster, throttles.build_selection(entities))
    found = {
        entity: _others(throttles.get_current_values(seen, entity), own.get(entity, {}))
        for entity in entities
    }
    return tuple(_left_alone(entity, values) for entity, values in found.items() if values)


def _others(there: Mapping[str, ConfigOverride], own: Mapping[str, ThrottleValue]) -> dict[str, str]:
    """What is set that kdeclare has not put there."""
    result: dict[str, str] = {}
    for key, value in there.items():
        mine = own.get(key)
        if isinstance(value, list):
            elements = mine.elements if isinstance(mine, ThrottledReplicas) else ()
            rest: str | None = ",".join(e for e in value if e not in elements)
        else:
            rest = value if mine != value else None
        if rest:
            result[key] = rest
    return result


def _left_alone(entity: str, values: Mapping[str, str]) -> Diagnostic:
    resource = throttles.parse_entity(entity)
    kind = "topics" if resource.scope is ConfigScope.TOPIC else "brokers"
    said = ", ".join(f"{key}={value}" for key, value in values.items())
    return warning(
        "foreign-throttle",
        "Throttles of others are left alone",
        f"{entity}: {said}",
        hint="Where nobody needs them: kafka-configs --bootstrap-server … --alter --entity-type "
        f"{kind} --entity-name {resource.name} --delete-config {','.join(values)}",
        subject=entity,
    )
