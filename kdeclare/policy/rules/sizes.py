"""How many partitions and replicas topics may have."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, model_validator

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicState
from kdeclare.policy.rules.base import Rule, Settings, StateRule, Text, Violation
from kdeclare.policy.rules.labels import topics_with, were_or_are_on
from kdeclare.policy.rules.wording import counted, partitions

_Count = Annotated[int, Field(ge=1)]


class BoundsSettings(Settings):
    """min, max: both included; at least one of them."""

    min: _Count | None = None
    max: _Count | None = None

    @model_validator(mode="after")
    def _some_and_in_order(self) -> "BoundsSettings":
        if self.min is None and self.max is None:
            raise ValueError("needs 'min', 'max' or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"leaves nothing: 'min' ({self.min}) is more than 'max' ({self.max})")
        return self

    def broken_by(self, number: int, verb: str) -> str | None:
        """What is asked of a number that is out of the bounds: ``may have at most 48``."""
        if self.min is not None and number < self.min:
            return f"must {verb} at least {self.min:,}"
        return f"may {verb} at most {self.max:,}" if self.max is not None and number > self.max else None


class PartitionBounds(StateRule[BoundsSettings]):
    """The number of partitions lies within bounds."""

    settings_model = BoundsSettings

    def concerns(self, field: str) -> bool:
        """The count alone."""
        return field == "partitions"

    def violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """One at most."""
        number = state.num_partitions
        wanted = self.settings.broken_by(number, "have")
        if wanted:
            yield Violation("partitions", f"{topic} would have {counted(number, 'partition')}; it {wanted}.")


class ReplicationFactorBounds(StateRule[BoundsSettings]):
    """The number of replicas of every partition lies within bounds."""

    settings_model = BoundsSettings

    def concerns(self, field: str) -> bool:
        """The factor, and the assignments that it follows from."""
        return field in ("replicationFactor", "assignments")

    def violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """One for each number of replicas that is out of bounds."""
        by_size: dict[int, list[int]] = {}
        for number, replicas in state.replicas_assignments.items():
            by_size.setdefault(len(replicas), []).append(number)
        for size in sorted(by_size) or [state.replication_factor]:
            text = self._wrong(topic, size, by_size.get(size, []), whole=len(by_size) <= 1)
            if text:
                yield Violation("replicationFactor", text)

    def _wrong(self, topic: str, size: int, numbers: list[int], *, whole: bool) -> str | None:
        wanted = self.settings.broken_by(size, "be" if whole else "have")
        if wanted is None:
            return None
        if whole:
            return f"{topic} would have a replication factor of {size}; it {wanted}."
        they = "they" if len(numbers) > 1 else "it"
        return f"{partitions(numbers)} of {topic} would have {counted(size, 'replica')}; {they} {wanted}."


class NoPartitionIncreaseSettings(Settings):
    """labels: which topics it is about; all of these must be there."""

    labels: dict[str, Text] = {"keyed": "true"}  # noqa: RUF012  frozen


class NoPartitionIncrease(Rule[NoPartitionIncreaseSettings]):
    """Labelled topics keep their number of partitions (KIP-201, example 2).

    With more partitions, records with a key go to another one than those before them with the same key.
    A topic that loses a label with the same change is still one of them.
    """

    settings_model = NoPartitionIncreaseSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.MODIFY or "partitions" not in request.changed:
            return
        labels = self.settings.labels
        pre, post = request.pre_request_state, request.post_request_state
        if pre is None or post is None or not were_or_are_on(request, labels):
            return
        before, after = pre.num_partitions, post.num_partitions
        if after > before:
            raise PolicyViolation(
                f"{request.topic} has {counted(before, 'partition')} and would have {after:,}; "
                f"{topics_with(labels)} keep theirs, because keys would go to other partitions."
            )
