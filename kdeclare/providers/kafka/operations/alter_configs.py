"""Change configs (IncrementalAlterConfigs, KIP-339). Kafka applies all changes to a resource atomically."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue, as_texts
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Result
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import View, has_other_object, is_identity
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, SecretRef, SecretSource, ValuePath
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.config.catalog import Catalog, load_catalog
from kdeclare.providers.kafka.config.config_diff import LiveConfigs, find_override, split_elements
from kdeclare.providers.kafka.config.config_value import join_elements
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import (
    LISTED_SCOPES,
    ListedConfigsSelection,
    ListedConfigsState,
)
from kdeclare.providers.kafka.live import KafkaState, get_own_source
from kdeclare.providers.kafka.operations.arguments import (
    AlterConfigsArgs,
    ConfigOpArgs,
    make_config_argument,
    show_config_argument,
)
from kdeclare.providers.kafka.operations.kafka_operation_type import (
    KafkaOperationType,
    TopicEffect,
    build_identity_claims,
    build_identity_view,
)
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery

CLUSTER_DEFAULT = "cluster-default"
"""The name of the `BrokerConfig` resource for the cluster-wide default configs."""


def get_config_resource(op: Operation) -> ConfigResource:
    """Return the config resource whose configs an operation changes."""
    args = get_arguments(op, AlterConfigsArgs)
    return ConfigResource(_SCOPES[args.entity_type], args.entity_name)


KINDS_BY_SCOPE = {
    ConfigScope.TOPIC: "Topic",
    ConfigScope.BROKER: "BrokerConfig",
    ConfigScope.GROUP: "GroupConfig",
    ConfigScope.CLIENT_METRICS: "ClientMetrics",
}
"""The kind for each type of config resource."""

# A plan calls get_config_resource ten times per operation. Calling the enum would take most of the time.
_SCOPES = {scope.value: scope for scope in ConfigScope}


def list_ops(op: Operation) -> tuple[ConfigOpArgs, ...]:
    """Return the config changes of an operation, one per key."""
    return get_arguments(op, AlterConfigsArgs).ops


def list_config_topics(resource: ConfigResource) -> tuple[str, ...]:
    """Return a tuple with the topic name, or an empty tuple if the config resource is not a topic."""
    return (resource.name,) if resource.scope is ConfigScope.TOPIC else ()


class AlterConfigs(KafkaOperationType):
    """The operation type that changes the configs of one resource."""

    name = "configs.alter"
    done_label = ("resource configured", "resources configured")
    arguments = AlterConfigsArgs
    validates = True
    deletion_risk = Risk.SAFE

    def find_right(self, op: Operation) -> str:
        """Return the required ACL operation and resource: AlterConfigs on the topic, group or cluster."""
        scope, name = get_config_resource(op)
        is_named = scope in (ConfigScope.TOPIC, ConfigScope.GROUP)
        return f"AlterConfigs on {scope.noun} {name}" if is_named else "AlterConfigs on the cluster"

    def is_confined(self, op: Operation) -> bool:
        """Return whether the operation belongs to the resource whose configs it changes."""
        scope, name = get_config_resource(op)
        return op.resource == ResourceId(KINDS_BY_SCOPE[scope], name or CLUSTER_DEFAULT)

    def find_created_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource of the operation if the operation creates it; otherwise None."""
        return op.resource if _is_whole(op) and list_ops(op)[0].op != FieldOp.DELETE else None

    def find_deleted_resource(self, op: Operation) -> ResourceId | None:
        """Return the resource of the operation if the operation deletes all its configs; otherwise None."""
        return op.resource if _is_whole(op) and list_ops(op)[0].op == FieldOp.DELETE else None

    def select(self, op: Operation) -> Selections:
        """Select the config keys that the operation changes."""
        resource = get_config_resource(op)
        keys = frozenset(item.key for item in list_ops(op))
        query = ConfigQuery(resource, keys)
        if resource.scope in LISTED_SCOPES:
            return (ListedConfigsSelection({resource: query}),)
        return (KafkaSelection(frozenset(list_config_topics(resource)), {resource: query}),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the overrides of the keys that the operation changes. None means no override.

        Raises Fault if the brokers refuse to describe a group or a client metrics subscription.
        """
        resource = get_config_resource(op)
        if resource.scope in LISTED_SCOPES:
            entries, identity = live.get(ListedConfigsState).find_configs(resource), {}
        else:
            state = live.get(KafkaState)
            entries = state.configs.get(resource, {})
            identity = build_identity_view(list_config_topics(resource), state)
        live_configs = LiveConfigs(
            str(op.resource),
            entries,
            get_own_source(resource),
            load_catalog(resource.scope),
        )
        return {item.key: find_override(live_configs, item.key) for item in list_ops(op)} | identity

    def expected_state(self, op: Operation) -> View:
        """Return the expected overrides after the operation.

        For lists, compute the elements as Kafka does.
        """
        catalog = load_catalog(get_config_resource(op).scope)
        results = {item.key: _compute_result(item, op.expect.get(item.key), catalog) for item in list_ops(op)}
        return {**op.expect, **results}

    def find_topic_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """Return the effect on the topic: its overrides after the operation."""
        expected = self.expected_state(op)
        keys = [item.key for item in list_ops(op)]
        configs = {key: None if expected[key] is None else join_elements(expected[key]) for key in keys}
        fields = frozenset(f"configs.{key}" for key in keys)
        return {
            topic: TopicEffect(configs=configs, fields=fields)
            for topic in list_config_topics(get_config_resource(op))
        }

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field change per key."""
        expected = self.expected_state(op)
        return tuple(
            FieldChange(
                f"configs.{item.key}",
                FieldOp(item.op),
                op.expect.get(item.key),
                expected[item.key],
                list(item.elements) if item.op in (FieldOp.APPEND, FieldOp.SUBTRACT) else None,
            )
            for item in list_ops(op)
        )

    def without_topics(self, op: Operation, topics: Set[str]) -> Operation | None:
        """Return the operation, or None if its topic is in ``topics``. The operation cannot be split."""
        return op if topics.isdisjoint(list_config_topics(get_config_resource(op))) else None

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the config key of the change at a path in the arguments."""
        if at[0] == "ops" and isinstance(at[1], int):
            return list_ops(op)[at[1]].key
        return super().find_element(op, at)

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return the operation without the changes to these keys, or None if no change remains."""
        args = get_arguments(op, AlterConfigsArgs)
        remaining = tuple(item for item in args.ops if item.key not in elements)
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        return replace(op, args=replace(args, ops=remaining), expect=expect) if remaining else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per key, and a claim for the id of the topic."""
        scope, name = get_config_resource(op)
        key_claims = {item.key: f"configs/{scope}/{name}/{item.key}" for item in list_ops(op)}
        return key_claims | build_identity_claims(list_config_topics(get_config_resource(op)))

    def get_batch_key(self, op: Operation) -> str:
        """Return the type and the name of the config resource."""
        return "/".join(get_config_resource(op))

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return the claims of the changed keys."""
        return frozenset(claim for e, claim in self.claims(op).items() if not is_identity(e))

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Send IncrementalAlterConfigs."""
        cluster = connections.get(KafkaConnection).cluster
        alterations = [
            ConfigAlteration(get_config_resource(op), tuple(_build_request(o, secrets) for o in list_ops(op)))
            for op in ops
        ]
        results = cluster.alter_configs(alterations, validate_only=validate_only)
        return {op.id: results[get_config_resource(op)] for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the changes that restore the earlier overrides.

        A key that another client changed after the operation is not restored, but reported as a conflict.
        """
        expected = self.expected_state(op)
        if has_other_object(op, now):
            return UndoResult(conflicts=("the topic itself",))
        undo_ops: list[ConfigOpArgs] = []
        conflicts: list[str] = []
        lost: list[str] = []
        for item in list_ops(op):
            key = item.key
            before, current = op.expect.get(key), now.get(key)
            is_hidden = before == SENSITIVE_MASK
            if current == before and not is_hidden:
                continue
            if is_hidden and not (item.was and item.was.reference):
                lost.append(f"the secret of {key}")
            elif current == expected[key]:
                undo_ops.append(_invert_op(item, before, expected[key]))
            elif item.op == FieldOp.APPEND and _has_elements(current, item.elements):
                undo_ops.append(ConfigOpArgs(key, "SUBTRACT", item.value))
            elif item.op == FieldOp.SUBTRACT and isinstance(current, list) and before is not None:
                missing = tuple(e for e in item.elements if e not in current)
                if missing:
                    undo_ops.append(ConfigOpArgs(key, "APPEND", missing))
            else:
                conflicts.append(key)
        is_whole = _is_whole(op) and not conflicts
        inverse = replace(get_arguments(op, AlterConfigsArgs), ops=tuple(undo_ops), whole=is_whole)
        return UndoResult(self.name, inverse if undo_ops else None, tuple(conflicts), tuple(lost))


def _is_whole(op: Operation) -> bool:
    return get_arguments(op, AlterConfigsArgs).whole


def _has_elements(current: JsonValue, elements: Sequence[str]) -> bool:
    return isinstance(current, list) and all(element in current for element in elements)


def _invert_op(item: ConfigOpArgs, before: JsonValue, after: JsonValue) -> ConfigOpArgs:
    """Return the config change that restores the value ``before``.

    If possible, the change adds and removes individual list elements instead of setting the whole list.
    """
    current_secret = item.value if isinstance(item.value, SecretRef) else None
    if before is None:
        return ConfigOpArgs(item.key, "DELETE", None, current_secret)
    if before == SENSITIVE_MASK:
        return ConfigOpArgs(item.key, "SET", item.was, current_secret)
    if item.op == FieldOp.APPEND:
        return ConfigOpArgs(item.key, "SUBTRACT", item.value)
    if item.op == FieldOp.SUBTRACT and [*_to_elements(after), *item.elements] == before:
        return ConfigOpArgs(item.key, "APPEND", item.value)
    return ConfigOpArgs(item.key, "SET", make_config_argument(before))


def _compute_result(item: ConfigOpArgs, before: JsonValue, catalog: Catalog) -> JsonValue:
    value = item.value
    if item.op == FieldOp.DELETE:
        return None
    if item.op == FieldOp.SET:
        if isinstance(value, SecretRef):
            return SENSITIVE_MASK
        return catalog.normalize(item.key, value) if isinstance(value, str) else show_config_argument(value)
    start = list(catalog.get_default_elements(item.key)) if before is None else _to_elements(before)
    if item.op == FieldOp.APPEND:
        return start + [e for e in item.elements if e not in start]
    for element in item.elements:
        if element in start:
            start.remove(element)
    return start


def _to_elements(value: JsonValue) -> list[str]:
    """Return the elements of an override of type LIST."""
    return list(split_elements(value if value is None or isinstance(value, str) else list(as_texts(value))))


def _build_request(item: ConfigOpArgs, secrets: SecretSource) -> ConfigOp:
    value = item.value
    if isinstance(value, SecretRef):
        value = secrets.reveal(value)
    elif isinstance(value, tuple):
        # Kafka compares elements with their spaces, but described configs do not contain the spaces.
        padded = [f" {element}" for element in value] if item.op == FieldOp.SUBTRACT else []
        value = ",".join([*value, *padded])
    return ConfigOp(item.key, FieldOp(item.op), value)
