"""Text of others in Markdown: it says what it says, and is neither syntax nor a mention of anybody.

Everything goes by entities: they mean the same in a paragraph, in the cell of a table and within HTML,
which backslashes and backticks do not.
"""

import re

from kdeclare.report.elements.values import sanitize_for_terminal, truncate

_SYNTAX = re.compile(
    r"""[&<>"'`*~\[\]\\|@\#!$]      # what begins a structure, or ends the cell of a table
    | (?<![^\W_])_ | _(?![^\W_])     # an underscore within a word is one
    | :(?=//) | (?<=www)\.           # what looks like an address and would become a link
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
"""What hosts of code look for in the text that came of it, but not in code.

``@somebody``, ``#123``, ``GH-123``, the id of a commit and ``:boom:`` (of numbers, two are such); on GitLab
``!123``, ``$123``, ``&123``, ``~label``, ``%milestone``, ``[epic:123]`` and ``GL-123``, too."""


def escape_prose(text: str, max_length: int = 1000) -> str:
    """A sentence, in one line. Of a longer one, its first ``max_length`` characters."""
    lines = [_escape(line) for line in truncate(text, max_length).splitlines()]
    return _MENTIONS.sub(lambda call: f"<code>{call[0]}</code>", "<br>".join(lines))


def escape_code(text: str, max_length: int = 200) -> str:
    """A name or a value. Of a longer one, its first ``max_length`` characters."""
    return f"<code>{_escape(truncate(text, max_length))}</code>"


def _escape(text: str) -> str:
    return _SYNTAX.sub(lambda found: f"&#{ord(found[0])};", sanitize_for_terminal(text))
