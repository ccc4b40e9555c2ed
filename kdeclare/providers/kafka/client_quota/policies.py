"""Ready-made policies for client quotas. A project file names the policies to use and configures them.

A policy evaluates only the limits that a change sets or removes. Existing limits that violate the policy can
stay.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, to_float
from kdeclare.core.policies.policy_request import PolicyViolation, ResourceRequest
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.providers.kafka.client_quota.entity import (
    LIMITS,
    QuotaEntity,
    format_limit,
    list_allowed_limits,
    parse_limit,
)
from kdeclare.providers.kafka.client_quota.kind import DEFAULT_NAME
from kdeclare.providers.kafka.policies.settings_policy import PolicySettings, S, SettingsPolicy


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """A change to the limits of one entity.

    limits: all limits after the change.
    changed: the keys of the limits that the change sets or removes.
    """

    entity: QuotaEntity
    limits: Mapping[str, JsonValue]
    changed: frozenset[str]


class LimitPolicy(SettingsPolicy[S]):
    """The base class of the policies for limits."""

    @abstractmethod
    def find_violations(self, change: QuotaChange) -> Iterable[str]:
        """Return the reasons why a change is not permitted, as sentences.

        Return nothing if the change is permitted.
        """

    def validate(self, request: ResourceRequest) -> None:
        """See `ResourcePolicy`."""
        if request.post_request_state is None:
            return
        after = _read_limits(request.post_request_state)
        before = _read_limits(request.pre_request_state)
        changed = {key for key in {*after, *before} if after.get(key) != before.get(key)}
        changed |= {key.removeprefix("limits.") for key in request.changed if key.startswith("limits.")}
        entity = _read_entity(request.post_request_state)
        texts = list(self.find_violations(QuotaChange(entity, after, frozenset(changed))))
        if texts:
            raise PolicyViolation(" ".join(texts))


def _check_keys(keys: Iterable[str]) -> None:
    """Raise ValueError for a key that is not a quota key."""
    for key in keys:
        if key not in LIMITS:
            hint = format_suggestion(key, list(LIMITS)) or f"Use {format_alternatives(list(LIMITS))}."
            raise ValueError(f"'{key}' is not a quota key. {hint}")


class Bounds(PolicySettings):
    """The minimum and the maximum of one limit, as numbers or as amounts such as ``10MiB``."""

    minimum: Annotated[int | float | str | None, Field(description="The lowest permitted limit.")] = None
    maximum: Annotated[int | float | str | None, Field(description="The highest permitted limit.")] = None


def _parse_bounds(raw: object) -> object:
    """Replace amounts such as ``10MiB`` with numbers. Raises ValueError."""
    if not isinstance(raw, Mapping):
        return raw
    _check_keys(map(str, raw))
    return {key: _parse_bound(str(key), item) for key, item in raw.items()}


def _parse_bound(key: str, raw: object) -> object:
    if not isinstance(raw, Mapping):
        return raw
    values: dict[str, object] = {}
    for name, value in raw.items():
        is_amount = isinstance(value, int | float | str) and not isinstance(value, bool)
        try:
            values[name] = parse_limit(key, value) if is_amount else value
        except ValueError as reason:
            raise ValueError(f"'{name}' of '{key}' {reason}") from reason
    return values


class LimitBoundsSettings(PolicySettings):
    """The settings of `LimitBounds`."""

    limits: Annotated[
        dict[str, Bounds],
        BeforeValidator(_parse_bounds),
        Field(description="The bounds by quota key.", min_length=1),
    ]

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """Raise ValueError for bounds that no limit satisfies."""
        for key, bounds in self.limits.items():
            low, high = bounds.minimum, bounds.maximum
            if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
                raise ValueError(f"the minimum of '{key}' is higher than the maximum")
        return self


class LimitBounds(LimitPolicy[LimitBoundsSettings]):
    """Limits must be within bounds. The policy permits entities without a limit; see `RequiredLimits`."""

    settings_model = LimitBoundsSettings

    def find_violations(self, change: QuotaChange) -> Iterable[str]:
        """See `LimitPolicy`."""
        for key, bounds in self.settings.limits.items():
            value = change.limits.get(key)
            if value is None or key not in change.changed:
                continue
            number = _parse_number(value)
            if isinstance(bounds.minimum, int | float) and not number >= bounds.minimum:
                yield _format_violation(change.entity, key, value, "at least", bounds.minimum)
            if isinstance(bounds.maximum, int | float) and not number <= bounds.maximum:
                yield _format_violation(change.entity, key, value, "at most", bounds.maximum)


def _parse_number(value: JsonValue) -> float:
    """Convert a limit to a number. Anything else becomes NaN, which no bound permits."""
    if isinstance(value, str):
        return float(value)
    return to_float(value) if isinstance(value, int | float) else math.nan


def _format_violation(
    entity: QuotaEntity, key: str, value: JsonValue, comparison: str, bound: int | float
) -> str:
    return (
        f"'{key}' of {entity} would be {format_limit(key, value)}, but {comparison} "
        f"{format_limit(key, bound)} is permitted."
    )


class RequiredLimitsSettings(PolicySettings):
    """The settings of `RequiredLimits`."""

    keys: Annotated[
        list[str], Field(description="The quota keys that an entity must have a limit for.", min_length=1)
    ]

    @model_validator(mode="after")
    def check_keys(self) -> Self:
        """Raise ValueError for unknown quota keys."""
        _check_keys(self.keys)
        return self


class RequiredLimits(LimitPolicy[RequiredLimitsSettings]):
    """An entity with limits must have a limit for each configured key that its type supports.

    Without a limit, the clients of the entity are not throttled, unless a less specific entity has a limit.
    Removing all limits is permitted, because the limits of a less specific entity, if any, then apply.
    """

    settings_model = RequiredLimitsSettings

    def find_violations(self, change: QuotaChange) -> Iterable[str]:
        """See `LimitPolicy`."""
        allowed = list_allowed_limits(is_for_ips=change.entity.is_ip)
        missing = [key for key in self.settings.keys if key in allowed and change.limits.get(key) is None]
        if missing and change.changed and change.limits:
            names = " and ".join(f"'{key}'" for key in missing)
            yield f"{_capitalize(str(change.entity))} would have no limit for {names}."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _read_limits(state: Mapping[str, object] | None) -> Mapping[str, JsonValue]:
    limits = state["limits"] if state is not None else {}
    assert isinstance(limits, Mapping)
    return limits


def _read_entity(state: Mapping[str, object]) -> QuotaEntity:
    names = state["entity"]
    assert isinstance(names, Mapping)
    return QuotaEntity.from_json({f: None if name == DEFAULT_NAME else name for f, name in names.items()})
