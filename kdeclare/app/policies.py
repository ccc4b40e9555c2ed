"""Load the policies of a project and close them when a command has finished."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import SYSTEM_POLICY
from kdeclare.core.plans.policy_gate import NO_POLICIES, PolicyGate
from kdeclare.core.provider.provider_queries import find_guards
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.load_manifests import load_rules
from kdeclare.manifests.project import Project
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy

_KIND = PolicyKind()

RULES = {_KIND.name: _KIND}
"""The kinds of manifests that declare policies and not resources, by name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ActivePolicies:
    """The active policies, and diagnostics about them."""

    policies: tuple[ConfiguredPolicy, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def judge(self) -> PolicyGate:
        """The policies in the form that the engine evaluates."""
        if not self.policies:
            return NO_POLICIES
        from kdeclare.policy.evaluation import ProjectPolicyGate  # slow; needed only with policies

        return ProjectPolicyGate(self.policies)


@contextmanager
def open_project_policies(project: Project, rules: Sequence[DesiredResource]) -> Iterator[ActivePolicies]:
    """Yield the policies of a project file and of manifests. Errors in the policies become diagnostics."""
    if not (project.policies or rules):
        yield ActivePolicies()
        return
    from kdeclare.policy.loading.load_policies import load_policies  # slow; needed only with policies

    policies, diagnostics = load_policies(project, rules, _KIND)
    try:
        yield ActivePolicies(policies, diagnostics)
    finally:
        for policy in policies:
            _close_policy(policy)


@contextmanager
def open_active_policies(
    workspace: Workspace,
    rules: Sequence[DesiredResource] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Iterator[ActivePolicies]:
    """Yield all policies of the project. Raises KdeclareError if any of them has errors.

    rules: the loaded policy manifests; None loads the policy manifests of the project.
    overrides: the policies to override, by name, each with the reason. An unknown name raises KdeclareError.
    """
    if rules is None:
        rules, rule_problems = load_rules(workspace.project, RULES, workspace.environ)
        _raise_errors(rule_problems)
    with open_project_policies(workspace.project, rules) as active_policies:
        _raise_errors(active_policies.diagnostics)
        _raise_errors(_check_overrides(active_policies.policies, overrides or {}))
        yield active_policies


def _raise_errors(diagnostics: Sequence[Diagnostic]) -> None:
    if any(d.is_error for d in diagnostics):
        raise KdeclareError(*diagnostics)


def _check_overrides(policies: Sequence[ConfiguredPolicy], overrides: Mapping[str, str]) -> list[Diagnostic]:
    policy_names = [item.name for item in policies]
    guards = find_guards()
    diagnostics = []
    for name in overrides:
        if name == SYSTEM_POLICY:
            detail = f"The brokers enforce the policy '{name}', so kdeclare cannot override it."
            hint = f"Remove --override-policy {name}, or change the policy on the brokers."
            diagnostics.append(error("unknown-policy", "Policy cannot be overridden", detail, hint=hint))
        elif name in guards:
            detail = f"'{name}' is a guard of kdeclare itself, so --override-policy cannot override it."
            diagnostics.append(error("unknown-policy", "Policy cannot be overridden", detail, guards[name]))
        elif name not in policy_names:
            hint = format_suggestion(name, policy_names) or (
                f"Use one of {', '.join(policy_names)}." if policy_names else "Remove --override-policy."
            )
            detail = f"--override-policy names '{name}', but the project has no such policy."
            diagnostics.append(error("unknown-policy", "No such policy", detail, hint=hint))
    return diagnostics


def _close_policy(configured_policy: ConfiguredPolicy) -> None:
    try:
        configured_policy.policy.close()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  all verdicts are in, so an error here changes nothing
        _log.warning("Policy '%s' could not be closed", configured_policy.name, exc_info=True)
