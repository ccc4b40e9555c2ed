"""Set and clear throttles of moves (KIP-73).

The list operations APPEND and SUBTRACT (KIP-339) change only the elements that kdeclare owns. Elements of
other clients stay.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation, UndoResult
from kdeclare.core.operations.operation_type import View, with_args
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.config.config_diff import ConfigOverride
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType
from kdeclare.providers.kafka.operations.partitions import collect_topics
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.completion import MOVE_COMPLETION
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import (
    ThrottledReplicas,
    ThrottleEntries,
    ThrottleValue,
    bind_throttles,
    with_throttles,
)
from kdeclare.providers.kafka.reassignment.throttles import REPLICAS_KEYS
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery

BROKER_DOWN = "BROKER_NOT_AVAILABLE"


class ThrottleOperationType(KafkaOperationType):
    """The base class of the operation types that set and clear throttles."""

    is_auxiliary = True

    def select(self, op: Operation) -> Selections:
        """Select the lists and rates that the operation changes, and the moves of its partitions."""
        entities = _get_entries(op).keys() | _get_relied_rates(op).keys()
        return (throttles.build_selection(sorted(entities), collect_topics(_get_args(op).partitions)),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the current rates, and the current list elements. Elements of other clients are omitted."""
        state = live.get(KafkaState)
        view: dict[str, JsonValue] = {}
        for entity, keys in _get_entries(op).items():
            current_values = throttles.get_current_values(state, entity)
            for key, value in keys.items():
                current_value = current_values.get(key)
                view[f"{entity} {key}"] = (
                    _select_own_elements(value, current_value)
                    if isinstance(value, ThrottledReplicas)
                    else current_value
                )
        for entity, keys in _get_relied_rates(op).items():
            rates_in_force = throttles.get_rates_in_force(state, entity)
            view |= {f"{entity} {key}": rates_in_force.get(key) for key in keys}
        return view

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return no fields: a throttle is temporary and not part of the resource."""
        return ()

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """Return the operation without the entries of ``topics``; None if no other topic is moved."""
        remaining = [p for p in _get_args(op).partitions if TopicPartition.parse(p).topic not in topics]
        topic_entities = {f"{ConfigScope.TOPIC}/{topic}" for topic in topics}
        entries = {entity: keys for entity, keys in _get_entries(op).items() if entity not in topic_entities}
        remaining_op = with_args(op, replace(_get_args(op), partitions=tuple(remaining), entries=entries))
        remaining_claims = self.claims(remaining_op)
        return (
            replace(remaining_op, expect={e: v for e, v in op.expect.items() if e in remaining_claims})
            if remaining
            else None
        )

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per rate or list."""
        return _build_claims(_get_entries(op)) | _build_claims(_get_relied_rates(op))

    def get_batch_key(self, op: Operation) -> str:
        """Return the same batch key for every operation, so that each request contains only one operation.

        Operations are not combined, because two operations can change the same topic.
        """
        return self.name

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims of the operation's entries."""
        return frozenset(_build_claims(_get_entries(op)).values())

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Do nothing: a rollback sets a throttle for its own moves."""
        return UndoResult()


class SetThrottle(ThrottleOperationType):
    """Sets throttle entries. The moves wait until all brokers show the entries."""

    name = "throttle.set"
    done_label = ("throttle set", "throttles set")
    arguments = ThrottleArgs
    propagates = True

    def is_temporary(self, op: Operation) -> bool:
        """Whether the operation sets entries. If not, the operation only relies on existing rates."""
        return bool(_get_entries(op))

    def list_lagging_members(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """Return the throttle entries that the live configs do not show yet. Skip brokers that are down."""
        state = live.get(KafkaState)
        current_view, expected_view = self.compute_view(op, live), self.expected_state(op)
        described_entities = [e for e in _get_entries(op) if throttles.parse_entity(e) in state.configs]
        return tuple(
            f"{entity} does not show {key} = {throttles.format_throttle(_get_entries(op)[entity][key])} yet"
            for entity in described_entities
            for key in _get_entries(op)[entity]
            if current_view[f"{entity} {key}"] != expected_view[f"{entity} {key}"]
        )

    def expected_state(self, op: Operation) -> View:
        """Return the view with all entries set and all other rates unchanged."""
        relies_on = _get_relied_rates(op)
        relied_rates = {f"{e} {key}": rate for e, keys in relies_on.items() for key, rate in keys.items()}
        return relied_rates | {
            f"{entity} {key}": list(value.elements) if isinstance(value, ThrottledReplicas) else value
            for entity, keys in _get_entries(op).items()
            for key, value in keys.items()
        }

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send IncrementalAlterConfigs: APPEND to the lists of topics, SET the rates of brokers."""
        cluster = connections.get(KafkaConnection).cluster
        return {op.id: _alter_configs(cluster, _get_entries(op), _build_put) for op in ops}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Add the operation's entries to the pending cleanup, even if it is unknown whether they were set."""
        if status in (Status.INTERRUPTED, Status.SKIPPED, Status.STALE):
            return before
        is_certain = status is Status.DONE
        merged_entries = throttles.merge_entries(
            bind_throttles(before), _get_entries(op), is_certain=is_certain
        )
        return with_throttles(before, merged_entries)


