"""The views of ``kdeclare group list`` and ``kdeclare group describe``.

The JSON output has the structure of these views.
"""

from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import Diagnostics, Hidden, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.consumer_group.group import GroupType

_IfKnown = Field(description="Null if unknown.")


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group."""

    schema_name = "GroupDocument"

    id: str
    type: GroupType
    protocol: Annotated[
        str, Field(description="The protocol type of the group; empty if a classic group never had members.")
    ]
    state: Annotated[str, Field(description="The state of the group, as Kafka reports it.")]


@dataclass(frozen=True, slots=True)
class GroupListView:
    """The groups of a cluster, sorted by id. is_filtered: whether only some groups were requested."""

    cluster: str
    groups: tuple[GroupView, ...]
    is_filtered: Hidden[bool] = False


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member of a group. partitions: the assigned partitions (``orders-0``)."""

    schema_name = "MemberDocument"

    id: str
    client_id: str
    host: str
    instance_id: Annotated[str | None, Field(description="Null unless the member is static.")]
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OffsetView:
    """The committed offset of one partition, compared with the log of the partition.

    member: the id of the member that the partition is assigned to.
    """

    schema_name = "OffsetDocument"

    topic: str
    partition: int
    committed: Annotated[int | None, Field(description="Null if the group has no committed offset.")]
    log_start: Annotated[int | None, _IfKnown]
    log_end: Annotated[int | None, _IfKnown]
    lag: Annotated[
        int | None,
        Field(description="Number of offsets between the committed offset and the end of the log."),
    ]
    member: Annotated[str | None, Field(description="Null if no member reads the partition.")]
    metadata: str


@dataclass(frozen=True, slots=True)
class GroupDetail(GroupView):
    """One group with its members and offsets.

    members: None if kdeclare cannot describe the members of groups of this type.
    offsets: None if groups of this type do not use committed offsets.
    """

    schema_name = "GroupDetailDocument"

    members: Annotated[tuple[MemberView, ...] | None, Field(description="Null for share and streams groups.")]
    offsets: Annotated[tuple[OffsetView, ...] | None, Field(description="Null for share and streams groups.")]


@dataclass(frozen=True, slots=True)
class GroupsView:
    """Groups with their members and offsets."""

    cluster: str
    groups: tuple[GroupDetail, ...]
    diagnostics: Diagnostics = ()


def build_group_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas by name; see `publish_schemas`."""
    return publish_schemas({"group-describe": GroupsView, "group-list": GroupListView})
