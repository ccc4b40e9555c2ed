"""What topics may be called."""

from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata
from kdeclare.policy.patterns import Pattern
from kdeclare.policy.rules.base import Rule, Settings


def _is_pattern(text: str) -> str:
    try:
        Pattern(text)
    except ValueError as wrong:
        raise ValueError(f"this is no regular expression (RE2): {wrong}") from None
    return text


class NamePatternSettings(Settings):
    """pattern: a regular expression (RE2). message: what a good name looks like, for people."""

    pattern: Annotated[str, AfterValidator(_is_pattern)]
    message: str = ""


class NamePattern(Rule[NamePatternSettings]):
    """The whole name of a new topic matches a pattern; names never change, so others are not judged."""

    settings_model = NamePatternSettings

    @cached_property
    def _pattern(self) -> Pattern:
        return Pattern(self.settings.pattern)

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.CREATE or self._pattern.matches(request.topic):
            return
        text = f"The name '{request.topic}' does not match the pattern {self.settings.pattern}."
        raise PolicyViolation(f"{text} {self.settings.message}".strip())
