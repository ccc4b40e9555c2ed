"""Read the impact of a plan's changes on records and clients."""

from collections.abc import Sequence
from dataclasses import replace

from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs
from kdeclare.core.plans.state import State
from kdeclare.core.provider.provider_queries import start_plan
from kdeclare.core.resources.changes import Action, Risk
from kdeclare.engine.observation import observe, select_all


def observe_impact(plan: Plan, hooks: Sequence[PlanHooks]) -> tuple[Observation, ...]:
    """Return the impact of a plan's changes on records and clients, sorted by resource and importance."""
    changes = [change for change in plan.changes if not change.blocked and change.action is not Action.NO_OP]
    observations: list[Observation] = []
    for hook in hooks:
        try:
            observations += hook.observe_impact(plan.operations, changes)
        except Fault as fault:  # the plan itself is complete
            text = f"kdeclare could not determine the full impact of the changes: {fault}."
            observations.append(Observation("", "not-determined", ObservationLevel.UNKNOWN, text))
    return tuple(sorted(observations, key=lambda item: (item.resource, item.level.rank)))


def add_current_impact(
    plan: Plan, connections: Connections, state: State | None, live: LiveState | None = None
) -> Plan:
    """Return an earlier plan, such as a saved plan, with its current impact.

    live: the live state, if it was just read to build the plan. Nothing is read if all changes are safe.

    Raises Fault if the live state cannot be read.
    """
    if all(change.risks == (Risk.SAFE,) for change in plan.changes):
        return replace(plan, observations=())
    if live is None:
        live = observe(connections, select_all(plan.operations))
    inputs = PlanInputs((), state, live, connections, PlanOptions(), shows_impact=True)
    return replace(plan, observations=observe_impact(plan, start_plan(inputs)))
