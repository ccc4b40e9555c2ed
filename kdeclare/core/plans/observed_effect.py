"""The observed effects of a run, together with the predictions of its plan."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.plans.observation import Observation


class EffectStatus(StrEnum):
    """The result of comparing an effect with its prediction, from most to least important."""

    UNEXPECTED = "unexpected"
    """The effect differs from the prediction in a way that users should know."""
    UNKNOWN = "unknown"
    """The effect could not be observed, for example because a permission is missing."""
    PENDING = "pending"
    """The system has not completed the effect yet."""
    OBSERVED = "observed"
    """The effect was observed."""

    @property
    def rank(self) -> int:
        """The position in the order of importance, from 0."""
        return tuple(EffectStatus).index(self)


@dataclass(frozen=True, slots=True)
class ObservedEffect:
    """One effect of a run, observed directly after the operations, with the plan's prediction of the effect.

    figures: the numbers in ``observed``, by name, for scripts.
    """

    schema_name = "EffectDocument"

    resource: Annotated[str, Field(description="The id of the changed resource.")]
    path: Annotated[
        str | None,
        Field(description="The path of the changed field, or null if the whole resource is meant."),
    ]
    code: Annotated[str, Field(description="The type of the effect, as in the observations of the plan.")]
    status: EffectStatus
    predicted: Annotated[str, Field(description="The predictions of the plan, as sentences.")]
    observed: Annotated[str, Field(description="The observations after the run, as sentences.")]
    figures: Annotated[
        Mapping[str, JsonValue],
        Field(description="The observed numbers, by name."),
    ] = field(default_factory=dict)


def compare_observation(
    prediction: Observation,
    status: EffectStatus,
    observed: str,
    figures: Mapping[str, JsonValue] | None = None,
) -> ObservedEffect:
    """Return an observed effect for a prediction, with the prediction's resource, path, code and text."""
    return ObservedEffect(
        prediction.resource,
        prediction.path,
        prediction.code,
        status,
        prediction.text,
        observed,
        figures or {},
    )


@dataclass(frozen=True, slots=True)
class OperationTime:
    """The times at which a run sent the request of an operation, and at which the operation ended."""

    sent: datetime
    ended: datetime


@dataclass(frozen=True, slots=True)
class EffectRequest:
    """The inputs of `Provider.observe_effects`.

    predictions: the plan's observations about resources whose operations all succeeded.
    operations: the successful operations of the run. times: when they ran, by operation id.
    """

    connections: Connections
    predictions: Sequence[Observation]
    operations: Sequence[Operation]
    times: Mapping[str, OperationTime] = field(default_factory=dict)
