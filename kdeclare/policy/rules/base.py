"""Base classes of the ready-made rules, and functions for labels and messages."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy, TopicState


class Settings(BaseModel):
    """The settings of a rule in the project file. Unknown settings are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NoSettings(Settings):
    """The settings model of the rules that accept no settings."""


def as_text(raw: Any) -> Any:
    """Convert a number or a boolean to a string, as in Kafka configs. Return other values unchanged."""
    if isinstance(raw, bool):
        return str(raw).lower()
    return str(raw) if isinstance(raw, int | float) else raw


Text = Annotated[
    str, BeforeValidator(as_text), Field(json_schema_extra={"type": ["string", "number", "boolean"]})
]
"""A string. In YAML, a number or a boolean is also accepted, as for labels."""

S = TypeVar("S", bound=Settings)


class Rule(TopicActionsPolicy, Generic[S]):
    """A policy with typed settings.

    settings_model: the Pydantic model of the settings.
    """

    settings_model: type[S]
    settings: S

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Validate and apply the settings. Raises Pydantic's ValidationError."""
        self.settings = self.settings_model.model_validate(dict(configs))


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule by a topic.

    field: the field that violates the rule, in the form of `RequestMetadata.changed`.
    text: the message.
    """

    field: str
    text: str


class StateRule(Rule[S]):
    """A rule that every topic must satisfy.

    A new topic is denied if it violates the rule. A modification is denied only if it changes a field that
    violates the rule, or if the violation did not exist in the same form before.
    """

    @abstractmethod
    def concerns(self, field: str) -> bool:
        """Return whether a change to the field can cause a violation. If not, the rule ignores the change."""

    @abstractmethod
    def find_violations(self, topic: str, state: TopicState) -> Iterable[Violation]:
        """Return all violations of the rule by a topic with this state."""

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        post, pre = request.post_request_state, request.pre_request_state
        if post is None:
            return
        if request.action is Action.MODIFY and not any(map(self.concerns, request.changed)):
            return
        violations = list(self.find_violations(request.topic, post))
        if pre is not None and not request.changed.issuperset(v.field for v in violations):
            earlier_violations = set(self.find_violations(request.topic, pre))
            violations = [v for v in violations if v.field in request.changed or v not in earlier_violations]
        if violations:
            raise PolicyViolation(" ".join(v.text for v in violations))


def has_labels(request: RequestMetadata, labels: Mapping[str, str]) -> bool:
    """Return whether the topic of a request has all of these labels."""
    return not labels or labels.items() <= request.labels.items()


def has_or_had_labels(request: RequestMetadata, labels: Mapping[str, str]) -> bool:
    """Return whether the topic has all of these labels, or had them before the request."""
    return has_labels(request, labels) or labels.items() <= request.labels_before.items()


def format_labelled_topics(labels: Mapping[str, str]) -> str:
    """Return a phrase for topics with these labels, such as ``topics labeled team=blue``."""
    label_text = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return f"topics labeled {label_text}" if labels else "topics"


_MAX_LISTED = 8
_MAX_VALUE_LENGTH = 60


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun, such as ``1 partition`` or ``1,200 partitions``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_list(items: Iterable[object], last: str = "and") -> str:
    """Format a list, and count the items beyond a limit: ``0, 1 and 2``, ``0, 1 … and 40 more``."""
    words = [str(item) for item in items]
    if len(words) > _MAX_LISTED + 1:
        return f"{', '.join(words[:_MAX_LISTED])} {last} {len(words) - _MAX_LISTED:,} more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def format_partitions(numbers: Iterable[int]) -> str:
    """Format partition numbers for the beginning of a sentence, such as ``Partitions 0, 1 and 2``."""
    sorted_numbers = sorted(numbers)
    return f"Partition{'s' if len(sorted_numbers) > 1 else ''} {format_list(sorted_numbers)}"


def format_setting(key: str, value: str) -> str:
    """Format a config in the form ``key=value``, and truncate a long value."""
    return f"{key}={value if len(value) <= _MAX_VALUE_LENGTH else value[: _MAX_VALUE_LENGTH - 1] + '…'}"
