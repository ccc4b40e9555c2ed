"""Functions that render Markdown."""

import re
from collections.abc import Iterable, Sequence

GENERATED = "<!-- Made of the code by `python -m scripts.reference`; changes belong there. -->\n"
"""The first line of every generated page."""


def page(title: str, *blocks: str) -> str:
    """Render a whole page."""
    return "\n".join([GENERATED, f"# {title}\n", *(f"{block.strip(chr(10))}\n" for block in blocks if block)])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table, or nothing if there are no rows."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) if lines else ""


def fence(text: str, language: str = "text") -> str:
    """Render a block of code."""
    return f"```{language}\n{text.strip(chr(10))}\n```"


def code(text: object) -> str:
    """Render text as inline code."""
    return f"`{text}`"


def prose(text: str) -> str:
    """Convert a docstring to Markdown, with one line per paragraph."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(part.split()) for part in paragraphs).replace("``", "`")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
