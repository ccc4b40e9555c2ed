"""The impact of a hypothetical change, as ``kdeclare impact`` shows it in text and in JSON."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from kdeclare.app.adhoc.impact import PredictedImpact
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.documents import (
    Diagnostics,
    ResourceText,
    build_document,
    publish_schemas,
)
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Action, FieldOp, Risk
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import sanitize_for_terminal
from kdeclare.report.outcome import plan_outcome
from kdeclare.report.plan.plan_text import render_changes

_NO_IMPACT = "kdeclare found no effect of this change on records, producers or groups."
_NOT_COMPUTED = "kdeclare does not compute the impact of changes of this kind."
_COMPUTED_KINDS = frozenset({"Topic", "Reassignment", "Acl", "ClientQuota", "ScramUser"})


@dataclass(frozen=True, slots=True)
class FieldView:
    """One changed field."""

    schema_name = "ImpactFieldDocument"

    path: str
    op: FieldOp
    before: JsonValue
    after: JsonValue
    risk: Risk


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One hypothetical change."""

    schema_name = "ImpactChangeDocument"

    resource: ResourceText
    action: Action
    risk: Risk
    blocked: Annotated[
        str | None, Field(description="The code of the reason why the change cannot be made, or null.")
    ]
    fields: tuple[FieldView, ...]


@dataclass(frozen=True, slots=True)
class ObservationView:
    """What a change means for records or clients."""

    schema_name = "ImpactObservationDocument"

    resource: str
    path: Annotated[str | None, Field(description="The changed field; null for the resource as a whole.")]
    code: Annotated[str, Field(description="The type of the effect, such as deletable-records.")]
    level: ObservationLevel
    text: Annotated[str, Field(description="The effect as a sentence.")]
    figures: Annotated[
        Mapping[str, JsonValue],
        Field(description="The numbers in the sentence and their bounds, by name. Null if unknown."),
    ]


@dataclass(frozen=True, slots=True)
class ImpactView:
    """The impact of a hypothetical change."""

    cluster: str
    changes: Annotated[tuple[ChangeView, ...], Field(description="Empty if nothing would change.")]
    observations: Annotated[
        tuple[ObservationView, ...], Field(description="For each resource, the most important first.")
    ]
    diagnostics: Diagnostics


def build_impact_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas by name; see `publish_schemas`."""
    return publish_schemas({"impact": ImpactView})


def build_impact_view(cluster: str, predicted: PredictedImpact) -> ImpactView:
    """Return the content of the JSON output of ``kdeclare impact``."""
    plan = predicted.plan
    changes = () if plan is None else plan.changes
    return ImpactView(
        cluster,
        tuple(
            build_document(
                ChangeView,
                change,
                resource=str(change.id),
                fields=tuple(build_document(FieldView, field) for field in change.fields),
            )
            for change in changes
        ),
        () if plan is None else tuple(build_document(ObservationView, item) for item in plan.observations),
        list_diagnostics(predicted),
    )


def list_diagnostics(predicted: PredictedImpact) -> tuple[Diagnostic, ...]:
    """Return the problems that were found while the change was planned."""
    planned = () if predicted.plan is None else predicted.plan.diagnostics
    failed = (problem for problems in predicted.failed.values() for problem in problems)
    return tuple(dict.fromkeys((*failed, *planned)))


def compute_impact_exit_code(predicted: PredictedImpact) -> ExitCode:
    """Return the exit code: ERROR if a resource cannot be changed, DENIED if a change is not allowed."""
    if predicted.failed or predicted.plan is None:
        return ExitCode.ERROR
    return plan_outcome(predicted.plan).exit_code


def _build_silent(resource: str, *, is_computed: bool) -> Observation:
    if is_computed:
        return Observation(resource, "no-impact", ObservationLevel.INFO, _NO_IMPACT)
    return Observation(resource, "impact-unknown", ObservationLevel.UNKNOWN, _NOT_COMPUTED)


def render_impact(cluster: str, plan: Plan, style: Style = PLAIN) -> str:
    """Render the changes with their impact."""
    target = sanitize_for_terminal(cluster)
    changes = [change for change in plan.changes if change.action is not Action.NO_OP]
    if not changes:
        return f"No changes: {target} already has these values.\n"
    observed = {item.resource for item in plan.observations}
    silent = [
        _build_silent(str(change.id), is_computed=change.id.kind in _COMPUTED_KINDS)
        for change in changes
        if not change.blocked and change.action is not Action.CREATE and str(change.id) not in observed
    ]
    subject = "This change" if len(changes) == 1 else "These changes"
    title = style.bold(f"{subject} would have this impact on {target}. Nothing is changed.")
    text = render_changes(replace(plan, observations=(*plan.observations, *silent)), style)
    return f"{title}\n\n{text.rstrip()}\n"
