"""Message templates: strings in which names in braces are replaced with values.

A template has no conditions, loops or calls. Values are escaped for the media type of the message, and names
in the values are not replaced, so that no topic name can change the structure of a message.
"""

import json
import re
from collections.abc import Mapping
from typing import Literal

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.suggestions import format_suggestion

ContentType = Literal["application/json", "text/plain"]
"""The media types of messages that are created from templates."""

PLACEHOLDERS = (
    "headline",
    "fleet",
    "target",
    "team",
    "audit_id",
    "taken_at",
    "since",
    "severity",
    "new_count",
    "fixed_count",
    "open_count",
    "unread_count",
    "new",
    "fixed",
    "report_url",
)
"""The names that can be placeholders in a template, without braces."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")


@dataclass(frozen=True, slots=True)
class MessageTemplate:
    """A message template. content_type: the media type, which determines how values are escaped."""

    text: str
    content_type: ContentType = "application/json"

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the template with all placeholders replaced by their values."""
        return _PLACEHOLDER.sub(lambda match: self._escape(values[match[1]]), self.text)

    def _escape(self, value: str) -> str:
        if self.content_type == "text/plain":
            return value
        return json.dumps(value, ensure_ascii=False)[1:-1]


def explain_bad_message_template(template: MessageTemplate) -> str | None:
    """Return why a template cannot be used; None if it is valid."""
    for name in _PLACEHOLDER.findall(template.text):
        if name not in PLACEHOLDERS:
            suggestion = format_suggestion(name, PLACEHOLDERS) or f"Use {{{'}, {'.join(PLACEHOLDERS)}}}."
            return f"there is no value {{{name}}}. {suggestion}"
    if re.search(r"\$\{(env|file|var)\.", template.text):
        return "references are not resolved in templates. Use 'headers' for credentials."
    if template.content_type == "application/json":
        try:
            json.loads(template.fill({n: "1" if n.endswith("_count") else "text" for n in PLACEHOLDERS}))
        except ValueError:
            return "it is not valid JSON once its values are filled in. Put the placeholders in quotes."
    return None
