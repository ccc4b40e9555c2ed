"""Checks and warnings of `kdeclare reassign`, in the words of Kafka's tool."""

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
from kdeclare.providers.kafka.commands.reassign.assignments_file import PartitionAssignment
from kdeclare.providers.kafka.commands.reassign.plans import ExecutionRequest, Replica
from kdeclare.providers.kafka.commands.reassign.tool_output import (
    VERIFY_AGAIN,
    render_dirs_throttle_set,
    render_throttle_set,
    render_throttles_cleared,
)
from kdeclare.providers.kafka.config.config_diff import ConfigOverride
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.plan_options import KEEP_THROTTLES
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.reassignment.operations.throttle import ClearThrottle
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import (
    ThrottledReplicas,
    ThrottleEntries,
    ThrottleValue,
    get_move_cleanup,
)
from kdeclare.providers.kafka.request_values import LogDir

_EXISTING_ASSIGNMENT = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)


def build_existing_moves_error() -> KdeclareError:
    """Build the error for ``kdeclare reassign --execute`` while another reassignment is in progress."""
    diagnostic = denied("existing-assignment", "Reassignment in progress", _EXISTING_ASSIGNMENT)
    return KdeclareError(diagnostic, exit_code=ExitCode.DENIED)


def validate_targets(
    assignments: Sequence[PartitionAssignment],
    directories: Mapping[Replica, str],
    live: KafkaState,
    log_dirs: Mapping[int, Sequence[LogDir]],
) -> None:
    """Raise KdeclareError for brokers, topics, partitions and log directories that do not exist."""
    registered = {broker.id: broker for broker in live.cluster.brokers}
    problems = []
    for id_ in sorted({broker for a in assignments for broker in a.replicas}):
        broker = registered.get(id_)
        if broker is None:
            problems.append(
                error(
                    "unknown-broker",
                    "No such broker",
                    f"Unknown broker id {id_}",
                    hint=f"Use the ids of registered brokers: {sorted(registered)}.",
                )
            )
        elif broker.fenced:
            problems.append(
                error(
                    "unknown-broker",
                    "Broker fenced",
                    f"Broker {id_} is registered but fenced, so replicas cannot be moved to the broker.",
                    hint=f"Start broker {id_}, or choose another broker.",
                )
            )
    if problems:
        raise KdeclareError(*problems)
    validate_topics({a.partition.topic for a in assignments}, live)
    missing_partitions = [
        str(p) for p in sorted(a.partition for a in assignments) if live.replicas(p) is None
    ]
    if missing_partitions:
        raise KdeclareError(
            error(
                "unknown-partition",
                "No such partition",
                f"Unable to find partition: {', '.join(missing_partitions)}",
                hint="Correct the topic name or the partition number in the JSON file.",
            )
        )
    _validate_directories(directories, log_dirs)


def validate_scope(topics: Iterable[str], scope: NameScope) -> None:
    """Raise KdeclareError for topics outside the scope of the project."""
    ids = (ResourceId("Topic", topic) for topic in sorted(topics))
    forbidden_ids = [id_ for id_ in ids if not scope.permits(id_)]
    if forbidden_ids:
        raise KdeclareError(report_out_of_scope(None, forbidden_ids, scope))


def validate_topics(topics: Iterable[str], live: KafkaState) -> None:
    """Raise KdeclareError for topics that do not exist."""
    missing = sorted(set(topics) - live.topics.keys())
    if missing:
        raise KdeclareError(
            *(
                error(
                    "unknown-topic",
                    "No such topic",
                    f"Topic {name} not found.",
                    hint="Correct the topic name in the JSON file.",
                )
                for name in missing
            )
        )


def _validate_directories(
    directories: Mapping[Replica, str], log_dirs: Mapping[int, Sequence[LogDir]]
) -> None:
    """Raise KdeclareError for log directories that do not exist.

    Log directories of a broker that did not respond are not checked. That broker validates the request
    itself.
    """
    problems = []
    for (partition, broker), path in sorted(directories.items()):
        paths = [log_dir.path for log_dir in log_dirs.get(broker, ()) if log_dir.error is None]
        if broker in log_dirs and path not in paths:
            detail = f"Failed to alter dir for {partition}-{broker}: the broker has no log directory {path}"
            hint = (
                f"Use one of the broker's log directories: {', '.join(paths)}."
                if paths
                else f"Bring a log directory of broker {broker} back online: all its log directories are "
                "offline."
            )
            problems.append(error("unknown-log-dir", "No such log directory", detail, hint=hint))
    if problems:
        raise KdeclareError(*problems)


TextWriter = Callable[[str], None]
"""A function that writes one or more lines of the tool's output. Its argument ends with a newline."""
DiagnosticsWriter = Callable[[Iterable[Diagnostic]], None]
"""A function that reports diagnostics separately from the tool's output."""

_CLEAR_THROTTLE = ClearThrottle()


