"""Resources that a manifest declares as absent with ``lifecycle.state``, so that deletions are reviewed."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.resources.kind import SpecProblem

CONTRADICTING_LIFECYCLE = "contradicting-lifecycle"

ResourceState: TypeAlias = Annotated[
    Literal["present", "absent"],
    Field(
        description="absent: delete the resource, without --allow-deletes. A resource that this project "
        "never applied is deleted only if adoption is allowed. present (default): create or update it."
    ),
]
"""The type of ``lifecycle.state``."""


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
