"""Holding topics to the rule that they were created by (KIP-201, example 1)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.policy.configured_policy import Policy
from kdeclare.policy.deprecated import CreateTopicPolicy
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy, TopicState
from kdeclare.policy.loading.policy_classes import adapt_policy, configure_policy, make_policy
from kdeclare.policy.rules.base import Rule, Settings

_ASSIGNMENTS = "assignments"


class CreationRuleForLifeSettings(Settings):
    """class: the policy about creations, as ``module:Class``. config: its own settings."""

    class_name: str = Field(alias="class")
    config: dict[str, Any] = {}  # noqa: RUF012  frozen


@dataclass(frozen=True, slots=True)
class CreationView:
    """A request as if the topic were created in one of its states.

    assigned: whether its replicas are shown as what the request states, and not their number.
    """

    request: RequestMetadata
    post_request_state: TopicState
    assigned: bool

    @property
    def action(self) -> Action:
        """CREATE."""
        return Action.CREATE

    @property
    def topic(self) -> str:
        """As in the request."""
        return self.request.topic

    @property
    def principal(self) -> str | None:
        """As in the request."""
        return self.request.principal

    @property
    def pre_request_state(self) -> None:
        """None, as nothing is there before a creation."""
        return

    @property
    def labels(self) -> Mapping[str, str]:
        """As in the request."""
        return self.request.labels

    @property
    def labels_before(self) -> Mapping[str, str]:
        """None, as nothing is there before a creation."""
        return {}

    @property
    def changed(self) -> frozenset[str]:
        """All that the topic has."""
        counts = ("partitions", "replicationFactor")
        configs = (f"configs.{key}" for key in self.post_request_state.configs)
        return frozenset((_ASSIGNMENTS,) if self.assigned else counts).union(configs)

    @property
    def racks(self) -> Mapping[int, str | None]:
        """As in the request."""
        return self.request.racks

    @property
    def record_count(self) -> int:
        """0 on CREATE."""
        return 0

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """As in the request."""
        return self.request.partitions_of(labels)


class CreationRuleForLife(Rule[CreationRuleForLifeSettings]):
    """A topic is never modified out of the rule that holds for its creation (KIP-201, example 1).

    The other policy, a TopicActionsPolicy or CreateTopicPolicy, is asked about creations, and about what
    modifications make of a topic as if it were created so. A modification is denied where the topic would
    not be allowed as it is afterwards, unless that is said of it as it was before, in the same words. Where
    replicas are moved, the topic is shown with counts and once more with assignments, as a
    CreateTopicPolicy sees either.
    """

    settings_model = CreationRuleForLifeSettings
    _policy: Policy

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Make the other policy and configure it. Raises ValidationError or Unusable."""
        super().configure(configs)
        name = self.settings.class_name
        policy = make_policy(name, (TopicActionsPolicy, CreateTopicPolicy))
        configure_policy(policy, name, self.settings.config)
        self._policy = adapt_policy(policy)

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        pre, post = request.pre_request_state, request.post_request_state
        if request.action is Action.CREATE:
            self._policy.validate(request)
        if pre is None or post is None:
            return
        for creation in _build_creations(request, post):
            violation = self._find_violation(creation)
            if violation is None:
                continue
            earlier_violation = self._find_violation(replace(creation, post_request_state=pre))
            if earlier_violation is None or str(earlier_violation) != str(violation):
                raise violation

    def close(self) -> None:
        """Close the other policy."""
        self._policy.close()

    def _find_violation(self, request: RequestMetadata) -> PolicyViolation | None:
        try:
            self._policy.validate(request)
        except PolicyViolation as violation:
            return violation
        return None


def _build_creations(request: RequestMetadata, state: TopicState) -> Iterator[CreationView]:
    yield CreationView(request, state, assigned=False)
    if _ASSIGNMENTS in request.changed:
        yield CreationView(request, state, assigned=True)
