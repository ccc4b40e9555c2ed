"""Rules for the names, partitions, replication factor and deletion of topics."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from kdeclare.core.patterns import Pattern
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicState
from kdeclare.policy.rules.base import (
    NoSettings,
    Rule,
    Settings,
    StateRule,
    Text,
    Violation,
    format_count,
    format_labelled_topics,
    format_partitions,
    has_labels,
    has_or_had_labels,
)


def _compile_pattern(raw: Any, validate_text: ValidatorFunctionWrapHandler) -> str:
    text: str = validate_text(raw)
    try:
        Pattern(text)
    except ValueError as pattern_error:
        reason = str(pattern_error)
        if isinstance(raw, Referenced):  # messages must not show the value of a reference
            reason = f"{reason.partition(' in ')[0]} in the value of {raw.reference}"
        raise ValueError(f"this is not a regular expression (RE2): {reason}") from None
    return raw if isinstance(raw, Referenced) else text


class NamePatternSettings(Settings):
    """The settings of `NamePattern`.

    pattern: a regular expression (RE2) that matches the whole name.
    message: a description of valid names, to show to users.
    """

    pattern: Annotated[str, WrapValidator(_compile_pattern)]
    message: str = ""


class NamePattern(Rule[NamePatternSettings]):
    """Requires the whole name of a new topic to match a regular expression.

    Existing topics are not checked, because the name of a topic cannot change.
    """

    settings_model = NamePatternSettings

    @cached_property
    def _pattern(self) -> Pattern:
        return Pattern(str(self.settings.pattern))

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.CREATE or self._pattern.matches(request.topic):
            return
        pattern = self.settings.pattern
        pattern_text = pattern.reference if isinstance(pattern, Referenced) else pattern
        text = f"The name '{request.topic}' does not match the pattern {pattern_text}."
        raise PolicyViolation(f"{text} {self.settings.message}".strip())


_Count = Annotated[int, Field(ge=1)]


class BoundsSettings(Settings):
    """The bounds of a number.

    min, max: inclusive bounds; at least one is required.
    """

    min: _Count | None = None
    max: _Count | None = None

    @model_validator(mode="after")
    def _validate_bounds(self) -> "BoundsSettings":
        if self.min is None and self.max is None:
            raise ValueError("set 'min', 'max' or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"'min' ({self.min}) is greater than 'max' ({self.max})")
        return self

    def explain_broken_bound(self, number: int, verb: str) -> str | None:
        """Return the bound that a number violates, as a predicate such as ``may have at most 48``.

        Return None if the number is within the bounds.
        """
        if self.min is not None and number < self.min:
            return f"must {verb} at least {self.min:,}"
        return f"may {verb} at most {self.max:,}" if self.max is not None and number > self.max else None


class PartitionBounds(StateRule[BoundsSettings]):
    """Requires the number of partitions to be within bounds."""

    settings_model = BoundsSettings

    def concerns(self, field: str) -> bool:
        """Return whether the field is the number of partitions."""
        return field == "partitions"

    def find_violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """Yield a violation if the number of partitions is out of bounds."""
        count = state.num_partitions
        requirement = self.settings.explain_broken_bound(count, "have")
        if requirement:
            yield Violation(
                "partitions", f"{topic} would have {format_count(count, 'partition')}; it {requirement}."
            )


class ReplicationFactorBounds(StateRule[BoundsSettings]):
    """Requires the number of replicas of every partition to be within bounds."""

    settings_model = BoundsSettings

    def concerns(self, field: str) -> bool:
        """Return whether the field determines the replication factor."""
        return field in ("replicationFactor", "assignments")

    def find_violations(self, topic: str, state: TopicState) -> Iterator[Violation]:
        """Yield one violation for each number of replicas that is out of bounds.

        Partitions with the same number of replicas are reported together.
        """
        partitions_by_size: dict[int, list[int]] = {}
        for partition, replicas in state.replicas_assignments.items():
            partitions_by_size.setdefault(len(replicas), []).append(partition)
        for size in sorted(partitions_by_size) or [state.replication_factor]:
            text = self._explain_size(
                topic, size, partitions_by_size.get(size, []), is_uniform=len(partitions_by_size) <= 1
            )
            if text:
                yield Violation("replicationFactor", text)

    def _explain_size(self, topic: str, size: int, numbers: list[int], *, is_uniform: bool) -> str | None:
        requirement = self.settings.explain_broken_bound(size, "be" if is_uniform else "have")
        if requirement is None:
            return None
        if is_uniform:
            return f"{topic} would have a replication factor of {size}; it {requirement}."
        pronoun = "they" if len(numbers) > 1 else "it"
        return (
            f"{format_partitions(numbers)} of {topic} would have {format_count(size, 'replica')}; "
            f"{pronoun} {requirement}."
        )


class NoPartitionIncreaseSettings(Settings):
    """The settings of `NoPartitionIncrease`.

    labels: the rule checks only topics with all of these labels.
    """

    labels: dict[str, Text] = {"keyed": "true"}  # noqa: RUF012  frozen


class NoPartitionIncrease(Rule[NoPartitionIncreaseSettings]):
    """Denies adding partitions to topics with particular labels (KIP-201, example 2).

    After partitions are added, new records can go to a different partition than earlier records with the same
    key. A change that removes the labels from a topic is also checked.
    """

    settings_model = NoPartitionIncreaseSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.MODIFY or "partitions" not in request.changed:
            return
        labels = self.settings.labels
        pre, post = request.pre_request_state, request.post_request_state
        if pre is None or post is None or not has_or_had_labels(request, labels):
            return
        old_count, new_count = pre.num_partitions, post.num_partitions
        if new_count > old_count:
            raise PolicyViolation(
                f"{request.topic} has {format_count(old_count, 'partition')} and would have {new_count:,}; "
                f"{format_labelled_topics(labels)} must keep their partition count, because keys would go to "
                "other partitions."
            )


class NoCompactedPartitionIncrease(Rule[NoSettings]):
    """Denies adding partitions to compacted topics.

    If new records with a key go to a different partition, the last record with this key in the old partition
    stays there forever.
    """

    settings_model = NoSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.MODIFY or "partitions" not in request.changed:
            return
        pre, post = request.pre_request_state, request.post_request_state
        if pre is None or post is None or not (_is_compacted(pre) or _is_compacted(post)):
            return
        old_count, new_count = pre.num_partitions, post.num_partitions
        if new_count > old_count:
            raise PolicyViolation(
                f"{request.topic} has {format_count(old_count, 'partition')} and would have {new_count:,}; "
                "compacted topics must keep their partition count, because old records of a key could stay "
                "in its former partition forever."
            )


def _is_compacted(state: TopicState) -> bool:
    policies = state.configs.get("cleanup.policy", "").split(",")
    return "compact" in (policy.strip() for policy in policies)


_Budget = Annotated[int, Field(ge=0)]


class PartitionBudgetSettings(Settings):
    """The settings of `PartitionBudget`.

    label: the key of the label that contains the team of a topic.
    max: the maximum number of partitions of each team.
    budgets: the maximum number for particular teams, by team. These numbers take precedence over ``max``.
    """

    label: Annotated[str, Field(min_length=1)] = "team"
    max: _Budget | None = None
    budgets: dict[str, _Budget] = {}  # noqa: RUF012  frozen

    @model_validator(mode="after")
    def _validate_not_empty(self) -> "PartitionBudgetSettings":
        if self.max is None and not self.budgets:
            raise ValueError("set 'max', 'budgets' or both")
        return self


class PartitionBudget(Rule[PartitionBudgetSettings]):
    """Limits the total number of partitions of all topics of a team. A label of each topic names the team.

    A change that adds partitions is denied if the total would exceed the limit. The total includes earlier
    changes of the same plan that were not denied. Topics without the label are not checked.
    """

    settings_model = PartitionBudgetSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        is_creation = request.action is Action.CREATE
        if not is_creation and (request.action is Action.DELETE or "partitions" not in request.changed):
            return
        label = self.settings.label
        team = request.labels.get(label)
        if team is None:
            return
        budget = self.settings.budgets.get(team, self.settings.max)
        total = 0 if budget is None else request.partitions_of({label: team})
        if budget is not None and total > budget:
            raise PolicyViolation(
                f"Including {request.topic}, topics labeled {label}={team} would have "
                f"{format_count(total, 'partition')}; their budget is {budget:,}."
            )


class NoDeleteSettings(Settings):
    """The settings of `NoDelete`.

    labels: the rule checks only topics with all of these labels (default: all topics).
    """

    labels: dict[str, Text] = {}  # noqa: RUF012  frozen


class NoDelete(Rule[NoDeleteSettings]):
    """Denies the deletion of topics that have the labels in the settings of the rule."""

    settings_model = NoDeleteSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is Action.DELETE and has_labels(request, self.settings.labels):
            raise PolicyViolation(
                f"{request.topic} would be deleted; {format_labelled_topics(self.settings.labels)} "
                f"must not be deleted."
            )


class NoDeleteWithRecords(Rule[NoSettings]):
    """Denies the deletion of topics that contain records.

    The number of records is estimated from offsets. A compacted topic can have fewer records than the
    estimate.
    """

    settings_model = NoSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.DELETE:
            return
        records = request.record_count
        if records > 0:
            raise PolicyViolation(
                f"{request.topic} would be deleted, but has up to {format_count(records, 'record')}; "
                "only topics without records may be deleted."
            )
