"""Sanitize all output: remove secrets, and escape characters that a terminal would interpret.

Reports already escape control characters in names and values (`report.elements.values`). This module also
covers JSON, usage errors, logs and tracebacks.
"""

import logging
import re
import sys
import traceback

from kdeclare.core.secrets.scrubber import SCRUBBER

_CONTROL_CHARACTERS = re.compile(
    "["
    "\x80-\x9f"  # C1 controls: \x9b starts a control sequence like ESC [
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that reorder text ("Trojan Source")
    "\u2028\u2029"  # line and paragraph separators
    "]"
)


def sanitize_for_terminal(text: str) -> str:
    r"""Remove known secrets, and replace C1 and bidirectional control characters with ``\uXXXX``."""
    text = SCRUBBER.scrub(text)
    if text.isascii():
        return text
    return _CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_traceback(exception: BaseException) -> None:
    """Print a traceback to stderr, without the secrets that exceptions of libraries can contain."""
    print(sanitize_for_terminal("".join(traceback.format_exception(exception))), end="", file=sys.stderr)


class TerminalFormatter(logging.Formatter):
    """Sanitizes log lines, because they can contain text from a broker or a worker."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        return sanitize_for_terminal(super().format(record))
