"""A policy with what it is called, how much it weighs, and which requests it is asked about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kdeclare.core.diagnostics import Place
from kdeclare.core.plan import VerdictOutcome
from kdeclare.core.policy_subjects import PolicyAction, PolicyRequest, list_policy_kinds
from kdeclare.policy.selector import EVERYTHING, Selector

EVERY_ACTION = frozenset(PolicyAction)


class Policy(Protocol):
    """What can be asked: a class of other people's, or a rule."""

    def validate(self, request: Any) -> None:
        """Return if the request is in order. Raises PolicyViolation if it is not."""

    def close(self) -> None:
        """Let go of what ``validate`` took."""


class Group(Protocol):
    """Policies that can be asked in one go."""

    def passes(self, policies: Sequence[Any], request: PolicyRequest) -> bool:
        """Whether none of these, which are of this group, has anything against a request.

        False means that they have to be asked one by one.
        """


@dataclass(frozen=True, slots=True)
class ConfiguredPolicy:
    """One policy of a project, ready to be asked.

    outcome: what its violations come to, deny or warn.
    bounded: whether it ends by itself, as an expression does; other people's code is given a time limit.
    group: those that it can be asked together with.
    """

    name: str
    policy: Policy
    outcome: VerdictOutcome = VerdictOutcome.DENY
    actions: frozenset[PolicyAction] = EVERY_ACTION
    selector: Selector = EVERYTHING
    place: Place | None = None
    bounded: bool = False
    group: Group | None = None

    @property
    def kind(self) -> str:
        """The kind that it judges."""
        return self.selector.kind

    def covers(self, request: PolicyRequest) -> bool:
        """Whether it is to be asked about a request about its kind; looks at no more than it must."""
        if self.selector is not EVERYTHING and not self.selector.covers(request):
            return False
        return self.actions == EVERY_ACTION or request.action in self.actions


def by_kind(policies: Iterable[ConfiguredPolicy]) -> dict[str, list[ConfiguredPolicy]]:
    """Return policies by the kind that they judge, in the order in which kinds are listed."""
    found: dict[str, list[ConfiguredPolicy]] = {}
    for item in policies:
        found.setdefault(item.kind, []).append(item)
    return {kind: found[kind] for kind in list_policy_kinds() if kind in found}
