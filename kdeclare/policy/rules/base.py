"""What ready-made rules share: settings, labels, and the words of their messages."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kdeclare.core.frozen import dataclass
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
    def violations(self, topic: str, state: TopicState) -> Iterable[Violation]:
        """All that is wrong with a topic in this state."""

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        post, pre = request.post_request_state, request.pre_request_state
        if post is None:
            return
        if request.action is Action.MODIFY and not any(map(self.concerns, request.changed)):
            return
        found = list(self.violations(request.topic, post))
        if pre is not None and not request.changed.issuperset(v.field for v in found):
            before = set(self.violations(request.topic, pre))
            found = [v for v in found if v.field in request.changed or v not in before]
        if found:
            raise PolicyViolation(" ".join(v.text for v in found))


def are_on(request: RequestMetadata, labels: Mapping[str, str]) -> bool:
    """Whether the topic has all of these labels."""
    return not labels or labels.items() <= request.labels.items()


def were_or_are_on(request: RequestMetadata, labels: Mapping[str, str]) -> bool:
    """Whether the topic has all of these labels, or had them before the request."""
    return are_on(request, labels) or labels.items() <= request.labels_before.items()


def topics_with(labels: Mapping[str, str]) -> str:
    """The topics with these labels, for a message."""
    named = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return f"topics labelled {named}" if labels else "topics"


_SHOWN = 8
_LONGEST = 60


def counted(number: int, what: str) -> str:
    """A number of things: ``1 partition``, ``1,200 partitions``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def listed(items: Iterable[object], last: str = "and") -> str:
    """The first few of several: ``0, 1 and 2``, ``0, 1 … and 40 more``."""
    words = [str(item) for item in items]
    if len(words) > _SHOWN + 1:
        return f"{', '.join(words[:_SHOWN])} {last} {len(words) - _SHOWN:,} more"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def partitions(numbers: Iterable[int]) -> str:
    """Partitions by their numbers, as the beginning of a sentence."""
    chosen = sorted(numbers)
    return f"Partition{'s' if len(chosen) > 1 else ''} {listed(chosen)}"


def setting(key: str, value: str) -> str:
    """A config with its value, as Kafka's tools write it."""
    return f"{key}={value if len(value) <= _LONGEST else value[: _LONGEST - 1] + '…'}"
