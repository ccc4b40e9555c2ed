"""Escape untrusted text in Markdown, so that it contains no markup and no references to users or issues.

Characters are replaced by HTML entities, which work in paragraphs, in table cells and in HTML. Backslashes
and backticks do not work in all of these places.
"""

import re

from kdeclare.report.elements.values import sanitize_for_terminal, truncate

_SYNTAX = re.compile(
    r"""[&<>"'`*~\[\]\\|@\#!$]      # starts a structure, or ends a table cell
    | (?<![^\W_])_ | _(?![^\W_])     # an underscore inside a word is literal anyway
    | :(?=//) | (?<=www)\.           # looks like an address, which would become a link
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MENTIONS = re.compile(
    r"""&\#(?:64;(?=\w|&\#95;)|(?:33|35|36|38);(?=\d)|126;(?=\w|&\#(?:34|95);)|91;(?=(?:[a-z_]|&\#95;)+:))
    | %(?=\w|&\#(?:34|95);)
    | :(?:100|1234|(?!\d+:)(?:[a-z0-9_+-]|&\#95;)+):
    | (?<![A-Za-z0-9])(?:[Gg][HhLl])-\d+ | (?<![A-Za-z0-9])[0-9a-f]{40}(?![A-Za-z0-9])
    """,
    re.VERBOSE,
)
"""Matches text that a code host would turn into a reference if the text is not formatted as code.

- On GitHub and GitLab: ``@user``, ``#123``, ``GH-123``, commit ids and ``:emoji:`` (also ``:100:``).
- Only on GitLab: ``!123``, ``$123``, ``&123``, ``~label``, ``%milestone``, ``[epic:123]`` and ``GL-123``.
"""


def escape_prose(text: str, max_length: int = 1000) -> str:
    """Escape text, truncated to ``max_length`` characters. Line breaks become ``<br>``."""
    lines = [_escape(line) for line in truncate(text, max_length).splitlines()]
    return _MENTIONS.sub(lambda call: f"<code>{call[0]}</code>", "<br>".join(lines))


def escape_code(text: str, max_length: int = 200) -> str:
    """Escape a name or value, truncated to ``max_length`` characters, and format it as code."""
    return f"<code>{_escape(truncate(text, max_length))}</code>"


def _escape(text: str) -> str:
    return _SYNTAX.sub(lambda found: f"&#{ord(found[0])};", sanitize_for_terminal(text))
