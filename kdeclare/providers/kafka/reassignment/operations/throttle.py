"""Throttling moves and letting go of it: one's own entries only, by APPEND and SUBTRACT (KIP-73, KIP-339)."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import Inverse, Operation, Undo
from kdeclare.core.operations.operation_type import View, with_args
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.run import Status
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretSource
from kdeclare.providers.kafka.config.config_diff import Override
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import KafkaOperationType
from kdeclare.providers.kafka.operations.partitions import topics_of
from kdeclare.providers.kafka.port import Alteration, Cluster, ConfigOp, ConfigQuery
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.completion import MOVES
from kdeclare.providers.kafka.reassignment.leftovers import (
    Entries,
    Throttle,
    ThrottledReplicas,
    read_throttles,
    with_throttles,
)
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs
from kdeclare.providers.kafka.reassignment.throttles import LISTS

BROKER_DOWN = "BROKER_NOT_AVAILABLE"


class ThrottleOperationType(KafkaOperationType):
    """What setting throttles and taking them away have in common."""

    is_auxiliary = True

    def select(self, op: Operation) -> Selections:
        """The lists and rates that it touches, and the moves that it is for."""
        entities = _entries(op).keys() | _relied(op).keys()
        return (throttles.query(sorted(entities), topics_of(_args(op).partitions)),)

    def view(self, op: Operation, live: LiveState) -> View:
        """The rates, and of the lists one's own elements: other people's come and go."""
        state = live.get(KafkaState)
        view: dict[str, JsonValue] = {}
        for entity, keys in _entries(op).items():
            there = throttles.present(state, entity)
            for key, value in keys.items():
                now = there.get(key)
                view[f"{entity} {key}"] = _own(value, now) if isinstance(value, ThrottledReplicas) else now
        for entity, keys in _relied(op).items():
            rates = throttles.in_force(state, entity)
            view |= {f"{entity} {key}": rates.get(key) for key in keys}
        return view

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """None of the resource's own: a throttle comes and goes with its moves."""
        return ()

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """The entries of brokers and of other topics; none where no other topic is moved."""
        rest = [p for p in _args(op).partitions if TopicPartition.parse(p).topic not in topics]
        mine = {f"{ConfigScope.TOPIC}/{topic}" for topic in topics}
        entries = {entity: keys for entity, keys in _entries(op).items() if entity not in mine}
        left = with_args(op, replace(_args(op), partitions=tuple(rest), entries=entries))
        touched = self.claims(left)
        return replace(left, expect={e: v for e, v in op.expect.items() if e in touched}) if rest else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One a rate or list."""
        return _claims(_entries(op)) | _claims(_relied(op))

    def item(self, op: Operation) -> str:
        """Two of them may be about the same topic."""
        return self.name

    def produces(self, op: Operation) -> frozenset[str]:
        """Its entries."""
        return frozenset(_claims(_entries(op)).values())

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Nothing: the moves that undo moves have a throttle of their own."""
        return Undo()