class ClearThrottle(ThrottleOperationType):
    """Removes throttle entries once none of the partitions is moving. Keeps the rates of other clients."""

    name = "throttle.clear"
    cleanup_label = "removed their throttle"
    done_label = ("throttle cleared", "throttles cleared")
    arguments = ThrottleArgs
    awaits = MOVE_COMPLETION
    is_cleanup = True

    def expected_state(self, op: Operation) -> View:
        """Return a view without any of the entries."""
        return {
            f"{entity} {key}": [] if key in REPLICAS_KEYS else None
            for entity, keys in _get_entries(op).items()
            for key in keys
        }

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Read the current entries, then send IncrementalAlterConfigs."""
        cluster = connections.get(KafkaConnection).cluster
        return {op.id: remove_throttles(cluster, _get_entries(op)) for op in ops}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Remove the operation's entries from the pending cleanup if the operation succeeded."""
        if status is not Status.DONE:
            return before
        return with_throttles(before, throttles.subtract_entries(bind_throttles(before), _get_entries(op)))


def _get_args(op: Operation) -> ThrottleArgs:
    return get_arguments(op, ThrottleArgs)


def _get_entries(op: Operation) -> ThrottleEntries:
    return _get_args(op).entries


def _get_relied_rates(op: Operation) -> Mapping[str, Mapping[str, str]]:
    return _get_args(op).relies_on or {}


