"""Resources that a manifest declares as absent with ``lifecycle.state``, so that deletions are reviewed."""

from typing import Annotated, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.parts import LiveState
from kdeclare.core.resources.kind import DesiredResource, SpecProblem
from kdeclare.core.resources.owned_record import OwnedRecord

CONTRADICTING_LIFECYCLE = "contradicting-lifecycle"

ResourceState: TypeAlias = Annotated[
    Literal["present", "absent"],
    Field(
        description="absent: delete the resource, without --allow-deletes. A resource that this project "
        "never applied is deleted only if adoption is allowed. present (default): create or update it."
    ),
]
"""The type of ``lifecycle.state``."""


@runtime_checkable
class DeletesByRecord(Protocol):
    """A kind whose diff needs an ownership record to know what to delete.

    Without this capability, the name of a resource alone must identify everything that its deletion removes.
    """

    def build_absent_record(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> OwnedRecord | None:
        """Return a record of everything to delete; None if there is nothing to delete.

        The engine passes this record to `Kind.diff` and `Kind.plan_operations`, but does not store it. If
        ``owned`` is not None and adoption is not allowed, the record contains only what is owned.

        desired: the manifest that declares the resource as absent.
        """


def is_declared_absent(spec: BaseModel) -> bool:
    """Whether a manifest declares that its resource must not exist."""
    return getattr(getattr(spec, "lifecycle", None), "state", None) == "absent"


def check_declared_absence(resource: str, spec: BaseModel) -> tuple[SpecProblem, ...]:
    """Return an error if a manifest both declares its resource as absent and protects it from deletion."""
    if not is_declared_absent(spec) or not getattr(getattr(spec, "lifecycle", None), "preventDestroy", False):
        return ()
    problem = error(
        CONTRADICTING_LIFECYCLE,
        "Deletion is both declared and prevented",
        f"The lifecycle of {resource} has state: absent and preventDestroy: true.",
        hint="Remove preventDestroy to delete the resource, or remove state to keep it.",
        resource=resource,
    )
    return (SpecProblem(("lifecycle", "state"), problem),)
