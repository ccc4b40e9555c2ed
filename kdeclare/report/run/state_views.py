"""The data that ``kdeclare state`` shows about the state. All classes are also JSON documents."""

from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue

_Names = Annotated[tuple[str, ...], Field(description="Kind/name, sorted.")]


@dataclass(frozen=True, slots=True)
class OwnedResources:
    """The resources that kdeclare owns, according to the state."""

    project: str
    env: str
    cluster_id: Annotated[str, Field(description="Empty until a run has changed a system with an id.")]
    lineage: str
    serial: int
    resources: _Names


@dataclass(frozen=True, slots=True)
class OwnedResource:
    """The ownership record of one resource. It contains hashes of secrets, and never a secret."""

    resource: Annotated[str, Field(description="Kind/name.")]
    record: Annotated[JsonValue, Field(description="The fields that kdeclare applied last, as in the state.")]


@dataclass(frozen=True, slots=True)
class OwnershipChange:
    """A change to the ownership records in the state. The resources themselves are not changed."""

    serial: Annotated[int, Field(description="The serial of the state with the change.")]
    lineage: str
    released: Annotated[tuple[str, ...], Field(description="Resources that are no longer owned.")]
    added: Annotated[tuple[str, ...], Field(description="Resources that are now owned.")]
    changed: Annotated[tuple[str, ...], Field(description="Resources whose ownership record has changed.")]
    written: Annotated[bool, Field(description="Whether the state was written.")]
    diagnostics: Diagnostics = ()


@dataclass(frozen=True, slots=True)
class StateRevision:
    """A version of the state of one project in one environment."""

    schema_name = "StateRevision"

    project: str
    env: str
    lineage: str
    serial: Annotated[int, Field(description="The serial of the state with the change.")]


@dataclass(frozen=True, slots=True)
class OwnershipTransfer:
    """A transfer of ownership from one project to another. The resources themselves are not changed."""

    source: Annotated[StateRevision, Field(description="The state that gives up the resources.")]
    target: Annotated[StateRevision, Field(description="The state that takes over the resources.")]
    resources: _Names
    written: Annotated[bool, Field(description="Whether the two states were written.")]
    diagnostics: Diagnostics = ()


@dataclass(frozen=True, slots=True)
class MigratedState:
    """The result of copying a state to another location."""

    source: str
    target: str
    lineage: str
    serial: int
    resources: Annotated[int, Field(description="The number of owned resources.")]
    runs: Annotated[int, Field(description="The number of copied runs.")]
    skipped: Annotated[tuple[str, ...], Field(description="Damaged runs, which were not copied.")]
