"""Select and format the observations about the changes in a plan, for all reports."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Change
from kdeclare.report.elements.terminal import Style
from kdeclare.report.elements.values import sanitize_for_terminal
from kdeclare.report.plan.risks import list_risks

_LABELS = {
    ObservationLevel.LOSS: "loss",
    ObservationLevel.EFFECT: "impact",
    ObservationLevel.UNKNOWN: "unknown",
    ObservationLevel.INFO: "impact",
}


def group_observations(plan: Plan) -> Mapping[str, Sequence[Observation]]:
    """Return the observations of a plan by resource, the most important first."""
    observations: dict[str, list[Observation]] = defaultdict(list)
    for item in plan.observations:
        observations[item.resource].append(item)
    return observations


def list_other_observations(plan: Plan) -> Sequence[Observation]:
    """Return the observations about resources that are not in the list of risks, most important first."""
    listed = {str(found.id) for found in list_risks(plan) if isinstance(found, Change)}
    others = (item for item in plan.observations if item.resource not in listed)
    return sorted(others, key=lambda item: item.level.rank)


def get_observation_label(observation: Observation) -> str:
    """Return the word that introduces an observation in reports."""
    return _LABELS[observation.level]


def render_observation_text(observation: Observation, style: Style) -> str:
    """Render an observation as one line of text."""
    paint = {ObservationLevel.LOSS: style.red, ObservationLevel.UNKNOWN: style.yellow}.get(
        observation.level, style.dim
    )
    label = f"{get_observation_label(observation)}:"
    return f"{paint(label)} {sanitize_for_terminal(observation.text)}"
