"""Read the live state that a plan request needs, and compare the requested resources with it."""

from collections.abc import Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selection, WaitPolicy
from kdeclare.core.live.endpoints import validate_endpoints
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, prepare_context
from kdeclare.core.progress import Progress
from kdeclare.core.provider.provider_queries import start_plan
from kdeclare.core.resources.kind import ResourceComparison
from kdeclare.engine.observation import identify_system, list_endpoints, observe, observe_owned
from kdeclare.engine.planning.comparison import compare_resources, list_selections_to_observe
from kdeclare.engine.planning.ignored_fields import leave_out_ignored_fields
from kdeclare.engine.planning.request import PlanRequest, PlanScope


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """The resources of a request, compared with the live state.

    request: the request without the ignored fields of existing resources.
    selections: the selections of the live state that was read.
    inputs, hooks, context: the inputs of the plan, the hooks of the providers, and the context that
        the kinds share.
    compared: the resources in scope, sorted by id.
    """

    request: PlanRequest
    selections: tuple[Selection, ...]
    inputs: PlanInputs
    hooks: Sequence[PlanHooks]
    context: PlanContext
    compared: Sequence[ResourceComparison]


def read_and_compare(request: PlanRequest, connections: Connections, progress: Progress) -> ComparedRequest:
    """Read the live state, and compare the resources in scope.

    Raises Fault if a system does not respond, and KdeclareError if the state belongs to a different cluster.
    """
    scope = request.scope
    selections = list_selections_to_observe(request)
    progress("Reading the cluster", 0, 0)
    patience = WaitPolicy(scope.visibility_timeout_s, progress)
    observation = observe_owned(connections, selections, request.owned, patience)
    _validate_system(request, connections, observation.live)
    validate_endpoints(request.state.endpoints if request.state else {}, list_endpoints(observation.live))
    request = leave_out_ignored_fields(request, observation.live)
    inputs = PlanInputs(
        desired=request.desired,
        state=request.state,
        live=observation.live,
        connections=connections,
        options=scope.options,
        pending=observation.pending,
        by_hand=scope.by_hand,
        has_preflight=scope.preflight,
        is_complete=scope.complete,
        shows_impact=scope.impact,
    )
    hooks = start_plan(inputs)
    context = prepare_context(hooks)
    compared = compare_resources(request, observation.live, context, hooks)
    return ComparedRequest(request, selections, inputs, hooks, context, compared)


def _validate_system(request: PlanRequest, connections: Connections, live: LiveState) -> None:
    """Refuse a state that belongs to a different system. Raises KdeclareError.

    Raises Fault if a system does not respond.
    """
    if request.state is None:
        return
    bound_id = request.state.cluster_id
    system_id = identify_system(live, bound_id)
    if bound_id not in (
        "",
        system_id,
    ):  # the state may be bound to a system outside the scope, which has not been read
        whole_request = replace(request, scope=PlanScope())
        system_id = identify_system(observe(connections, list_selections_to_observe(whole_request)), bound_id)
    validate_cluster_id(bound_id, system_id, request.cluster_name)


def validate_cluster_id(planned: str, live: str, cluster_name: str) -> None:
    """Refuse a plan or state of a different cluster. Raises KdeclareError.

    planned, live: the ids of the clusters; empty if no system has an id. A plan or state without an id is not
    bound to a cluster.
    """
    if not planned or not live or planned == live:
        return
    raise KdeclareError(
        error(
            "other-cluster",
            "Connected to a different cluster",
            f"The plan or state belongs to cluster {planned}, but {cluster_name} is cluster {live}.",
            hint="Check --bootstrap-server and --env. Use a separate environment for each cluster.",
        )
    )
