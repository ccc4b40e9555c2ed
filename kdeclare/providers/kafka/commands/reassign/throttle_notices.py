"""The throttles of `kdeclare reassign`: what is in force, what is taken away, what is someone else's."""

from collections.abc import Callable, Iterable, Mapping

from kdeclare.app.recovering import about, recover_locked, tidy_up, under_way
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, warning
from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.parts import Connections
from kdeclare.core.run import Status
from kdeclare.engine.executor.recovery import unfinished
from kdeclare.providers.kafka.commands.reassign.plans import Execution
from kdeclare.providers.kafka.commands.reassign.text import (
    VERIFY_AGAIN,
    dirs_throttle_set,
    throttle_set,
    throttles_cleared,
)
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.plan_options import KEEP_THROTTLES
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.leftovers import Entries, leftovers_of
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle

Out = Callable[[str], None]
"""Takes what the tool prints, piece by piece; each ends in a new line."""
Told = Callable[[Iterable[Diagnostic]], None]
"""Takes what else should be known."""

_CLEAR = ClearThrottle()


def limits(workspace: Workspace, wanted: Execution) -> str:
    """What is said of the throttles that are in force now."""
    state = workspace.store.read()
    set_: Entries = leftovers_of(state).throttles
    rates = {key: {keys.get(key) for keys in set_.values()} for key in throttles.ALL_RATES}
    text = ""
    if wanted.throttle is not None and str(wanted.throttle) in rates[throttles.RATES[0]]:
        text += throttle_set(wanted.throttle)
    if wanted.dirs_throttle is not None and str(wanted.dirs_throttle) in rates[throttles.DIRS_RATE]:
        text += dirs_throttle_set(wanted.dirs_throttle)
    return VERIFY_AGAIN + text if text else ""


def settle_and_clear(workspace: Workspace, connections: Connections, what: str, out: Out, tell: Told) -> None:
    """Settle what earlier runs left open, and take their throttles away."""
    store = workspace.store
    state = store.read()
    if not unfinished(store) and not (state and state.pending_cleanup):
        return
    try:
        with store.lock(what):
            tell(recover_locked(workspace, connections, what, options=KEEP_THROTTLES))
            clear(workspace, connections, what, out, tell)
    except KdeclareError as taken:
        tell(under_way(taken))


def clear(workspace: Workspace, connections: Connections, what: str, out: Out, tell: Told) -> None:
    """Take away what kdeclare has throttled moves with that are over, and say so in the tool's words."""
    tidied = tidy_up(workspace, connections, what)
    results = tidied.run.results if tidied.run else {}
    brokers: set[int] = set()
    topics: set[str] = set()
    for op in tidied.run.plan.operations if tidied.run else ():
        if op.verb == _CLEAR.name and op.id in results and results[op.id].status is Status.DONE:
            resources = [throttles.resource_of(entity) for entity in get_arguments(op, ThrottleArgs).entries]
            brokers.update(throttles.brokers_of(get_arguments(op, ThrottleArgs).entries))
            topics.update(r.name for r in resources if r.scope is ConfigScope.TOPIC)
    out(throttles_cleared(brokers, topics))
    tell(d for d in about(tidied) if d.severity is not Severity.INFO)


def foreign(workspace: Workspace, cluster: Cluster, topics: Iterable[str]) -> tuple[Diagnostic, ...]:
    """What to say of throttles that are not kdeclare's; Kafka's tool would take them away all the same."""
    state = workspace.store.read()
    own: Entries = leftovers_of(state).throttles
    entities = [f"{ConfigScope.BROKER}/{broker.id}" for broker in cluster.describe().brokers]
    entities += [f"{ConfigScope.TOPIC}/{name}" for name in sorted(topics)]
    seen = observe(cluster, throttles.query(entities))
    found = {entity: _others(throttles.present(seen, entity), own.get(entity, {})) for entity in entities}
    return tuple(_left_alone(entity, values) for entity, values in found.items() if values)


def _others(there: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """What is set that kdeclare has not put there."""
    result: dict[str, Json] = {}
    for key, value in there.items():
        if key not in throttles.LISTS:
            rest = value if own.get(key) != value else None
        else:
            rest = ",".join(e for e in value if e not in (own.get(key) or {"elements": ()})["elements"])
        if rest:
            result[key] = rest
    return result


def _left_alone(entity: str, values: Mapping[str, Json]) -> Diagnostic:
    resource = throttles.resource_of(entity)
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
