"""Predict the impact of a hypothetical change: plan it like an ad hoc command, and apply nothing."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from kdeclare.app.adhoc.run import AdhocRequest
from kdeclare.app.plan import complete_options
from kdeclare.app.secrets import seal_secrets
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.plan import Plan
from kdeclare.core.progress import Progress
from kdeclare.engine.planning.adhoc import plan_adhoc
from kdeclare.engine.planning.request import PlanRequest, PlanScope


@dataclass(frozen=True, slots=True)
class PredictedImpact:
    """The impact of a hypothetical change.

    plan: the change with its observations; None if none of the resources can be changed.
    failed: the diagnostics of each resource that cannot be changed.
    """

    plan: Plan | None
    failed: Mapping[str, tuple[Diagnostic, ...]]


def read_impact(
    workspace: Workspace, build_request: Callable[[Connections], AdhocRequest], progress: Progress
) -> PredictedImpact:
    """Plan a hypothetical change, and return the plan with its impact. Raises KdeclareError.

    The state is not read, so no resource counts as owned. Policies do not evaluate the change. The systems do
    not validate the change either, because validation requires the same permissions as the change itself.

    build_request: builds the request from the live state. It raises KdeclareError or Fault.
    """
    project = workspace.project
    with workspace.open_connections() as connections:
        request = build_request(connections)
        if not request.has_remaining:
            return PredictedImpact(None, request.failed)
        desired, secrets = seal_secrets(workspace, request.desired, None, connections, progress)
        scope = PlanScope(
            complete=False,
            by_hand=True,
            preflight=False,
            impact=True,
            removals=request.removals,
            options=complete_options(PlanOptions(), project),
        )
        partial_plan = plan_adhoc(
            PlanRequest(
                project.name,
                project.environment.name,
                workspace.cluster_name,
                desired,
                None,
                scope,
                request.diagnostics,
            ),
            connections,
            secrets,
            progress,
        )
    failed = {**request.failed, **partial_plan.failed}
    has_plan = replace(request, failed=failed).has_remaining
    return PredictedImpact(partial_plan.plan if has_plan else None, failed)
