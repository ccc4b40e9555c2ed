"""The arguments of operations on connectors."""

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.providers.connect.client.connectors_port import LiveConnector
from kdeclare.providers.connect.connector.record import StatedSetting
from kdeclare.providers.connect.connector.settings import NAME, mark_setting, mark_stated
from kdeclare.providers.connect.connector.spec import StateName

EXISTS = "exists"
"""The name of the view element that shows whether the connector exists."""
OTHER_KEYS = "(other keys)"
"""The name of the view element for live keys that are not in the plan. The operation would remove them."""


def _is_true(value: object) -> bool:
    return value is True


_OMIT_TRUE = Field(exclude_if=_is_true)


@dataclass(frozen=True, slots=True)
class ConnectorArgs(Arguments):
    """The connector that an operation changes. endpoint: the name of its Connect cluster."""

    endpoint: Annotated[str, Field(min_length=1)]
    connector: Annotated[str, Field(min_length=1)]

    @property
    def location(self) -> str:
        """A string that identifies the connector among all Connect clusters of the environment."""
        return f"{self.endpoint}/{self.connector}"


@dataclass(frozen=True, slots=True)
class ConfigArgs(ConnectorArgs):
    """The whole config of a connector.

    config: the config without ``name``. Secrets that the operation sends are `SecretRef` objects.
    was: the values that a rollback needs: the secrets that the operation replaces or deletes, and the plain
        values that the operation replaces with secrets.
    hidden: the keys whose values are secrets although the names of the keys do not indicate this.
    needs: the ids of resources that are created before the connector and deleted after it.
    """

    config: Mapping[str, StatedSetting]
    was: Annotated[Mapping[str, StatedSetting], OMIT_EMPTY] = field(default_factory=dict)
    hidden: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    needs: Annotated[tuple[str, ...], OMIT_EMPTY] = ()

    @property
    def needed_resources(self) -> tuple[ResourceId, ...]:
        """The resources that are created before the connector and deleted after it."""
        return tuple(map(ResourceId.parse, self.needs))

    def mark_live(self, key: str, connector: LiveConnector | None, stated: StatedSetting | None) -> JsonValue:
        """Return a live value in the form that views use; see `mark_setting`.

        stated: the value that the operation sets.
        """
        text = connector.config.get(key) if connector is not None else None
        return mark_setting(self.location, key, text, stated, self.was.get(key), self.hidden)

    def find_other_keys(self, connector: LiveConnector | None, known_keys: Collection[str]) -> list[str]:
        """Return the live keys that are neither in the config nor among ``known_keys``."""
        live_keys = set(connector.config) if connector is not None else set()
        return sorted(live_keys - {*self.config, *known_keys, NAME})

    @property
    def secrets(self) -> Mapping[str, SecretRef]:
        """The secrets that the operation sends."""
        return {key: stated for key, stated in self.config.items() if isinstance(stated, SecretRef)}


@dataclass(frozen=True, slots=True)
class CreateConnectorArgs(ConfigArgs):
    """A connector to create. state: the initial state; None for Connect's default, RUNNING."""

    state: Annotated[StateName | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class ConfigureConnectorArgs(ConfigArgs):
    """The whole new config of a connector.

    removed: the keys that the operation removes from the config.
    masked: the keys that are set although their live values are unknown.
    ignore: the keys that keep their live values and do not appear in the view.
    others: the keys that other clients have set. They also keep their live values.
    awaited: the state to wait for, which the operation does not change.
    """

    removed: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    masked: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    ignore: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    others: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    awaited: Annotated[StateName | None, OMIT_NONE] = None

    @property
    def keys(self) -> list[str]:
        """All config keys that the operation sets or removes."""
        return sorted({*self.config, *self.removed})


@dataclass(frozen=True, slots=True)
class DeleteConnectorArgs(ConfigArgs):
    """A connector to delete, with the config and the state that a rollback needs to recreate the connector.

    config: the values that are not secret. ``was`` contains the secrets.
    lost: the keys of secrets that kdeclare does not know.
    ignore: the keys whose values are allowed to change between the plan and the deletion.
    """

    state: Annotated[StateName | None, OMIT_NONE] = None
    lost: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    ignore: Annotated[tuple[str, ...], OMIT_EMPTY] = ()


@dataclass(frozen=True, slots=True)
class SetStateArgs(ConnectorArgs):
    """The new state of a connector.

    is_deletion: whether the operation prepares the deletion of the connector.
    """

    state: StateName
    is_deletion: bool = False


@dataclass(frozen=True, slots=True)
class RestartArgs(ConnectorArgs):
    """The connector to restart, together with its tasks. only_failed: restart only what is FAILED."""

    only_failed: Annotated[bool, _OMIT_TRUE] = True


@dataclass(frozen=True, slots=True)
class DeleteOffsetsArgs(ConnectorArgs):
    """The connector whose offsets the operation deletes, before another operation deletes the connector."""


def mark_config(args: ConfigArgs) -> Mapping[str, JsonValue]:
    """Return the values that an operation sets, in the form that views use."""
    return {key: mark_stated(stated, args.was.get(key)) for key, stated in args.config.items()}