class SetThrottle(ThrottleOperationType):
    """Puts the entries there; nothing moves before the brokers show them."""

    name = "throttle.set"
    done_label = ("throttle set", "throttles set")
    arguments = ThrottleArgs
    propagates = True

    def is_temporary(self, op: Operation) -> bool:
        """Whether it sets anything, and does not only rely on what is there."""
        return bool(_entries(op))

    def lagging(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """The brokers and topics that do not show their entries yet; not brokers that are down."""
        state = live.get(KafkaState)
        now, after = self.view(op, live), self.expected_state(op)
        described = [e for e in _entries(op) if throttles.resource_of(e) in state.configs]
        return tuple(
            f"{entity} does not show {key} = {throttles.shown(_entries(op)[entity][key])} yet"
            for entity in described
            for key in _entries(op)[entity]
            if now[f"{entity} {key}"] != after[f"{entity} {key}"]
        )

    def expected_state(self, op: Operation) -> View:
        """All of the entries, and what it relies on as it was."""
        relies_on = _relied(op)
        relied = {f"{e} {key}": rate for e, keys in relies_on.items() for key, rate in keys.items()}
        return relied | {
            f"{entity} {key}": list(value.elements) if isinstance(value, ThrottledReplicas) else value
            for entity, keys in _entries(op).items()
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
        """IncrementalAlterConfigs: APPEND to the lists of topics, SET the rates of brokers."""
        cluster = connections.get(KafkaConnection).cluster
        return {op.id: _altered(cluster, _entries(op), _put) for op in ops}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """Its entries, also where it is not known which of them took effect."""
        if status in (Status.INTERRUPTED, Status.SKIPPED, Status.STALE):
            return before
        done = status is Status.DONE
        both = throttles.joined(read_throttles(before), _entries(op), certain=done)
        return with_throttles(before, both)


class ClearThrottle(ThrottleOperationType):
    """Takes the entries away, once none of its partitions is being moved. Another's rate stays."""

    name = "throttle.clear"
    cleanup_label = "took their throttle away"
    done_label = ("throttle cleared", "throttles cleared")
    arguments = ThrottleArgs
    awaits = MOVES
    is_cleanup = True

    def expected_state(self, op: Operation) -> View:
        """None of the entries."""
        return {
            f"{entity} {key}": [] if key in LISTS else None
            for entity, keys in _entries(op).items()
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
        """IncrementalAlterConfigs, after a look at what is there."""
        cluster = connections.get(KafkaConnection).cluster
        return {op.id: remove(cluster, _entries(op)) for op in ops}

    def update_cleanup(self, op: Operation, status: Status, before: PendingCleanup) -> PendingCleanup:
        """What was there before, less its entries once they are gone."""
        if status is not Status.DONE:
            return before
        return with_throttles(before, throttles.less(read_throttles(before), _entries(op)))


def _args(op: Operation) -> ThrottleArgs:
    return get_arguments(op, ThrottleArgs)


def _entries(op: Operation) -> Entries:
    return _args(op).entries


def _relied(op: Operation) -> Mapping[str, Mapping[str, str]]:
    return _args(op).relies_on or {}


def _claims(entries: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {f"{e} {key}": f"throttle/{e}/{key}" for e, keys in entries.items() for key in keys}


def remove(cluster: Cluster, entries: Entries) -> Result:
    """Take away what of ``entries`` is there; a fault where a broker that holds some is down.

    A list that nobody had set and that is empty now is unset again: SUBTRACT leaves an empty override.
    Kafka cannot do both in one request, so an element that somebody adds in between would be lost.
    """
    down = [broker.id for broker in cluster.describe().brokers if broker.fenced]
    here, held = throttles.without_brokers(entries, down)
    fault = _altered(cluster, _there(cluster, here), _take)
    fresh = {e: {k: v for k, v in ks.items() if _is_fresh(v)} for e, ks in here.items()}
    if fault is None:
        fault = _altered(cluster, _empty(cluster, {e: ks for e, ks in fresh.items() if ks}), _unset)
    if fault is None and held:
        names = ", ".join(map(str, held))
        return Fault(BROKER_DOWN, f"Broker {names} is down and holds a rate; the next run takes it away.")
    return fault


def _is_fresh(value: Throttle) -> bool:
    return isinstance(value, ThrottledReplicas) and value.fresh


def _there(cluster: Cluster, entries: Entries) -> Entries:
    """What of the entries is set; a rate counts only if it is the very one."""
    result: dict[str, dict[str, Throttle]] = {}
    for entity, now in _read(cluster, entries).items():
        for key, value in entries[entity].items():
            if isinstance(value, ThrottledReplicas):
                if mine := _own(value, now.get(key)):
                    result.setdefault(entity, {})[key] = replace(value, elements=tuple(mine))
            elif now.get(key) in throttles.rates(value):
                result.setdefault(entity, {})[key] = value
    return result


def _empty(cluster: Cluster, entries: Entries) -> Entries:
    found = _read(cluster, entries)
    empty = {e: {k: v for k, v in keys.items() if found[e].get(k) == []} for e, keys in entries.items()}
    return {e: keys for e, keys in empty.items() if keys}


def _read(cluster: Cluster, entries: Entries) -> dict[str, dict[str, Override]]:
    if not entries:
        return {}
    queries: list[ConfigQuery] = list(throttles.query(entries).configs.values())
    live = KafkaState(cluster.describe(), configs=cluster.configs(queries))
    return {entity: throttles.present(live, entity) for entity in entries}


def throttling(
    verb: ThrottleOperationType, name: str, resource: ResourceId, entries: Entries, args: ThrottleArgs
) -> Operation:
    """The operation that puts entries there, or takes them away; what undoes it is the other one.

    name: what tells it from others of its verb. args: what it has beside the entries.
    """
    own = replace(args, entries={e: dict(keys) for e, keys in entries.items()})
    other = SetThrottle.name if verb.is_cleanup else ClearThrottle.name
    inverse = Inverse(other, own)
    return Operation(f"{verb.name}:{name}", verb.name, resource, own, {}, inverse=inverse)


_Op = Callable[[str, Throttle], ConfigOp]


def _put(key: str, value: Throttle) -> ConfigOp:
    if isinstance(value, ThrottledReplicas):
        return ConfigOp(key, FieldOp.APPEND, ",".join(value.elements))
    return ConfigOp(key, FieldOp.SET, throttles.rates(value)[-1])


def _take(key: str, value: Throttle) -> ConfigOp:
    if isinstance(value, ThrottledReplicas):
        return ConfigOp(key, FieldOp.SUBTRACT, ",".join(value.elements))
    return _unset(key, value)


def _unset(key: str, value: Throttle) -> ConfigOp:
    return ConfigOp(key, FieldOp.DELETE, None)


def _altered(cluster: Cluster, entries: Entries, op: _Op) -> Result:
    """One request for all entities; the first refusal speaks. A topic that is gone needs no throttle."""
    items = [
        Alteration(throttles.resource_of(entity), tuple(op(key, value) for key, value in keys.items()))
        for entity, keys in entries.items()
    ]
    if not items:
        return None
    faults = [(r, f) for r, f in cluster.alter_configs(items).items() if f is not None]
    gone = "UNKNOWN_TOPIC_OR_PARTITION"
    bad = [(r, f) for r, f in faults if not (r.scope is ConfigScope.TOPIC and f.error == gone)]
    if not bad:
        return None
    resource, fault = bad[0]
    return Fault(fault.error, f"{resource.scope}/{resource.name}: {fault.message}", fault.kind)


def _own(value: ThrottledReplicas, now: Override) -> list[str]:
    return [element for element in value.elements if element in (now or ())]
