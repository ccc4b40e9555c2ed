"""What ready-made rules share: settings, labels, and the words of their messages."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy, TopicState


class Settings(BaseModel):
    """What a rule can be told in the project file; what it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NoSettings(Settings):
    """Of a rule that there is nothing to be told."""


def as_text(raw: Any) -> Any:
    """A number or a boolean as the text that labels and Kafka have for it; all else as it is."""
    if isinstance(raw, bool):
        return str(raw).lower()
    return str(raw) if isinstance(raw, int | float) else raw


Text = Annotated[
    str, BeforeValidator(as_text), Field(json_schema_extra={"type": ["string", "number", "boolean"]})
]
"""A text that may be written like a number or a boolean, as in a manifest's labels."""

S = TypeVar("S", bound=Settings)


class Rule(TopicActionsPolicy, Generic[S]):
    """A policy with typed settings. ``settings_model`` says what can be set."""

    settings_model: type[S]
    settings: S

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Take the settings. Raises pydantic's ValidationError where they are not in order."""
        self.settings = self.settings_model.model_validate(dict(configs))


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong with a topic: the field, in the words of `RequestMetadata.changed`, and a sentence."""

    field: str
    text: str


class StateRule(Rule[S]):
    """A rule about what a topic is like.

    A creation has to satisfy it. A modification is denied for what it brings about: for a field that it
    changes and that is wrong afterwards, and for what was not wrong in the same way before.
    """

    @abstractmethod
    def concerns(self, field: str) -> bool:
        """Whether a change of the field can make a topic violate the rule; nothing is read for others."""

    @abstractmethod
    def find_violations(self, topic: str, state: TopicState) -> Iterable[Violation]:
        """All that is wrong with a topic in this state."""

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
    """Whether the topic has all of these labels."""
    return not labels or labels.items() <= request.labels.items()


def has_or_had_labels(request: RequestMetadata, labels: Mapping[str, str]) -> bool:
    """Whether the topic has all of these labels, or had them before the request."""
    return has_labels(request, labels) or labels.items() <= request.labels_before.items()


def format_labelled_topics(labels: Mapping[str, str]) -> str:
    """The topics with these labels, for a message."""
    label_text = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return f"topics labelled {label_text}" if labels else "topics"


_MAX_LISTED = 8
_MAX_VALUE_LENGTH = 60


def format_count(number: int, noun: str) -> str:
    """A number of things: ``1 partition``, ``1,200 partitions``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_list(items: Iterable[object], last: str = "and") -> str:
    """The first few of several: ``0, 1 and 2``, ``0, 1 … and 40 more``."""
    words = [str(item) for item in items]
    if len(words) > _MAX_LISTED + 1:
        return f"{', '.join(words[:_MAX_LISTED])} {last} {len(words) - _MAX_LISTED:,} more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def format_partitions(numbers: Iterable[int]) -> str:
    """Partitions by their numbers, as the beginning of a sentence."""
    sorted_numbers = sorted(numbers)
    return f"Partition{'s' if len(sorted_numbers) > 1 else ''} {format_list(sorted_numbers)}"


def format_setting(key: str, value: str) -> str:
    """A config with its value, as Kafka's tools write it."""
    return f"{key}={value if len(value) <= _MAX_VALUE_LENGTH else value[: _MAX_VALUE_LENGTH - 1] + '…'}"
