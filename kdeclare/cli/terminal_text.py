"""Sanitize all text before it is written: characters that a terminal would interpret are escaped.

Renderers already escape control characters in text from outside (`report.elements.values`). This module also
covers other output, such as JSON, usage errors and logs.
"""

import logging
import re

from kdeclare.core.secrets.scrubber import SCRUBBER

_CONTROL_CHARACTERS = re.compile(
    "["
    "\x80-\x9f"  # C1 controls: \x9b starts a control sequence like ESC [
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reorder the text around them ("Trojan Source")
    "\u2028\u2029"  # line and paragraph separators
    "]"
)


def sanitize_for_terminal(text: str) -> str:
    r"""Remove known secrets and replace C1 and bidirectional controls by ``\uXXXX``."""
    text = SCRUBBER.scrub(text)
    if text.isascii():
        return text
    return _CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class TerminalFormatter(logging.Formatter):
    """A formatter for log lines, which may contain text from a broker or worker."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        return sanitize_for_terminal(super().format(record))
