"""``spec.rollout`` of fleet files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.provider.provider_queries import find_health_checks
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.core.units import Duration
from kdeclare.manifests.document_models import TextMap
from kdeclare.manifests.fleet.cluster_selection import find_unknown_label
from kdeclare.manifests.fleet.rollout import Rollout, RolloutHealth
from kdeclare.manifests.syntax.nodes import find_position


class RolloutHealthSpec(BaseModel):
    """``spec.rollout.health``: what must be healthy before each wave."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    checks: dict[str, Annotated[int, Field(ge=0)]] = {}
    command: Annotated[list[str], Field(min_length=1)] | None = None
    timeout: Duration = 300.0


class RolloutSpec(BaseModel):
    """``spec.rollout``: the order in which the clusters are changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    canary: TextMap = {}
    batchSize: Annotated[int, Field(ge=1)] | None = None  # noqa: N815
    maxFailures: Annotated[int, Field(ge=0)] = 0  # noqa: N815
    health: RolloutHealthSpec = RolloutHealthSpec()


def check_rollout(spec: RolloutSpec, labels: Sequence[Mapping[str, str]], root: Node) -> Iterator[Diagnostic]:
    """Yield the problems in ``spec.rollout`` that the Pydantic model does not detect.

    labels: the labels of all clusters.
    """
    yield from _check_health(spec.health, root)
    label_error = find_unknown_label(spec.canary, labels)
    if label_error is not None:
        path = ("spec", "rollout", "canary", *([label_error.subject] if label_error.subject else []))
        yield replace(label_error, place=find_position(root, path, key=label_error.subject is not None))


def _check_health(spec: RolloutHealthSpec, root: Node) -> Iterator[Diagnostic]:
    known = find_health_checks()
    for name in spec.checks:
        if name not in known:
            yield error(
                "unknown-health-check",
                "Unknown health check",
                f"There is no health check '{name}'.",
                hint=format_suggestion(name, known) or f"Use {format_alternatives(sorted(known))}.",
                place=find_position(root, ("spec", "rollout", "health", "checks", name), key=True),
                subject=name,
            )


def build_rollout(spec: RolloutSpec) -> Rollout:
    """Build the rollout that a fleet file describes."""
    health = RolloutHealth(spec.health.checks, tuple(spec.health.command or ()), spec.health.timeout)
    return Rollout(spec.canary, spec.batchSize, spec.maxFailures, health)
