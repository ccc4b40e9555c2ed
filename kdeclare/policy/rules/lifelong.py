"""Enforce a creation rule for the whole life of a topic (KIP-201, example 1)."""

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
    """class: the policy for creations, as ``module:Class``. config: its settings."""

    class_name: str = Field(alias="class")
    config: dict[str, Any] = {}  # noqa: RUF012  frozen


@dataclass(frozen=True, slots=True)
class CreationView:
    """A request that presents one of a topic's states as a creation.

    assigned: whether the request has replica assignments instead of counts.
    """

    request: RequestMetadata
    post_request_state: TopicState
    assigned: bool

    @property
    def action(self) -> Action:
        """Always CREATE."""
        return Action.CREATE

    @property
    def topic(self) -> str:
        """The topic of the request."""
        return self.request.topic

    @property
    def principal(self) -> str | None:
        """The principal of the request."""
        return self.request.principal

    @property
    def pre_request_state(self) -> None:
        """None, because the topic does not exist before a creation."""
        return

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the request."""
        return self.request.labels

    @property
    def labels_before(self) -> Mapping[str, str]:
        """Empty, because the topic does not exist before a creation."""
        return {}

    @property
    def changed(self) -> frozenset[str]:
        """All fields that the topic has."""
        counts = ("partitions", "replicationFactor")
        configs = (f"configs.{key}" for key in self.post_request_state.configs)
        return frozenset((_ASSIGNMENTS,) if self.assigned else counts).union(configs)

    @property
    def racks(self) -> Mapping[int, str | None]:
        """The racks of the request."""
        return self.request.racks

    @property
    def record_count(self) -> int:
        """Always 0, because a new topic has no records."""
        return 0

    def partitions_of(self, labels: Mapping[str, str]) -> int:
        """Return the count of the request."""
        return self.request.partitions_of(labels)


class CreationRuleForLife(Rule[CreationRuleForLifeSettings]):
    """Denies modifications after which a topic would violate its creation rule (KIP-201, example 1).

    The creation rule is another policy, a TopicActionsPolicy or CreateTopicPolicy. It is evaluated for
    creations, and for the result of each modification as if the topic were created in that state. A
    modification is denied if this result is denied, unless the state before the modification is denied with
    the same message. If replicas are moved, the policy is evaluated once with counts and once with
    assignments, because a CreateTopicPolicy gets either counts or assignments.
    """

    settings_model = CreationRuleForLifeSettings
    _policy: Policy

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Construct and configure the other policy. Raises ValidationError or UnusablePolicy."""
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