def render_throttle_limits(workspace: Workspace, execution_request: ExecutionRequest) -> str:
    """Render the lines about the current throttles, or nothing if there are no throttles."""
    state = workspace.store.read()
    own_entries: ThrottleEntries = get_move_cleanup(state).throttles
    rates_by_key = {key: {keys.get(key) for keys in own_entries.values()} for key in throttles.ALL_RATE_KEYS}
    text = ""
    if (
        execution_request.throttle is not None
        and str(execution_request.throttle) in rates_by_key[throttles.RATE_KEYS[0]]
    ):
        text += render_throttle_set(execution_request.throttle)
    if (
        execution_request.dirs_throttle is not None
        and str(execution_request.dirs_throttle) in rates_by_key[throttles.LOG_DIRS_RATE_KEY]
    ):
        text += render_dirs_throttle_set(execution_request.dirs_throttle)
    return VERIFY_AGAIN + text if text else ""


def settle_and_clear_throttles(
    workspace: Workspace,
    connections: Connections,
    command_name: str,
    write_text: TextWriter,
    report: DiagnosticsWriter,
) -> None:
    """Recover earlier runs that did not finish, and remove the throttles of these runs."""
    store = workspace.store
    state = store.read()
    if not find_unfinished_runs(store) and not (state and state.pending_cleanup):
        return
    try:
        with store.lock(command_name):
            report(recover_under_lock(workspace, connections, command_name, options=KEEP_THROTTLES))
            clear_throttles(workspace, connections, command_name, write_text, report)
    except KdeclareError as lock_error:
        report(warn_run_in_progress(lock_error))


def clear_throttles(
    workspace: Workspace,
    connections: Connections,
    command_name: str,
    write_text: TextWriter,
    report: DiagnosticsWriter,
) -> None:
    """Remove kdeclare's throttles for finished moves, and print the same lines as Kafka's tool."""
    cleanup_result = clean_up_workspace(workspace, connections, command_name)
    results = cleanup_result.run.results if cleanup_result.run else {}
    brokers: set[int] = set()
    topics: set[str] = set()
    for op in cleanup_result.run.plan.operations if cleanup_result.run else ():
        if op.verb == _CLEAR_THROTTLE.name and op.id in results and results[op.id].status is Status.DONE:
            resources = [throttles.parse_entity(entity) for entity in get_arguments(op, ThrottleArgs).entries]
            brokers.update(throttles.list_brokers(get_arguments(op, ThrottleArgs).entries))
            topics.update(r.name for r in resources if r.scope is ConfigScope.TOPIC)
    write_text(render_throttles_cleared(brokers, topics))
    report(d for d in report_cleanup(cleanup_result) if d.severity is not Severity.INFO)


def check_foreign_throttles(
    workspace: Workspace, cluster: Cluster, topics: Iterable[str]
) -> tuple[Diagnostic, ...]:
    """Warn about throttles that kdeclare did not set and does not remove. Kafka's tool would remove them."""
    state = workspace.store.read()
    own_entries: ThrottleEntries = get_move_cleanup(state).throttles
    entities = [f"{ConfigScope.BROKER}/{broker.id}" for broker in cluster.describe().brokers]
    entities += [f"{ConfigScope.TOPIC}/{name}" for name in sorted(topics)]
    throttle_state = observe(cluster, throttles.build_selection(entities))
    foreign_by_entity = {
        entity: _find_foreign_values(
            throttles.get_current_values(throttle_state, entity), own_entries.get(entity, {})
        )
        for entity in entities
    }
    return tuple(
        _warn_foreign_throttle(entity, values) for entity, values in foreign_by_entity.items() if values
    )


def _find_foreign_values(
    current_values: Mapping[str, ConfigOverride], own_values: Mapping[str, ThrottleValue]
) -> dict[str, str]:
    result: dict[str, str] = {}
    for key, value in current_values.items():
        own_value = own_values.get(key)
        if isinstance(value, list):
            elements = own_value.elements if isinstance(own_value, ThrottledReplicas) else ()
            foreign_value: str | None = ",".join(e for e in value if e not in elements)
        else:
            foreign_value = value if own_value != value else None
        if foreign_value:
            result[key] = foreign_value
    return result


def _warn_foreign_throttle(entity: str, values: Mapping[str, str]) -> Diagnostic:
    resource = throttles.parse_entity(entity)
    settings_text = ", ".join(f"{key}={value}" for key, value in values.items())
    return warning(
        "foreign-throttle",
        "Throttles set by other clients were kept",
        f"{entity} has throttle settings that kdeclare did not set: {settings_text}. kdeclare left these "
        "settings unchanged.",
        hint="If these settings are no longer needed, remove them: kafka-configs --bootstrap-server … "
        f"--alter --entity-type {resource.scope.entity_type} --entity-name {resource.name} "
        f"--delete-config {','.join(values)}",
        subject=entity,
    )
