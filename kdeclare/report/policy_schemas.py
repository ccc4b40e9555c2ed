"""The JSON Schemas of what ``policy check`` and ``policy test`` print with ``--format json``."""

from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import (
    CLOSED,
    DiagnosticDocument,
    PlaceDocument,
    VerdictDocument,
)
from kdeclare.report.schemas import schemas_of

Said = Literal["allow", "warn", "deny"]


@with_config(CLOSED)
class CheckedVerdictDocument(VerdictDocument):
    """A verdict, and where the topic is declared; null where it is not."""

    place: PlaceDocument | None


@with_config(CLOSED)
class PolicyTallyDocument(TypedDict):
    """One policy: of how many topics it was asked, denied, warned, and could not tell without a cluster."""

    policy: str
    asked: int
    denied: int
    warned: int
    open: int


@with_config(CLOSED)
class OpenDocument(TypedDict):
    """What only a cluster can tell."""

    policy: str
    resource: str


@with_config(CLOSED)
class PolicyCheckDocument(TypedDict):
    """What the policies say of topics."""

    format_version: Literal["1.0"]
    outcome: Literal["no-policies", "in-order", "warned", "denied"]
    headline: str
    exit_code: Annotated[int, Field(description="The same as the exit status of the process.")]
    project: str
    env: str
    cluster: Annotated[str | None, Field(description="null where manifests were checked, without --live.")]
    topics: Annotated[int, Field(description="How many were checked.")]
    against: Annotated[int, Field(description="How many of them are denied by a policy.")]
    policies: list[PolicyTallyDocument]
    verdicts: list[CheckedVerdictDocument]
    open: list[OpenDocument]
    diagnostics: list[DiagnosticDocument]


@with_config(CLOSED)
class CaseDocument(TypedDict):
    """One case; ``got`` is null where a policy could not say, and ``problems`` say why."""

    test: Annotated[str, Field(description="The name of the PolicyTest that it stands in.")]
    name: str
    place: PlaceDocument
    passed: bool
    expected: Said
    got: Said | None
    verdicts: list[VerdictDocument]
    problems: list[str]


@with_config(CLOSED)
class PolicyTestDocument(TypedDict):
    """What came of an author's cases."""

    format_version: Literal["1.0"]
    outcome: Literal["passed", "failed"]
    headline: str
    exit_code: Annotated[int, Field(description="The same as the exit status of the process.")]
    passed: int
    failed: int
    cases: list[CaseDocument]
    diagnostics: list[DiagnosticDocument]


def policy_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of({"policy-check": PolicyCheckDocument, "policy-test": PolicyTestDocument})
