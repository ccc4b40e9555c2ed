"""Changing configs (IncrementalAlterConfigs, KIP-339): all ops of one resource in one atomic entry."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue, as_texts
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Result
from kdeclare.core.operations.binding import get_arguments
from kdeclare.core.operations.operation import Operation, Undo
from kdeclare.core.operations.operation_type import View, is_identity, is_other_object
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SHOWN, SecretRef, SecretSource, Steps
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.config.catalog import Catalog, catalog
from kdeclare.providers.kafka.config.config_diff import ConfigSide, elements_of, override
from kdeclare.providers.kafka.config.wishes import joined
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, KafkaState
from kdeclare.providers.kafka.operations.arguments import (
    AlterConfigsArgs,
    ConfigOpArgs,
    make_config_argument,
    show_config_argument,
)
from kdeclare.providers.kafka.operations.kafka_operation_type import (
    Effect,
    KafkaOperationType,
    identities,
    identity_claims,
)
from kdeclare.providers.kafka.port import Alteration, ConfigOp, ConfigQuery

CLUSTER_DEFAULT = "cluster-default"
"""The name of the `BrokerConfig` that is for all brokers."""


def entity(op: Operation) -> ConfigResource:
    """The config resource that an operation is on."""
    args = get_arguments(op, AlterConfigsArgs)
    return ConfigResource(_SCOPES[args.entity_type], args.entity_name)


# A plan asks for it ten times per operation, and calling the enum takes longer than all the rest.
_SCOPES = {scope.value: scope for scope in ConfigScope}


def list_ops(op: Operation) -> tuple[ConfigOpArgs, ...]:
    """Return the ops on keys that an operation makes."""
    return get_arguments(op, AlterConfigsArgs).ops


def topics_of(resource: ConfigResource) -> tuple[str, ...]:
    """The topic that a config resource is, if it is one."""
    return (resource.name,) if resource.scope is ConfigScope.TOPIC else ()


def own_source(resource: ConfigResource) -> ConfigSource:
    """The config source of an override on that very resource."""
    if resource.scope is ConfigScope.TOPIC:
        return ConfigSource.TOPIC
    return ConfigSource.BROKER if resource.name else ConfigSource.CLUSTER


class AlterConfigs(KafkaOperationType):
    """Changes keys of one config resource."""

    name = "configs.alter"
    done_label = ("resource configured", "resources configured")
    arguments = AlterConfigsArgs
    validates = True

    def find_right(self, op: Operation) -> str:
        """Of the topic, or of the cluster."""
        resource = entity(op)
        named = f"topic {resource.name}" if resource.scope is ConfigScope.TOPIC else "the cluster"
        return f"AlterConfigs on {named}"

    def is_confined(self, op: Operation) -> bool:
        """To the topic or broker with the configs."""
        scope, name = entity(op)
        if scope is ConfigScope.TOPIC:
            return op.resource == ResourceId("Topic", name)
        return op.resource == ResourceId("BrokerConfig", name or CLUSTER_DEFAULT)

    def select(self, op: Operation) -> Selections:
        """Just the keys that it touches."""
        resource = entity(op)
        keys = frozenset(item.key for item in list_ops(op))
        topics = frozenset({resource.name}) if resource.scope is ConfigScope.TOPIC else frozenset()
        return (KafkaSelection(topics, {resource: ConfigQuery(resource, keys)}),)

    def view(self, op: Operation, live: LiveState) -> View:
        """The overrides of its keys; None is unset."""
        state = live.get(KafkaState)
        resource = entity(op)
        side = ConfigSide(
            str(op.resource), state.configs.get(resource, {}), own_source(resource), catalog(resource.scope)
        )
        values = {item.key: override(side, item.key) for item in list_ops(op)}
        return values | identities(topics_of(resource), state)

    def expected_state(self, op: Operation) -> View:
        """The overrides once the ops are done, lists resolved as Kafka does."""
        keys = catalog(entity(op).scope)
        done = {item.key: _result(item, op.expect.get(item.key), keys) for item in list_ops(op)}
        return {**op.expect, **done}

    def effects(self, op: Operation) -> Mapping[str, Effect]:
        """The overrides of a topic as they will be."""
        after = self.expected_state(op)
        keys = [item.key for item in list_ops(op)]
        configs = {key: None if after[key] is None else joined(after[key]) for key in keys}
        fields = frozenset(f"configs.{key}" for key in keys)
        return {topic: Effect(configs=configs, fields=fields) for topic in topics_of(entity(op))}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """One a key."""
        after = self.expected_state(op)
        return tuple(
            FieldChange(
                f"configs.{item.key}",
                FieldOp(item.op),
                op.expect.get(item.key),
                after[item.key],
                list(item.elements) if item.op in (FieldOp.APPEND, FieldOp.SUBTRACT) else None,
            )
            for item in list_ops(op)
        )

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """All or nothing, as Kafka has it."""
        return op if topics.isdisjoint(topics_of(entity(op))) else None

    def element_at(self, op: Operation, at: Steps) -> str:
        """The key that an op is about."""
        if at[0] == "ops" and isinstance(at[1], int):
            return list_ops(op)[at[1]].key
        return super().element_at(op, at)

    def without(self, op: Operation, elements: Set[str]) -> Operation | None:
        """The ops on other keys."""
        args = get_arguments(op, AlterConfigsArgs)
        left = tuple(item for item in args.ops if item.key not in elements)
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        return replace(op, args=replace(args, ops=left), expect=expect) if left else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One a key, and the topic's identity."""
        scope, name = entity(op)
        keys = {item.key: f"configs/{scope}/{name}/{item.key}" for item in list_ops(op)}
        return keys | identity_claims(topics_of(entity(op)))

    def item(self, op: Operation) -> str:
        """The config resource."""
        return "/".join(entity(op))

    def produces(self, op: Operation) -> frozenset[str]:
        """Its keys."""
        return frozenset(claim for e, claim in self.claims(op).items() if not is_identity(e))

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """IncrementalAlterConfigs."""
        cluster = connections.get(KafkaConnection).cluster
        items = [Alteration(entity(op), tuple(_request(o, secrets) for o in list_ops(op))) for op in ops]
        results = cluster.alter_configs(items, validate_only=validate_only)
        return {op.id: results[entity(op)] for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Bring back each key that still is as the operation left it."""
        after = self.expected_state(op)
        if is_other_object(op, now):
            return Undo(conflicts=("the topic itself",))
        back: list[ConfigOpArgs] = []
        conflicts: list[str] = []
        lost: list[str] = []
        for item in list_ops(op):
            key = item.key
            before, current = op.expect.get(key), now.get(key)
            hidden = before == SHOWN
            if current == before and not hidden:
                continue
            if hidden and not (item.was and item.was.reference):
                lost.append(f"the secret of {key}")
            elif current == after[key]:
                back.append(_inverse(item, before, after[key]))
            elif item.op == FieldOp.APPEND and _holds(current, item.elements):
                back.append(ConfigOpArgs(key, "SUBTRACT", item.value))
            elif item.op == FieldOp.SUBTRACT and isinstance(current, list) and before is not None:
                missing = tuple(e for e in item.elements if e not in current)
                if missing:
                    back.append(ConfigOpArgs(key, "APPEND", missing))
            else:
                conflicts.append(key)
        args = replace(get_arguments(op, AlterConfigsArgs), ops=tuple(back)) if back else None
        return Undo(self.name, args, tuple(conflicts), tuple(lost))


def _holds(current: JsonValue, elements: Sequence[str]) -> bool:
    return isinstance(current, list) and all(element in current for element in elements)


def _inverse(item: ConfigOpArgs, before: JsonValue, after: JsonValue) -> ConfigOpArgs:
    """The op that leads from ``after`` back to ``before``, by element where that is exact."""
    was = item.value if isinstance(item.value, SecretRef) else None
    if before is None:
        return ConfigOpArgs(item.key, "DELETE", None, was)
    if before == SHOWN:
        return ConfigOpArgs(item.key, "SET", item.was, was)
    if item.op == FieldOp.APPEND:
        return ConfigOpArgs(item.key, "SUBTRACT", item.value)
    if item.op == FieldOp.SUBTRACT and [*_read_elements(after), *item.elements] == before:
        return ConfigOpArgs(item.key, "APPEND", item.value)
    return ConfigOpArgs(item.key, "SET", make_config_argument(before))


def _result(item: ConfigOpArgs, before: JsonValue, keys: Catalog) -> JsonValue:
    value = item.value
    if item.op == FieldOp.DELETE:
        return None
    if item.op == FieldOp.SET:
        if isinstance(value, SecretRef):
            return SHOWN
        return keys.canonical(item.key, value) if isinstance(value, str) else show_config_argument(value)
    start = list(keys.default_list(item.key)) if before is None else _read_elements(before)
    if item.op == FieldOp.APPEND:
        return start + [e for e in item.elements if e not in start]
    for element in item.elements:
        if element in start:
            start.remove(element)
    return start


def _read_elements(value: JsonValue) -> list[str]:
    """The elements of an override that stands in a plan."""
    return list(elements_of(value if value is None or isinstance(value, str) else list(as_texts(value))))


def _request(item: ConfigOpArgs, secrets: SecretSource) -> ConfigOp:
    value = item.value
    if isinstance(value, SecretRef):
        value = secrets.reveal(value)
    elif isinstance(value, tuple):
        # elements are matched as they were set, and a describe does not show the blanks between them
        blank = [f" {element}" for element in value] if item.op == FieldOp.SUBTRACT else []
        value = ",".join([*value, *blank])
    return ConfigOp(item.key, FieldOp(item.op), value)
