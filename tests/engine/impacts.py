"""Helpers for tests of the impact of plans: observe it, and look for sentences and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from tests.engine.world import World


def observe(
    world: World, *declared: DesiredResource, scope: PlanScope | None = None
) -> tuple[Observation, ...]:
    """Return the observations of a plan for the declared resources. Other resources stay."""
    return world.plan(*declared, scope=scope or PlanScope(impact=True, complete=False)).observations


def list_texts(observations: Sequence[Observation], code: str) -> list[str]:
    """Return the observations with a code as lines of text."""
    return [f"{item.resource}: {item.level.value}: {item.text}" for item in observations if item.code == code]


def find_figures(observations: Sequence[Observation], code: str) -> Mapping[str, Any]:
    """Return the figures of the only observation with a code."""
    (figures,) = [item.figures for item in observations if item.code == code]
    return figures
