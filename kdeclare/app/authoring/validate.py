"""Validate manifests without a cluster."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kdeclare.app.plan import CHECKS, has_mistakes
from kdeclare.app.policies import RULES, open_project_policies
from kdeclare.core.diagnostics import Diagnostic, denied, sort_diagnostics, warning
from kdeclare.core.plans.plan import Verdict
from kdeclare.core.provider.provider_queries import find_contradictions
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.plan_capabilities import find_static_diagnostics
from kdeclare.engine.planning.operation_graph import check_exclusive_settings
from kdeclare.engine.planning.prune_denied import POLICY_VIOLATION
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import open_project
from kdeclare.manifests.variables import GivenVariables
from kdeclare.policy.resource_checks import StaticVerdicts, find_static_verdicts
from kdeclare.report.run.views import ValidationView

WOULD_DENY = "policy-if-created"
"""The code of warnings about resources whose creation would violate a policy.

If the resource already exists, the policy may allow it.
"""


def validate(
    project_file: Path | None = None,
    env: str | None = None,
    paths: Sequence[Path] = (),
    environ: Mapping[str, str] = os.environ,
    stream: bytes | None = None,
    variables: GivenVariables | None = None,
) -> ValidationView:
    """Run all checks that do not need a cluster. Errors in manifests are in the result, with their positions.

    project_file: None means ``kdeclare.yaml`` in the working folder. env: None means the default environment
    of the project.
    paths: files or folders with manifests; if empty, all manifests of the project.
    stream: the content of standard input, which is validated like a file of ``paths``.
    variables: values of variables that take precedence over those in the project file.
    Raises KdeclareError for an invalid project file or an unknown environment.
    """
    project = open_project(project_file, env, environ, offline=True, variables=variables)
    manifests = load_project_manifests(project, paths, KINDS, environ, CHECKS, RULES, stream=stream)
    with open_project_policies(project, manifests.rules) as active_policies:
        diagnostics = [*manifests.diagnostics, *active_policies.diagnostics, *_check_statically(manifests)]
        if not any(d.is_error for d in active_policies.diagnostics):
            diagnostics += _report_violations(
                find_static_verdicts(active_policies.policies, manifests.desired), manifests.desired
            )
    resource_count = len(manifests.desired) + len(manifests.absent) + len(manifests.rules)
    return ValidationView(manifests.files, resource_count, sort_diagnostics(diagnostics))


def _check_statically(manifests: LoadedManifests) -> Iterator[Diagnostic]:
    """Yield the problems that a plan would report for every cluster; none if the manifests have errors."""
    if has_mistakes(manifests):
        return
    for resource in manifests.desired:
        yield from find_static_diagnostics(resource)
    yield from check_exclusive_settings(manifests.desired)
    yield from find_contradictions(manifests.desired)


def _report_violations(foreseen: StaticVerdicts, desired: Sequence[DesiredResource]) -> Iterator[Diagnostic]:
    positions = {str(item.id): item.source for item in desired}
    for verdict in foreseen.certain:
        build_diagnostic = denied if verdict.is_denial else warning
        yield build_diagnostic(
            POLICY_VIOLATION,
            "Policy violation" if verdict.is_denial else "Policy warning",
            f"{_end_sentence(_format_verdict(verdict))} If an existing resource already violates the policy, "
            "the policy applies only when the resource is changed.",
            hint="Change the manifest to comply with the policy.",
            place=positions[verdict.resource],
            resource=verdict.resource,
            subject=verdict.policy,
        )
    for verdict in foreseen.created:
        yield warning(
            WOULD_DENY,
            "Policy violation if the resource is created"
            if verdict.is_denial
            else "Policy warning if the resource is created",
            _format_verdict(verdict),
            hint="Run kdeclare plan to see the verdict for a resource that already exists.",
            place=positions[verdict.resource],
            resource=verdict.resource,
            subject=verdict.policy,
        )


def _end_sentence(text: str) -> str:
    """Add a period to the message of a policy if the author of the policy left it out."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _format_verdict(verdict: Verdict) -> str:
    return f"{verdict.resource}, policy '{verdict.policy}': {verdict.message}"
