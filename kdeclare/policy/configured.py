"""A policy with what it is called, how much it weighs, and which requests it is asked about."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kdeclare.core.diagnostics import Place
from kdeclare.core.plan import VerdictOutcome
from kdeclare.policy.interface import Action, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.selector import EVERYTHING, Selector

EVERY_ACTION = frozenset(Action)


class Group(Protocol):
    """Policies that can be asked in one go."""

    def passes(self, policies: Sequence[Any], request: RequestMetadata) -> bool:
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
    policy: TopicActionsPolicy
    outcome: VerdictOutcome = VerdictOutcome.DENY
    actions: frozenset[Action] = EVERY_ACTION
    selector: Selector = EVERYTHING
    place: Place | None = None
    bounded: bool = False
    group: Group | None = None

    def covers(self, request: RequestMetadata) -> bool:
        """Whether it is to be asked about a request; looks at no more than it must."""
        if self.selector is not EVERYTHING and not self.selector.covers(request):
            return False
        return self.actions == EVERY_ACTION or request.action in self.actions
