"""What the ready-made rules have in common: typed settings, and what a request is blamed for."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

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
