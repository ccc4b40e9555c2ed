"""Observe the effects of a run, and store them with the run, next to the predictions of its plan."""

from contextlib import suppress
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from kdeclare.core.clock import parse_time
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.plans.observation import ObservationLevel
from kdeclare.core.plans.observed_effect import EffectRequest, EffectStatus, ObservedEffect, OperationTime
from kdeclare.core.plans.run import ApplyResult, Status
from kdeclare.core.provider.provider_queries import observe_effects
from kdeclare.engine.executor.entries import RunRecord, read_run
from kdeclare.engine.state.port import StateStore

MAX_EFFECTS = 200
"""The maximum number of effects that are stored for a run. The least important ones are dropped."""


class StoredEffects(BaseModel):
    """The stored effects of a run. kdeclare only displays them."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)
    version: Literal[1] = 1
    effects: list[ObservedEffect]


def observe_run_effects(
    store: StateStore, connections: Connections, result: ApplyResult
) -> tuple[ObservedEffect, ...]:
    """Observe the effects that the plan of a finished run predicted, and store them.

    The result is empty if the plan predicted nothing, or if the run was interrupted. The run does not fail if
    an effect cannot be observed or stored.
    """
    if result.run_id is None or result.interrupted or not result.plan.observations:
        return ()
    effects: list[ObservedEffect] = []
    try:
        request = _build_request(connections, result, read_run(store, result.run_id))
        if request.predictions:
            effects += observe_effects(request)
    except (Fault, KdeclareError) as problem:
        text = f"kdeclare could not observe every effect of the changes: {problem}."
        effects.append(ObservedEffect("", None, "not-observed", EffectStatus.UNKNOWN, "", text))
    if not effects:
        return ()
    ordered = sorted(effects, key=lambda effect: (effect.status.rank, effect.resource))
    kept = ordered[:MAX_EFFECTS]
    with suppress(KdeclareError):  # the run itself is recorded
        store.write_effects(result.run_id, StoredEffects(effects=kept).model_dump(mode="json"))
    return tuple(kept)


def _build_request(connections: Connections, result: ApplyResult, record: RunRecord) -> EffectRequest:
    done: set[str] = set()
    other: set[str] = set()
    for op in result.plan.operations:
        outcome = result.results.get(op.id)
        is_done = outcome is not None and outcome.status is Status.DONE and outcome.error is None
        (done if is_done else other).add(str(op.resource))
    complete = done - other
    return EffectRequest(
        connections,
        [
            prediction
            for prediction in result.plan.observations
            if prediction.level is not ObservationLevel.UNKNOWN and prediction.resource in complete
        ],
        [op for op in result.plan.operations if str(op.resource) in complete],
        {
            id_: OperationTime(parse_time(record.sent_at[id_]), parse_time(ended_at))
            for id_, ended_at in record.ended_at.items()
            if id_ in record.sent_at
        },
    )


def read_effects(store: StateStore, run_id: str) -> tuple[ObservedEffect, ...]:
    """Return the stored effects of a run; none if they are damaged. Raises KdeclareError."""
    with suppress(ValidationError):
        document = store.read_effects(run_id)
        return tuple(StoredEffects.model_validate(document).effects) if document is not None else ()
    return ()
