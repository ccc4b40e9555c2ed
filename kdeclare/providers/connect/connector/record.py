"""The ownership record of a connector."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_FALSE, OMIT_NONE
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.providers.connect.connector.settings import to_argument
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
    """Return the record of a declared connector. endpoint: the name of its Connect cluster."""
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
