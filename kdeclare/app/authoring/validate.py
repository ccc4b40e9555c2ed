"""Reading manifests without any cluster, to say what is wrong with them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kdeclare.app.plan import CHECKS, has_mistakes
from kdeclare.app.policies import RULES, project_policies
from kdeclare.core.diagnostics import Diagnostic, denied, in_order, warning
from kdeclare.core.plans.plan import Verdict
from kdeclare.core.provider.registry import KINDS, find_contradictions
from kdeclare.core.resources.capabilities import find_static_diagnostics
from kdeclare.core.resources.kind import Desired
from kdeclare.engine.planning.operation_graph import contradictions
from kdeclare.engine.planning.prune_denied import POLICY_VIOLATION
from kdeclare.manifests.load import Loaded, load
from kdeclare.manifests.project import open_project
from kdeclare.policy.checking import Foreseen, foresee
from kdeclare.report.run.views import ValidationView

WOULD_DENY = "policy-if-created"
"""What policies have against a topic that may be there already, and is then judged in another way."""


def validate(
    project_file: Path | None = None,
    env: str | None = None,
    paths: Sequence[Path] = (),
    environ: Mapping[str, str] = os.environ,
) -> ValidationView:
    """All that can be said offline; mistakes in manifests are in the result, which has their places.

    project_file, env: None is ``kdeclare.yaml`` here, and its default environment. paths: files or folders;
    all of the project's manifests where none is given.
    Raises KdeclareError for a project file that cannot be used, or has no such environment.
    """
    project = open_project(project_file, env, environ, offline=True)
    loaded = load(project, paths, KINDS, environ, CHECKS, RULES)
    with project_policies(project, loaded.rules) as found:
        diagnostics = [*loaded.diagnostics, *found.diagnostics, *_said_by_every_plan(loaded)]
        if not any(d.is_error for d in found.diagnostics):
            diagnostics += _foreseen(foresee(found.policies, loaded.desired), loaded.desired)
    resources = len(loaded.desired) + len(loaded.rules)
    return ValidationView(loaded.files, resources, in_order(diagnostics))


def _said_by_every_plan(loaded: Loaded) -> Iterator[Diagnostic]:
    """What plan and apply say of these whatever the cluster has, where there can be a plan."""
    if has_mistakes(loaded):
        return
    for item in loaded.desired:
        yield from find_static_diagnostics(item)
    yield from contradictions(loaded.desired)
    yield from find_contradictions(loaded.desired)


def _foreseen(found: Foreseen, desired: Sequence[Desired]) -> Iterator[Diagnostic]:
    places = {str(item.id): item.source for item in desired}
    for verdict in found.certain:
        say = denied if verdict.denies else warning
        yield say(
            POLICY_VIOLATION,
            "A policy denies this" if verdict.denies else "A policy warns of this",
            _told(verdict),
            hint="Nothing happens to a resource that already violates the policy until it changes.",
            place=places[verdict.resource],
            resource=verdict.resource,
            subject=verdict.policy,
        )
    for verdict in found.created:
        yield warning(
            WOULD_DENY,
            "A policy denies the creation of this" if verdict.denies else "A policy warns of creating this",
            _told(verdict),
            hint="Run kdeclare plan to see what applies if the resource already exists.",
            place=places[verdict.resource],
            resource=verdict.resource,
            subject=verdict.policy,
        )


def _told(verdict: Verdict) -> str:
    return f"{verdict.resource}, policy '{verdict.policy}': {verdict.message}"
