"""The data that `kdeclare connector list` and `describe` display, in the structure of the JSON output."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue


@dataclass(frozen=True, slots=True)
class UnreadableConnectView:
    """A Connect cluster that could not be read. message: the reason, as a clause."""

    schema_name = "UnreadableConnectDocument"

    connect: Annotated[str, Field(description="The name of the Connect cluster in the environment.")]
    message: str


@dataclass(frozen=True, slots=True)
class ConnectorView:
    """One connector with the number of its tasks.

    state: one of Connect's states; empty if the connector has no status yet.
    """

    schema_name = "ConnectorDocument"

    connect: Annotated[str, Field(description="The name of the Connect cluster in the environment.")]
    name: str
    type: Annotated[str, Field(description="source, sink or unknown (the class is not installed).")]
    class_name: Annotated[str, Field(serialization_alias="class")]
    state: Annotated[
        str, Field(description="The state that Connect reports; empty if the connector has no status yet.")
    ]
    tasks_total: int
    tasks_running: int
    tasks_failed: int


@dataclass(frozen=True, slots=True)
class ConnectorListView:
    """The connectors of Connect clusters, sorted by Connect cluster and name."""

    exit_code: Annotated[int, Field(description="1 if a Connect cluster could not be read.")]
    connectors: tuple[ConnectorView, ...]
    unreadable: tuple[UnreadableConnectView, ...]


@dataclass(frozen=True, slots=True)
class ConnectorTaskView:
    """One task. failure: the first line of the stack trace; None if the task has not failed."""

    schema_name = "ConnectorTaskDocument"

    id: int
    state: str
    worker_id: str
    failure: Annotated[str | None, Field(description="Null if the task has not failed.")]


@dataclass(frozen=True, slots=True)
class ConnectorOffsetView:
    """One offset, in the format of the connector class."""

    schema_name = "ConnectorOffsetDocument"

    partition: Mapping[str, JsonValue]
    offset: Mapping[str, JsonValue] | None


@dataclass(frozen=True, slots=True)
class ConnectorDetailView(ConnectorView):
    """One connector with its config, tasks, offsets and owners. Sensitive values are masked.

    failure: the first line of the stack trace; None if the connector has not failed.
    offsets: None if the offsets could not be read.
    declared_by: the resource, as KIND/NAME, if a manifest declares the connector; otherwise None.
    owned_by: the resource, as KIND/NAME, if kdeclare owns the connector; otherwise None.
    """

    schema_name = "ConnectorDetailDocument"

    worker_id: str
    failure: Annotated[str | None, Field(description="Null if the connector has not failed.")]
    config: Annotated[Mapping[str, JsonValue], Field(description="Sensitive values are masked.")]
    tasks: tuple[ConnectorTaskView, ...]
    offsets: Annotated[
        tuple[ConnectorOffsetView, ...] | None, Field(description="Null if the offsets could not be read.")
    ]
    declared_by: Annotated[
        str | None,
        Field(
            description="The resource, as KIND/NAME, if a manifest declares the connector; otherwise null."
        ),
    ]
    owned_by: Annotated[
        str | None,
        Field(description="The resource, as KIND/NAME, if kdeclare owns the connector; otherwise null."),
    ]


def build_connector_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas by name; see `publish_schemas`."""
    return publish_schemas({"connector-describe": ConnectorDetailView, "connector-list": ConnectorListView})
