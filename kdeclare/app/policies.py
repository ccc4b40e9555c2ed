"""The policies of a project, for as long as a command needs them."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import SYSTEM_POLICY
from kdeclare.core.plans.policy_gate import NO_POLICIES, PolicyGate
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.load_manifests import load_rules
from kdeclare.manifests.project import Project
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy

_KIND = PolicyKind()

RULES = {_KIND.name: _KIND}
"""The kinds of manifests that hold for a whole project, by name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ActivePolicies:
    """The policies that hold, and what should be known of them."""

    policies: tuple[ConfiguredPolicy, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def judge(self) -> PolicyGate:
        """The policies as the engine asks them."""
        if not self.policies:
            return NO_POLICIES
        from kdeclare.policy.evaluation import ProjectPolicyGate  # only who has policies waits for it

        return ProjectPolicyGate(self.policies)


@contextmanager
def open_project_policies(project: Project, rules: Sequence[DesiredResource]) -> Iterator[ActivePolicies]:
    """The policies of a project file and of manifests; whatever is wrong with them is a diagnostic."""
    if not (project.policies or rules):
        yield ActivePolicies()
        return
    from kdeclare.policy.loading.load_policies import load_policies  # only who has policies waits for it

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
    """All of them, well.

    rules: the manifests among them, where they have been loaded already; the project's else.
    overrides: policies that are to be overridden, which must be among them. Raises KdeclareError.
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
    diagnostics = []
    for name in overrides:
        if name == SYSTEM_POLICY:
            detail = "The brokers' own policy decides for itself; kdeclare cannot override it."
            diagnostics.append(error("unknown-policy", "Not to be overridden", detail))
        elif name not in policy_names:
            hint = (
                format_suggestion(name, policy_names)
                or f"The policies are {', '.join(policy_names) or 'none'}."
            )
            detail = f"--override-policy names '{name}', and the project has no such policy."
            diagnostics.append(error("unknown-policy", "No such policy", detail, hint=hint))
    return diagnostics


def _close_policy(configured_policy: ConfiguredPolicy) -> None:
    try:
        configured_policy.policy.close()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  it has been asked all there was; what it does now changes nothing
        _log.warning("Policy '%s' could not be closed", configured_policy.name, exc_info=True)
