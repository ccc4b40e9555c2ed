"""Enforce a rule for new topics during the whole life of each topic (KIP-201, example 1)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.policy.configured_policy import Policy
from kdeclare.policy.deprecated import CreateTopicPolicy
from kdeclare.policy.interface import (
    Action,
    KnownImpact,
    PolicyViolation,
    RequestMetadata,
    TopicActionsPolicy,
    TopicState,
)
from kdeclare.policy.loading.policy_classes import adapt_policy, configure_policy, make_policy
from kdeclare.policy.rules.base import Rule, Settings

_ASSIGNMENTS = "assignments"


class CreationRuleForLifeSettings(Settings):
    """The settings of `CreationRuleForLife`.

    class: the policy class for new topics, in the form ``module:Class``.
    config: the settings of this policy.
    """

    class_name: str = Field(alias="class")
    config: dict[str, Any] = {}  # noqa: RUF012  frozen


@dataclass(frozen=True, slots=True)
class CreationView:
    """A request that presents an existing topic as if the topic were created in its current state.

    assigned: whether the request has replica assignments instead of the partition count and replication
        factor.
    """

    request: RequestMetadata
    post_request_state: TopicState
    assigned: bool

    @property
    def action(self) -> Action:
        """The action, which is always CREATE."""
        return Action.CREATE

    @property
    def topic(self) -> str:
        """The topic of the original request."""
        return self.request.topic

    @property
    def principal(self) -> str | None:
        """The principal of the original request."""
        return self.request.principal

    @property
    def pre_request_state(self) -> None:
        """The state before the request. It is None, as for a new topic."""
        return

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the original request."""
        return self.request.labels

    @property
    def labels_before(self) -> Mapping[str, str]:
        """The labels before the request. There are none, as for a new topic."""
        return {}

    @property
    def changed(self) -> frozenset[str]:
        """All fields that are set in the state of the topic."""
        counts = ("partitions", "replicationFactor")
        configs = (f"configs.{key}" for key in self.post_request_state.configs)
        return frozenset((_ASSIGNMENTS,) if self.assigned else counts).union(configs)

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The racks of the original request."""
        return self.request.racks

    @property
    def record_count(self) -> int:
        """The number of records. It is 0, as for a new topic."""
        return 0

    @property
    def impact(self) -> KnownImpact:
        """No impact, as for a new topic."""
        return KnownImpact()

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the number of partitions according to the original request."""
        return self.request.partitions_of(labels)


class CreationRuleForLife(Rule[CreationRuleForLifeSettings]):
    """Denies changes after which a topic would violate a rule for new topics (KIP-201, example 1).

    The rule for new topics is a TopicActionsPolicy or CreateTopicPolicy. After a modification, the topic is
    evaluated as if it were created in the new state. A modification is denied if the rule denies the new
    state, unless the rule denies the old state with the same message.

    If a modification moves replicas, the rule is evaluated twice: once with the partition count and
    replication factor, and once with the assignments, because a request to a CreateTopicPolicy contains only
    one of the two.
    """

    settings_model = CreationRuleForLifeSettings
    _policy: Policy

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Create and configure the policy for new topics. Raises ValidationError or UnusablePolicy."""
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
        """Close the policy for new topics."""
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
