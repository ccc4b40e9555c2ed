"""The operation types `connector.create`, `connector.configure` and `connector.delete`."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry
from kdeclare.core.operations.operation import Operation, UndoResult
from kdeclare.core.operations.operation_type import View
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.secret_hashes import is_mark
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, SecretRef, SecretSource
from kdeclare.providers.connect.client.connectors_port import (
    CONNECTOR_MISSING,
    ConnectCluster,
    LiveConnector,
    TargetState,
)
from kdeclare.providers.connect.connector.arguments import (
    EXISTS,
    OTHER_KEYS,
    ConfigArgs,
    ConfigureConnectorArgs,
    CreateConnectorArgs,
    DeleteConnectorArgs,
    mark_config,
)
from kdeclare.providers.connect.connector.completion import CONNECTOR_COMPLETION
from kdeclare.providers.connect.connector.connector_operation import (
    ConnectorOperationType,
    find_connector,
    reveal_config,
)
from kdeclare.providers.connect.connector.record import StatedSetting
from kdeclare.providers.connect.connector.settings import find_path, to_shown_value
from kdeclare.providers.connect.connector.status import find_target_state
from kdeclare.providers.connect.connector.topics import list_schema_entries, list_topic_entries, list_topics

STATE = "state"
"""The view element with the target state of the connector."""


def find_state_element(connector: LiveConnector | None) -> JsonValue:
    """Return the value of `STATE`: the target state, or the reported state if the target is unknown."""
    return None if connector is None else find_target_state(connector) or connector.state


class CreateConnector(ConnectorOperationType):
    """The operation type that creates a connector. Connect refuses the request if the connector exists."""

    name = "connector.create"
    done_label = ("connector created", "connectors created")
    arguments = CreateConnectorArgs
    creates = True
    completion = CONNECTOR_COMPLETION
    access = Access.CREATE

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return the connector, and the resources that it requires."""
        args = _get_create_args(op)
        return (
            *super().compute_footprint(op),
            *list_topic_entries(args.config),
            *list_schema_entries(args.config),
            *_list_needed_entries(args),
        )

    def list_elements(self, op: Operation) -> Sequence[str]:
        """List the view elements: existence, each config key, and the state if the operation sets it."""
        args = _get_create_args(op)
        return [EXISTS, *map(find_path, args.config), *([STATE] if args.state is not None else [])]

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return whether the connector exists, its config, and its state. Secrets are shown as hashes."""
        args, connector = _get_create_args(op), find_connector(op, live)
        view: dict[str, JsonValue] = {EXISTS: connector is not None}
        view |= {find_path(key): args.mark_live(key, connector, args.config[key]) for key in args.config}
        return view | ({STATE: find_state_element(connector)} if args.state is not None else {})

    def expected_state(self, op: Operation) -> View:
        """Return the view after the creation."""
        args = _get_create_args(op)
        view: dict[str, JsonValue] = {EXISTS: True}
        view |= {find_path(key): value for key, value in mark_config(args).items()}
        return view | ({STATE: args.state} if args.state is not None else {})

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field change per config key, and one for the state if the operation sets the state."""
        args = _get_create_args(op)
        fields = [
            FieldChange(find_path(key), FieldOp.SET, None, _to_shown(key, stated))
            for key, stated in args.config.items()
        ]
        if args.state is not None:
            fields.append(FieldChange(STATE, FieldOp.CHANGE, None, args.state))
        return tuple(fields)

    def send(self, cluster: ConnectCluster, op: Operation, secrets: SecretSource) -> None:
        """Send POST /connectors."""
        args = _get_create_args(op)
        state = TargetState(args.state) if args.state is not None else None
        cluster.create_connector(args.connector, reveal_config(args, secrets), state)

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the deletion of the connector.

        If the connector has changed since its creation, return conflicts.
        """
        args, after = _get_create_args(op), self.expected_state(op)
        if not now[EXISTS]:
            return UndoResult()
        conflicts = tuple(e for e, value in now.items() if value not in (op.expect.get(e), after.get(e)))
        if conflicts:
            return UndoResult(conflicts=conflicts)
        public = {key: stated for key, stated in args.config.items() if not isinstance(stated, SecretRef)}
        deletion = DeleteConnectorArgs(
            args.endpoint,
            args.connector,
            public,
            args.secrets,
            args.hidden,
            args.needs,
            state=args.state or "RUNNING",
        )
        return UndoResult(DeleteConnector.name, deletion)


class ConfigureConnector(ConnectorOperationType):
    """The operation type that replaces the config of a connector.

    A request always replaces the whole config, and Connect cannot check that the config has not changed since
    the plan. Therefore, the view contains the whole config.
    """

    name = "connector.configure"
    done_label = ("connector configured", "connectors configured")
    arguments = ConfigureConnectorArgs
    completion = CONNECTOR_COMPLETION
    manner = frozenset({"awaited"})

    def compute_footprint(self, op: Operation) -> Footprint:
        """List the connector, the resources that it requires, and the topics that it no longer uses."""
        args = _get_configure_args(op)
        before = {key: op.expect.get(find_path(key)) for key in args.keys}
        released = list_topics(before) - list_topics(args.config)
        return (
            *super().compute_footprint(op),
            *list_topic_entries(args.config),
            *list_schema_entries(args.config),
            *_list_needed_entries(args),
            *list_topic_entries({"topics": ",".join(sorted(released))}, Access.AFTER),
        )

    def list_elements(self, op: Operation) -> Sequence[str]:
        """List the view elements: existence, unknown keys, and each config key."""
        return [EXISTS, OTHER_KEYS, *map(find_path, _get_configure_args(op).keys)]

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the config, with secrets as hashes, and the names of keys that other clients have added."""
        args, connector = _get_configure_args(op), find_connector(op, live)
        other_keys = args.find_other_keys(connector, (*args.removed, *args.ignore))
        view: dict[str, JsonValue] = {EXISTS: connector is not None, OTHER_KEYS: other_keys}
        return view | {
            find_path(key): args.mark_live(key, connector, args.config.get(key)) for key in args.keys
        }

    def expected_state(self, op: Operation) -> View:
        """Return the view with the new config."""
        args = _get_configure_args(op)
        new_values = {find_path(key): value for key, value in mark_config(args).items()}
        removed_values = dict.fromkeys(map(find_path, args.removed))
        return {**op.expect, EXISTS: True, OTHER_KEYS: list(args.others), **new_values, **removed_values}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field change per changed key."""
        args, after = _get_configure_args(op), self.expected_state(op)
        fields: list[FieldChange] = []
        for key in args.keys:
            path = find_path(key)
            before = SENSITIVE_MASK if key in args.masked else _to_shown(key, op.expect.get(path))
            if key not in args.config:
                fields.append(FieldChange(path, FieldOp.DELETE, before, None))
            elif key in args.masked or op.expect.get(path) != after[path]:
                fields.append(FieldChange(path, FieldOp.SET, before, _to_shown(key, args.config[key])))
        return tuple(fields)

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return the operation without changes to the given keys. These keys keep their live values."""
        args = _get_configure_args(op)
        kept_keys = {key for key in args.keys if find_path(key) in elements}
        config = {key: stated for key, stated in args.config.items() if key not in kept_keys}
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        remaining = replace(
            args,
            config=config,
            removed=tuple(key for key in args.removed if key not in kept_keys),
            masked=tuple(key for key in args.masked if key not in kept_keys),
            ignore=tuple(sorted({*args.ignore, *kept_keys})),
        )
        reduced = replace(op, args=remaining, expect=expect)
        return reduced if self.fields(reduced) else None

    def send(self, cluster: ConnectCluster, op: Operation, secrets: SecretSource) -> None:
        """Send PUT /connectors/NAME/config, with the live values of the ignored keys.

        Read the connector first, because Connect would create the connector if it did not exist.
        """
        args = _get_configure_args(op)
        connector = cluster.describe_connector(args.connector)
        if connector is None:
            raise Fault(CONNECTOR_MISSING, f"The connector {args.connector} does not exist")
        kept_keys = connector.config.keys() & {*args.ignore, *args.others}
        kept = {key: connector.config[key] for key in kept_keys}
        cluster.replace_config(args.connector, {**kept, **reveal_config(args, secrets)})

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that restores the earlier values.

        Keys that another client changed, and secrets that cannot be resolved, keep their live values.
        """
        args, after = _get_configure_args(op), self.expected_state(op)
        if not now[EXISTS]:
            return UndoResult(conflicts=(EXISTS,))
        config: dict[str, StatedSetting] = {}
        removed: list[str] = []
        kept_keys, reverted_keys = set(args.ignore), set[str]()
        conflicts: list[str] = []
        lost: list[str] = []
        for key in args.keys:
            path = find_path(key)
            before, current = op.expect.get(path), now.get(path)
            earlier_value = _find_earlier_value(args, key, before)
            if current == before and key not in args.masked:
                if isinstance(before, str) and not is_mark(before):
                    config[key] = before
                elif before is not None:
                    kept_keys.add(key)  # an unchanged secret, which need not be resolved again
            elif current != after[path]:
                conflicts.append(path)
                kept_keys.add(key)
            elif before is None:
                removed.append(key)
                reverted_keys.add(key)
            elif earlier_value is not None:
                config[key] = earlier_value
                reverted_keys.add(key)
            else:
                lost.append(f"the earlier value of {path}")
                kept_keys.add(key)
        restored_args = replace(
            args,
            config=config,
            was={key: args.config[key] for key in _list_secret_changes(args) if key in reverted_keys},
            awaited=None,  # another client can have changed the state after the operation
            removed=tuple(removed),
            masked=tuple(key for key in args.masked if key in reverted_keys),
            ignore=tuple(sorted(kept_keys)),
            others=tuple(sorted(_find_other_keys(now))),
        )
        return UndoResult(self.name, restored_args if reverted_keys else None, tuple(conflicts), tuple(lost))


class DeleteConnector(ConnectorOperationType):
    """The operation type that deletes a connector. The offsets of the connector are kept."""

    name = "connector.delete"
    done_label = ("connector deleted", "connectors deleted")
    arguments = DeleteConnectorArgs
    deletes = True
    access = Access.DELETE

    def compute_footprint(self, op: Operation) -> Footprint:
        """Return the connector, and the topics and other resources that are deleted after it."""
        args = _get_delete_args(op)
        return (
            *super().compute_footprint(op),
            *list_topic_entries(args.config, Access.AFTER),
            *list_schema_entries(args.config),
            *_list_needed_entries(args, Access.AFTER),
        )

    def list_elements(self, op: Operation) -> Sequence[str]:
        """List the view elements: existence, unknown keys, and each config key that is not ignored."""
        return [EXISTS, OTHER_KEYS, *map(find_path, _list_deleted_keys(_get_delete_args(op)))]

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return whether the connector exists, and its config, with secrets as hashes."""
        args, connector = _get_delete_args(op), find_connector(op, live)
        keys = _list_deleted_keys(args)
        view: dict[str, JsonValue] = {
            EXISTS: connector is not None,
            OTHER_KEYS: args.find_other_keys(connector, (*keys, *args.ignore)),
        }
        return view | {find_path(key): args.mark_live(key, connector, None) for key in keys}

    def expected_state(self, op: Operation) -> View:
        """Return the view without the connector."""
        keys = _list_deleted_keys(_get_delete_args(op))
        return {EXISTS: False, OTHER_KEYS: [], **dict.fromkeys(map(find_path, keys))}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return no fields, because the whole connector is deleted."""
        return ()

    def send(self, cluster: ConnectCluster, op: Operation, secrets: SecretSource) -> None:
        """Send DELETE /connectors/NAME."""
        cluster.delete_connector(_get_delete_args(op).connector)

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the creation of the connector with its earlier config and state."""
        args = _get_delete_args(op)
        if now == op.expect:
            return UndoResult()
        if now[EXISTS]:
            return UndoResult(conflicts=(EXISTS,))
        unknown = [*args.lost, *filter(lambda key: not _can_be_restored(args.was[key]), args.was)]
        if unknown:
            lost = tuple(f"the value of {find_path(key)}" for key in unknown)
            return UndoResult(CreateConnector.name, None, (), lost)
        config: dict[str, StatedSetting] = {**args.config, **args.was}
        creation = CreateConnectorArgs(
            args.endpoint, args.connector, config, hidden=args.hidden, needs=args.needs, state=args.state
        )
        return UndoResult(CreateConnector.name, creation)


