"""The first line of each stored object: ``kdeclare-object`` and a random number.

The line makes any two writes different, even if they have the same content. Some services derive the version
of an object from its content and would otherwise give both writes the same version. If a response was lost,
the line also shows which write took effect.
"""

import re
import secrets

_FIRST_LINE = re.compile(rb"kdeclare-object [0-9a-f]{32}\n")


def make_first_line() -> bytes:
    """Return a first line with a new random number."""
    return b"kdeclare-object %s\n" % secrets.token_hex(16).encode()


def split_first_line(stored: bytes) -> tuple[bytes, bytes] | None:
    """Split a stored object into its first line and the rest. Return None if kdeclare did not write it."""
    first_line = _FIRST_LINE.match(stored)
    return None if first_line is None else (first_line[0], stored[first_line.end() :])