def _build_claims(entries: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {f"{e} {key}": f"throttle/{e}/{key}" for e, keys in entries.items() for key in keys}


def remove_throttles(cluster: Cluster, entries: ThrottleEntries) -> Result:
    """Remove the throttle entries in ``entries`` that are still set.

    Return a fault if a request fails or if a broker with entries is down. SUBTRACT can leave an empty list as
    an override. If kdeclare created the list, a second request removes the override. An element that another
    client adds between the two requests is lost.
    """
    fenced_brokers = [broker.id for broker in cluster.describe().brokers if broker.fenced]
    reachable_entries, down_brokers = throttles.split_unreachable(entries, fenced_brokers)
    fault = _alter_configs(cluster, _filter_present(cluster, reachable_entries), _build_removal)
    fresh_entries = {e: {k: v for k, v in ks.items() if _is_fresh(v)} for e, ks in reachable_entries.items()}
    if fault is None:
        fault = _alter_configs(
            cluster, _filter_empty(cluster, {e: ks for e, ks in fresh_entries.items() if ks}), _build_unset
        )
    if fault is None and down_brokers:
        names = ", ".join(map(str, down_brokers))
        return Fault(
            BROKER_DOWN,
            f"Throttle rates are still set on brokers that are down ({names}). The next run removes the "
            "rates.",
        )
    return fault


def _is_fresh(value: ThrottleValue) -> bool:
    return isinstance(value, ThrottledReplicas) and value.fresh


def _filter_present(cluster: Cluster, entries: ThrottleEntries) -> ThrottleEntries:
    """Return the entries that are currently set, without rates that another client has changed."""
    result: dict[str, dict[str, ThrottleValue]] = {}
    for entity, current_values in _read_current_values(cluster, entries).items():
        for key, value in entries[entity].items():
            if isinstance(value, ThrottledReplicas):
                if own_elements := _select_own_elements(value, current_values.get(key)):
                    result.setdefault(entity, {})[key] = replace(value, elements=tuple(own_elements))
            elif current_values.get(key) in throttles.list_rates(value):
                result.setdefault(entity, {})[key] = value
    return result


def _filter_empty(cluster: Cluster, entries: ThrottleEntries) -> ThrottleEntries:
    current_values = _read_current_values(cluster, entries)
    empty_entries = {
        e: {k: v for k, v in keys.items() if current_values[e].get(k) == []} for e, keys in entries.items()
    }
    return {e: keys for e, keys in empty_entries.items() if keys}


def _read_current_values(cluster: Cluster, entries: ThrottleEntries) -> dict[str, dict[str, ConfigOverride]]:
    if not entries:
        return {}
    queries: list[ConfigQuery] = list(throttles.build_selection(entries).configs.values())
    live = KafkaState(cluster.describe(), configs=cluster.configs(queries))
    return {entity: throttles.get_current_values(live, entity) for entity in entries}


def build_throttle_operation(
    operation_type: ThrottleOperationType,
    name: str,
    resource: ResourceId,
    entries: ThrottleEntries,
    args: ThrottleArgs,
) -> Operation:
    """Build the operation that sets or clears throttle entries. Its inverse does the opposite.

    name: the last part of the operation's id. args: all arguments except the entries.
    """
    own_args = replace(args, entries={e: dict(keys) for e, keys in entries.items()})
    inverse_verb = SetThrottle.name if operation_type.is_cleanup else ClearThrottle.name
    inverse = Inverse(inverse_verb, own_args)
    return Operation(
        f"{operation_type.name}:{name}", operation_type.name, resource, own_args, {}, inverse=inverse
    )


_ConfigOpFactory = Callable[[str, ThrottleValue], ConfigOp]


def _build_put(key: str, value: ThrottleValue) -> ConfigOp:
    if isinstance(value, ThrottledReplicas):
        return ConfigOp(key, FieldOp.APPEND, ",".join(value.elements))
    return ConfigOp(key, FieldOp.SET, throttles.list_rates(value)[-1])


def _build_removal(key: str, value: ThrottleValue) -> ConfigOp:
    if isinstance(value, ThrottledReplicas):
        return ConfigOp(key, FieldOp.SUBTRACT, ",".join(value.elements))
    return _build_unset(key, value)


def _build_unset(key: str, value: ThrottleValue) -> ConfigOp:
    return ConfigOp(key, FieldOp.DELETE, None)


def _alter_configs(cluster: Cluster, entries: ThrottleEntries, make_op: _ConfigOpFactory) -> Result:
    """Change the throttles of all topics and brokers in one request. Ignore topics that no longer exist.

    Return the first fault.
    """
    alterations = [
        ConfigAlteration(
            throttles.parse_entity(entity), tuple(make_op(key, value) for key, value in keys.items())
        )
        for entity, keys in entries.items()
    ]
    if not alterations:
        return None
    faults = [(r, f) for r, f in cluster.alter_configs(alterations).items() if f is not None]
    missing_topic_error = "UNKNOWN_TOPIC_OR_PARTITION"
    relevant_faults = [
        (r, f) for r, f in faults if not (r.scope is ConfigScope.TOPIC and f.error == missing_topic_error)
    ]
    if not relevant_faults:
        return None
    resource, fault = relevant_faults[0]
    return Fault(fault.error, f"{resource.scope}/{resource.name}: {fault.message}", fault.kind)


def _select_own_elements(value: ThrottledReplicas, current_elements: ConfigOverride) -> list[str]:
    return [element for element in value.elements if element in (current_elements or ())]
