"""Plan the operations of a change to a connector, in the order in which Connect needs them."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.core.operations.operation import Arguments, Inverse, Operation
from kdeclare.core.operations.operation_type import OperationType, with_inverse
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.changes import Action, Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_hashes import is_hash_of
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.providers.connect.client.connectors_port import LiveConnector
from kdeclare.providers.connect.connector.arguments import (
    ConfigureConnectorArgs,
    CreateConnectorArgs,
    DeleteConnectorArgs,
    DeleteOffsetsArgs,
    RestartArgs,
    SetStateArgs,
)
from kdeclare.providers.connect.connector.config_operations import CONFIGURE, CREATE, DELETE
from kdeclare.providers.connect.connector.diff import TASKS_PATH
from kdeclare.providers.connect.connector.live import ClusterSnapshot, ConnectorState
from kdeclare.providers.connect.connector.record import ConnectorRecord, StatedSetting
from kdeclare.providers.connect.connector.settings import (
    CLASS,
    NAME,
    STATE_PATH,
    find_key,
    is_hidden,
    is_masked,
    is_sensitive_setting,
    to_argument,
)
from kdeclare.providers.connect.connector.spec import ConnectorBody, StateName, bind_state
from kdeclare.providers.connect.connector.state_operations import DELETE_OFFSETS, RESTART, SET_STATE
from kdeclare.providers.connect.connector.status import RUNNING, find_target_state

_STATE_FIRST = "the state of the connector changes before its config"
_CONFIG_FIRST = "the config of the connector changes before the connector is resumed"
_STOPPED_FIRST = "only the offsets of a stopped connector can be deleted"
_OFFSETS_FIRST = "the offsets are deleted before the connector"


def build_connector_operations(
    change: Change, body: ConnectorBody | None, state: ConnectorState, owned: ConnectorRecord | None
) -> tuple[Operation, ...]:
    """Return the operations of a change. body: the declared connector; None for a deletion."""
    if body is None:
        assert owned is not None, "only owned connectors are deleted"
        return _plan_deletion(change.id, state, owned)
    cluster = state.get_cluster(body.endpoint)
    live = cluster.find(body.name)
    if change.action is Action.CREATE or live is None:
        return (_plan_creation(change.id, body, cluster, state),)
    return _plan_update(change, body, cluster, live, state, owned)


def _plan_creation(
    resource: ResourceId, body: ConnectorBody, cluster: ClusterSnapshot, state: ConnectorState
) -> Operation:
    config = {key: to_argument(setting) for key, setting in body.whole_config.items()}
    args = CreateConnectorArgs(
        cluster.name,
        body.name,
        config,
        hidden=_list_hidden_keys(config, cluster.find_password_keys(body.class_name)),
        needs=tuple(map(str, body.needs)),
        state=body.state,
    )
    return _build_operation(CREATE, resource, args, state)


def _plan_update(
    change: Change,
    body: ConnectorBody,
    cluster: ClusterSnapshot,
    live: LiveConnector,
    state: ConnectorState,
    owned: ConnectorRecord | None,
) -> tuple[Operation, ...]:
    paths = [field.path for field in change.fields]
    changed_keys = frozenset(key for path in paths if (key := find_key(path)) is not None)
    new_state = body.state if STATE_PATH in paths else None
    operations: list[Operation] = []
    if changed_keys:
        new_config = _build_configure_args(body, cluster, live, owned, changed_keys)
        is_state_first = new_state is not None and new_state != RUNNING
        awaited = new_state if is_state_first else bind_state(find_target_state(live))
        operations.append(_build_operation(CONFIGURE, change.id, replace(new_config, awaited=awaited), state))
    if new_state is not None:
        state_args = SetStateArgs(cluster.name, body.name, new_state)
        operations.append(_build_operation(SET_STATE, change.id, state_args, state))
    if TASKS_PATH in paths:
        restart_args = RestartArgs(cluster.name, body.name, only_failed=body.restart != "all")
        operations.append(_build_operation(RESTART, change.id, restart_args, state))
    return _order_update(operations, new_state)


def _order_update(operations: list[Operation], new_state: StateName | None) -> tuple[Operation, ...]:
    """Order the operations of a change to both the config and the state.

    A connector is resumed after its config has changed, so that no tasks start with the old config. It is
    paused or stopped before its config changes, so that no tasks start with the new config.
    """
    if len(operations) < 2:
        return tuple(operations)
    configure, set_state = operations
    if new_state == RUNNING:
        return configure, replace(set_state, needs={configure.id: _CONFIG_FIRST})
    return set_state, replace(configure, needs={set_state.id: _STATE_FIRST})


def _build_configure_args(
    body: ConnectorBody,
    cluster: ClusterSnapshot,
    live: LiveConnector,
    owned: ConnectorRecord | None,
    changed_keys: frozenset[str],
) -> ConfigureConnectorArgs:
    applied: Mapping[str, StatedSetting] = owned.config if owned is not None else {}
    config: dict[str, StatedSetting] = {}
    for key, setting in body.whole_config.items():
        text = live.config.get(key)
        # An unchanged class keeps its live name, which can be an alias of the declared name.
        is_kept = key == CLASS and key not in changed_keys and text is not None
        config[key] = text if is_kept and text is not None else to_argument(setting)
    removed = sorted(live.config.keys() - config.keys() - body.ignore - {NAME})
    was = {
        key: earlier
        for key in sorted(changed_keys)
        if (earlier := _find_replaced_value(applied.get(key), config.get(key), live.config.get(key)))
        is not None
    }
    password_keys = cluster.find_password_keys(body.class_name, live.config.get(CLASS, ""))
    hidden_keys = password_keys | {
        key for key, stated in applied.items() if isinstance(stated, SecretRef) and key not in was
    }
    return ConfigureConnectorArgs(
        cluster.name,
        body.name,
        config,
        was,
        _list_hidden_keys({*config, *removed}, hidden_keys),
        tuple(map(str, body.needs)),
        tuple(removed),
        tuple(sorted(key for key in changed_keys & config.keys() if is_masked(live.config.get(key)))),
        tuple(sorted(body.ignore)),
    )


def _find_replaced_value(
    applied: StatedSetting | None, stated: StatedSetting | None, text: str | None
) -> StatedSetting | None:
    """Return the earlier value of a key, for a rollback; None if the value is unknown or in the view.

    If the earlier or the new value is a secret, the view contains only hashes. In this case, the earlier
    value is known only if kdeclare applied it.
    """
    if isinstance(applied, SecretRef):
        return applied if _is_value_of(applied, text) else None
    return applied if isinstance(stated, SecretRef) and applied == text else None


def _plan_deletion(
    resource: ResourceId, state: ConnectorState, owned: ConnectorRecord
) -> tuple[Operation, ...]:
    cluster = state.get_cluster(owned.endpoint)
    live = cluster.find(owned.connector)
    assert live is not None, "the diff does not delete missing connectors"
    deletion = _build_operation(DELETE, resource, _build_delete_args(cluster, live, owned), state)
    if not owned.deleteOffsets:
        return (deletion,)
    stop_args = SetStateArgs(owned.endpoint, owned.connector, "STOPPED", is_deletion=True)
    stop = _build_operation(SET_STATE, resource, stop_args, state)
    offsets_args = DeleteOffsetsArgs(owned.endpoint, owned.connector)
    offsets = replace(
        _build_operation(DELETE_OFFSETS, resource, offsets_args, state), needs={stop.id: _STOPPED_FIRST}
    )
    return stop, offsets, replace(deletion, needs={offsets.id: _OFFSETS_FIRST})


def _build_delete_args(
    cluster: ClusterSnapshot, live: LiveConnector, owned: ConnectorRecord
) -> DeleteConnectorArgs:
    password_keys = cluster.find_password_keys(live.config.get(CLASS, ""))
    config: dict[str, StatedSetting] = {}
    was: dict[str, SecretRef] = {}
    lost: list[str] = []
    for key, text in sorted(live.config.items()):
        applied = owned.config.get(key)
        if key == NAME:
            continue
        if isinstance(applied, SecretRef) and _is_value_of(applied, text):
            was[key] = applied
        elif isinstance(applied, SecretRef) or is_masked(text) or is_hidden(key, text, password_keys):
            lost.append(key)
        else:
            config[key] = text
    return DeleteConnectorArgs(
        owned.endpoint,
        owned.connector,
        config,
        was,
        _list_hidden_keys({*config, *lost}, password_keys | set(lost)),
        owned.needs,
        bind_state(find_target_state(live)),
        tuple(lost),
        owned.ignore,
    )


def _is_value_of(secret: SecretRef, text: str | None) -> bool:
    """Whether a live value is the applied secret. A masked live value is assumed to be that secret."""
    return text is not None and (is_masked(text) or is_hash_of(secret.secret, text))


def _list_hidden_keys(keys: Mapping[str, object] | set[str], hidden_keys: frozenset[str]) -> tuple[str, ...]:
    """Return the keys in both collections whose names do not indicate that their values are secret."""
    return tuple(sorted(key for key in hidden_keys if key in keys and not is_sensitive_setting(key)))


def _build_operation(
    operation_type: OperationType, resource: ResourceId, args: Arguments, state: ConnectorState
) -> Operation:
    draft = Operation(f"{operation_type.name}:{resource}", operation_type.name, resource, args, {})
    op = replace(draft, expect=operation_type.compute_view(draft, LiveState(state)))
    if operation_type is RESTART:  # there is nothing to undo
        return replace(op, inverse=Inverse(RESTART.name, args))
    return with_inverse(operation_type, op)
