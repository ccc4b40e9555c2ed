"""Planning what a command asks for, one resource apart from the other.

An error about one resource stops a plan from being applied, so what is wrong is taken out and the rest is
planned again: of a request for many topics, one failure does not stop the others (KIP-4).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.parts import Connections
from kdeclare.core.plan import Plan
from kdeclare.core.progress import Progress
from kdeclare.core.secrets import SecretSource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanRequest

_ABOUT_MANIFESTS = "refused-by-cluster"
"""Of this code the hint speaks of a manifest, which there is none of."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A plan without errors about single resources, and those errors by resource."""

    plan: Plan
    failed: Mapping[str, tuple[Diagnostic, ...]]


def plan_apart(
    request: PlanRequest, connections: Connections, secrets: SecretSource, progress: Progress
) -> Apart:
    """Plan what can be had of a request by hand.

    What is wrong with the request as a whole stays in the plan. Raises Fault when the cluster does not
    answer, KdeclareError when the state is another cluster's.
    """
    failed: dict[str, tuple[Diagnostic, ...]] = {}
    while True:
        plan = build_plan(_without(request, failed), connections, secrets, progress)
        wrong = [d for d in plan.diagnostics if d.is_error and d.resource in _asked(request)]
        if {d.resource for d in wrong} <= failed.keys():  # what stays wrong without it is the plan's own
            return Apart(plan, failed)
        for resource in {d.resource for d in wrong if d.resource}:
            failed[resource] = tuple(map(_by_hand, (d for d in wrong if d.resource == resource)))


def _asked(request: PlanRequest) -> Collection[str]:
    return {str(desired.id) for desired in request.desired} | {str(id_) for id_ in request.scope.removals}


def _without(request: PlanRequest, failed: Mapping[str, Sequence[Diagnostic]]) -> PlanRequest:
    if not failed:
        return request
    removals = frozenset(id_ for id_ in request.scope.removals if str(id_) not in failed)
    return replace(
        request,
        desired=tuple(desired for desired in request.desired if str(desired.id) not in failed),
        scope=replace(request.scope, removals=removals),
        diagnostics=tuple(d for d in request.diagnostics if d.resource not in failed),
    )


def _by_hand(problem: Diagnostic) -> Diagnostic:
    return replace(problem, hint="") if problem.code == _ABOUT_MANIFESTS else problem
