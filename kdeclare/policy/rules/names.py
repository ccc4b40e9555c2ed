"""What topics may be called."""

from functools import cached_property
from typing import Annotated, Any

from pydantic import ValidatorFunctionWrapHandler, WrapValidator

from kdeclare.core.patterns import Pattern
from kdeclare.core.references import Referenced
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata
from kdeclare.policy.rules.base import Rule, Settings


def _read(raw: Any, plain: ValidatorFunctionWrapHandler) -> str:
    text: str = plain(raw)
    try:
        Pattern(text)
    except ValueError as wrong:
        reason = str(wrong)
        if isinstance(raw, Referenced):  # its value is not for messages
            reason = f"{reason.partition(' in ')[0]} in what {raw.reference} stands for"
        raise ValueError(f"this is no regular expression (RE2): {reason}") from None
    return raw if isinstance(raw, Referenced) else text


class NamePatternSettings(Settings):
    """pattern: a regular expression (RE2). message: what a good name looks like, for people."""

    pattern: Annotated[str, WrapValidator(_read)]
    message: str = ""


class NamePattern(Rule[NamePatternSettings]):
    """The whole name of a new topic matches a pattern; names never change, so others are not judged."""

    settings_model = NamePatternSettings

    @cached_property
    def _pattern(self) -> Pattern:
        return Pattern(str(self.settings.pattern))

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.CREATE or self._pattern.matches(request.topic):
            return
        pattern = self.settings.pattern
        shown = pattern.reference if isinstance(pattern, Referenced) else pattern
        text = f"The name '{request.topic}' does not match the pattern {shown}."
        raise PolicyViolation(f"{text} {self.settings.message}".strip())
