"""Pieces of Markdown."""

import re
from collections.abc import Iterable, Sequence

GENERATED = "<!-- Made of the code by `python -m scripts.reference`; changes belong there. -->\n"
"""Stands on top of every page."""


def page(title: str, *blocks: str) -> str:
    """A whole page."""
    return "\n".join([GENERATED, f"# {title}\n", *(f"{block.strip(chr(10))}\n" for block in blocks if block)])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty without rows."""
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) if lines else ""


def fence(text: str, language: str = "text") -> str:
    """A block of code."""
    return f"```{language}\n{text.strip(chr(10))}\n```"


def code(text: object) -> str:
    """Words as they are typed."""
    return f"`{text}`"


def prose(text: str) -> str:
    """A docstring as Markdown: one line a paragraph, and code as Markdown has it."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(part.split()) for part in paragraphs).replace("``", "`")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