def _list_needed_entries(args: ConfigArgs, access: Access = Access.REQUIRES) -> Iterator[FootprintEntry]:
    for resource in args.needed_resources:
        yield FootprintEntry(resource.kind, resource.name, access)


def _find_earlier_value(args: ConfigureConnectorArgs, key: str, before: JsonValue) -> StatedSetting | None:
    """Return the value to restore; None if it is a secret that cannot be resolved."""
    if key in args.masked or is_mark(before):
        earlier = args.was.get(key)
        return earlier if earlier is not None and _can_be_restored(earlier) else None
    return before if isinstance(before, str) else None


def _can_be_restored(earlier: StatedSetting) -> bool:
    """Whether a rollback can restore the value.

    Literal secrets cannot be restored, because plans do not contain them.
    """
    return isinstance(earlier, str) or earlier.reference is not None


def _find_other_keys(view: View) -> set[str]:
    others = view.get(OTHER_KEYS)
    return {key for key in others if isinstance(key, str)} if isinstance(others, list | tuple) else set()


def _list_secret_changes(args: ConfigureConnectorArgs) -> list[str]:
    """Return the config keys whose new or earlier value is a secret."""
    return [
        key
        for key, stated in args.config.items()
        if isinstance(stated, SecretRef) or isinstance(args.was.get(key), SecretRef)
    ]


def _list_deleted_keys(args: DeleteConnectorArgs) -> list[str]:
    return sorted({*args.config, *args.was, *args.lost} - set(args.ignore))


def _to_shown(key: str, value: JsonValue | SecretRef) -> JsonValue:
    """Return a value for display in a change. Secrets are masked."""
    if isinstance(value, SecretRef) or is_mark(value):
        return SENSITIVE_MASK
    return to_shown_value(key, value) if isinstance(value, str) else None


CREATE, CONFIGURE, DELETE = CreateConnector(), ConfigureConnector(), DeleteConnector()


def _get_create_args(op: Operation) -> CreateConnectorArgs:
    return get_arguments(op, CreateConnectorArgs)


def _get_configure_args(op: Operation) -> ConfigureConnectorArgs:
    return get_arguments(op, ConfigureConnectorArgs)


def _get_delete_args(op: Operation) -> DeleteConnectorArgs:
    return get_arguments(op, DeleteConnectorArgs)


def get_config(op: Operation) -> Mapping[str, StatedSetting] | None:
    """Return the whole config that an operation sends; None if it sends no config."""
    return op.args.config if isinstance(op.args, CreateConnectorArgs | ConfigureConnectorArgs) else None
