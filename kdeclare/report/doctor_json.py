"""What ``kdeclare doctor`` found, for scripts, with its JSON Schema."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import CLOSED
from kdeclare.report.doctor_views import DoctorView
from kdeclare.report.schemas import schemas_of


@with_config(CLOSED)
class CheckDocument(TypedDict):
    """One thing that was looked at."""

    section: str
    name: str
    standing: Annotated[
        Literal["ok", "skipped", "warning", "failed"],
        Field(description="skipped: not looked at, or not in use here."),
    ]
    what: Annotated[str, Field(description="How it was found.")]
    why: Annotated[str, Field(description="What it is needed for; may be empty.")]
    hint: Annotated[str, Field(description="What to do; may be empty.")]


@with_config(CLOSED)
class DoctorDocument(TypedDict):
    """All that was looked at, in the order in which one thing rests on the other."""

    format_version: Literal["1.0"]
    outcome: Annotated[Literal["ok", "warning", "failed"], Field(description="The worst of all checks.")]
    exit_code: int
    checks: list[CheckDocument]


def doctor_document(view: DoctorView) -> dict[str, Any]:
    """The document."""
    return {
        "format_version": "1.0",
        "outcome": view.worst.value,
        "exit_code": int(view.exit_code),
        "checks": [
            {
                "section": section.title,
                "name": check.name,
                "standing": check.standing.value,
                "what": check.what,
                "why": check.why,
                "hint": check.hint,
            }
            for section in view.sections
            for check in section.checks
        ],
    }


def doctor_schemas() -> Mapping[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of({"doctor": DoctorDocument})
