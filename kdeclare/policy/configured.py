"""A policy with what it is called, how much it weighs, and which requests it is asked about."""

from dataclasses import dataclass

from kdeclare.model.diagnostics import Place
from kdeclare.model.plan import VerdictOutcome
from kdeclare.policy.interface import Action, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.selector import EVERYTHING, Selector

EVERY_ACTION = frozenset(Action)


@dataclass(frozen=True, slots=True)
class ConfiguredPolicy:
    """One policy of a project, ready to be asked.

    outcome: what its violations come to, deny or warn.
    bounded: whether it ends by itself, as an expression does; other people's code is given a time limit.
    """

    name: str
    policy: TopicActionsPolicy
    outcome: VerdictOutcome = VerdictOutcome.DENY
    actions: frozenset[Action] = EVERY_ACTION
    selector: Selector = EVERYTHING
    place: Place | None = None
    bounded: bool = False

    def covers(self, request: RequestMetadata) -> bool:
        """Whether it is to be asked about a request; looks at no more than it must."""
        if self.selector is not EVERYTHING and not self.selector.covers(request):
            return False
        return self.actions == EVERY_ACTION or request.action in self.actions
