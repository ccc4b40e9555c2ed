"""The ownership record of a connector, and the effects of lifecycle options on it and on comparisons."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_FALSE, OMIT_NONE
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.providers.connect.connector.live import ConnectorState
from kdeclare.providers.connect.connector.settings import CLASS, STATE_PATH, TASKS_MAX, to_argument
from kdeclare.providers.connect.connector.spec import ConnectorBody, StateName

StatedSetting = Annotated[SecretRef | str, Field(union_mode="left_to_right")]
"""A value of a config in operation arguments and ownership records."""


@dataclass(frozen=True, slots=True)
class ConnectorRecord(OwnedRecord):
    """The config and state that kdeclare applied last to a connector.

    endpoint: the name of the Connect cluster. connector: the name of the connector.
    config: the whole config, without ``name``.
    state: None if the state is not managed.
    ignore: keys that kdeclare keeps without managing them.
    needs: the ids of resources that must be deleted after the connector.
    deleteOffsets: whether the offsets are deleted together with the connector.
    """

    endpoint: str
    connector: str
    config: Mapping[str, StatedSetting]
    state: Annotated[StateName | None, OMIT_NONE] = None
    ignore: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    needs: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    deleteOffsets: Annotated[bool, OMIT_FALSE] = False  # noqa: N815
    preventDestroy: Annotated[bool, OMIT_FALSE] = False  # noqa: N815
    labels: Annotated[Mapping[str, str], OMIT_EMPTY] = field(default_factory=dict)

    @property
    def needed_resources(self) -> tuple[ResourceId, ...]:
        """The resources that must be deleted after the connector."""
        return tuple(map(ResourceId.parse, self.needs))


def build_record(body: ConnectorBody, endpoint: str, labels: Mapping[str, str]) -> ConnectorRecord:
    """Return the ownership record of a declared connector. endpoint: the name of its Connect cluster."""
    return ConnectorRecord(
        endpoint,
        body.name,
        {key: to_argument(setting) for key, setting in body.whole_config.items()},
        body.state,
        tuple(sorted(body.ignore)),
        tuple(map(str, body.needs)),
        body.delete_offsets,
        body.prevent_destroy,
        dict(labels),
    )


def ignore_fields(body: ConnectorBody, state: ConnectorState) -> ConnectorBody:
    """Return the body without the ignored fields of an existing connector.

    The keys of the ignored fields are added to ``ignore``, so that a new config keeps their live values. A
    missing connector is created with all fields.
    """
    if not body.ignored:
        return body
    cluster = state.get_cluster(body.endpoint)
    if not cluster.is_readable:
        return body  # the plan reports the problem and changes nothing
    live = cluster.find(body.name)
    if live is None:
        return replace(body, ignored=())
    keys = body.ignored_keys
    return replace(
        body,
        class_name=live.config.get(CLASS, body.class_name) if CLASS in keys else body.class_name,
        tasks_max=None if TASKS_MAX in keys else body.tasks_max,
        config={key: setting for key, setting in body.config.items() if key not in keys},
        state=None if STATE_PATH in body.ignored else body.state,
        ignore=body.ignore | keys,
    )


def restore_ignored(
    record: ConnectorRecord, body: ConnectorBody, owned: ConnectorRecord | None
) -> ConnectorRecord:
    """Copy the ignored fields from the previous ownership record to the new one, and return the new one.

    The ignored fields keep their previous values, because kdeclare does not apply them.
    body: the result of `ignore_fields`.
    """
    if not body.ignored:
        return record
    keys = body.ignored_keys
    applied = owned.config if owned is not None else {}
    kept = {key: setting for key, setting in applied.items() if key in keys}
    config = {key: setting for key, setting in record.config.items() if key not in keys}
    state = owned.state if owned is not None else None
    return replace(
        record,
        config={**config, **kept},
        state=state if STATE_PATH in body.ignored else record.state,
        ignore=tuple(key for key in record.ignore if key not in keys),
    )


def build_absent_record(
    body: ConnectorBody, state: ConnectorState, owned: ConnectorRecord | None, labels: Mapping[str, str]
) -> ConnectorRecord | None:
    """Return a record of everything to delete; see `DeletesByRecord`.

    The manifest determines whether the offsets are deleted as well.
    """
    if owned is not None:
        return replace(owned, deleteOffsets=body.delete_offsets)
    cluster = state.get_cluster(body.endpoint)
    if not cluster.is_readable or cluster.find(body.name) is None:
        return None
    # The config was never applied, so the record does not contain it.
    record = build_record(replace(body, config={}, state=None), cluster.name, labels)
    return replace(record, config={}, preventDestroy=False)
