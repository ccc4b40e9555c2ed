"""The policies of a project, for as long as a command needs them."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import SYSTEM_POLICY
from kdeclare.core.plans.policy_gate import NO_POLICIES, Judge
from kdeclare.core.resources.kind import Desired
from kdeclare.core.suggest import did_you_mean
from kdeclare.manifests.load import load_rules
from kdeclare.manifests.project import Project
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured import ConfiguredPolicy

_KIND = PolicyKind()

RULES = {_KIND.name: _KIND}
"""The kinds of manifests that hold for a whole project, by name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InForce:
    """The policies that hold, and what should be known of them."""

    policies: tuple[ConfiguredPolicy, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def judge(self) -> Judge:
        """The policies as the engine asks them."""
        if not self.policies:
            return NO_POLICIES
        from kdeclare.policy.judge import PolicyJudge  # only who has policies waits for it

        return PolicyJudge(self.policies)


@contextmanager
def project_policies(project: Project, rules: Sequence[Desired]) -> Iterator[InForce]:
    """The policies of a project file and of manifests; whatever is wrong with them is a diagnostic."""
    if not (project.policies or rules):
        yield InForce()
        return
    from kdeclare.policy.loading.load import load_policies  # only who has policies waits for it

    policies, diagnostics = load_policies(project, rules, _KIND)
    try:
        yield InForce(policies, diagnostics)
    finally:
        for item in policies:
            _close(item)


@contextmanager
def policies_in_force(
    workspace: Workspace, rules: Sequence[Desired] | None = None, overrides: Mapping[str, str] | None = None
) -> Iterator[InForce]:
    """All of them, well.

    rules: the manifests among them, where they have been loaded already; the project's else.
    overrides: policies that are to be overridden, which must be among them. Raises KdeclareError.
    """
    if rules is None:
        rules, problems = load_rules(workspace.project, RULES, workspace.environ)
        _raise_errors(problems)
    with project_policies(workspace.project, rules) as found:
        _raise_errors(found.diagnostics)
        _raise_errors(_not_there(found.policies, overrides or {}))
        yield found


def _raise_errors(diagnostics: Sequence[Diagnostic]) -> None:
    if any(d.is_error for d in diagnostics):
        raise KdeclareError(*diagnostics)


def _not_there(policies: Sequence[ConfiguredPolicy], overrides: Mapping[str, str]) -> list[Diagnostic]:
    known = [item.name for item in policies]
    found = []
    for name in overrides:
        if name == SYSTEM_POLICY:
            detail = "The brokers' own policy decides for itself; kdeclare cannot override it."
            found.append(error("unknown-policy", "Not to be overridden", detail))
        elif name not in known:
            hint = did_you_mean(name, known) or f"The policies are {', '.join(known) or 'none'}."
            detail = f"--override-policy names '{name}', and the project has no such policy."
            found.append(error("unknown-policy", "No such policy", detail, hint=hint))
    return found


def _close(item: ConfiguredPolicy) -> None:
    try:
        item.policy.close()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  it has been asked all there was; what it does now changes nothing
        _log.warning("Policy '%s' could not be closed", item.name, exc_info=True)
