"""The last stop of all text before a stream: what a terminal would obey instead of show is written out.

Renderers make control characters visible where they know that text comes from others
(`report.values.clean`). This catches what takes another way, such as JSON, usage errors and logs.
"""

import logging
import re

from kdeclare.core.secrets.scrubber import SCRUBBER

_CONTROL_CHARACTERS = re.compile(
    "["
    "\x80-\x9f"  # C1 controls: \x9b begins a control sequence like ESC [
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reorder the text around them ("Trojan Source")
    "\u2028\u2029"  # line and paragraph separators
    "]"
)


def sanitize_for_terminal(text: str) -> str:
    r"""The text without known secrets, and with C1 and bidirectional controls as ``\uXXXX``."""
    text = SCRUBBER.scrub(text)
    if text.isascii():
        return text
    return _CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class TerminalFormatter(logging.Formatter):
    """A formatter of log lines, whose messages may hold whatever a broker or worker answered."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        return sanitize_for_terminal(super().format(record))
