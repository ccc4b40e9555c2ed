"""All that is written for people in Markdown, and what stands in it."""

import re
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[3]
_PARSER = MarkdownIt("commonmark").enable("table")
_FOLDERS = ("docs", "examples", "benchmarks", "state", "tests")

FILES = tuple(
    sorted([*ROOT.glob("*.md"), *(file for folder in _FOLDERS for file in (ROOT / folder).rglob("*.md"))])
)
GOLDEN = ROOT / "tests" / "golden"
PAGES = tuple(file for file in FILES if GOLDEN not in file.parents and file.name != "comment.md")
"""What people wrote, or what is made of the code; not what the tests compare with."""


def name_of(file: Path) -> str:
    """As one would call it."""
    return file.relative_to(ROOT).as_posix()


def tokens(file: Path) -> Iterator[Token]:
    """All of a file's tokens, those within paragraphs too."""
    for token in _PARSER.parse(file.read_text(encoding="utf-8")):
        yield token
        yield from token.children or ()


def links(file: Path) -> Iterator[str]:
    """Where links and pictures lead."""
    for token in tokens(file):
        for attribute in ("href", "src"):
            if attribute in token.attrs:
                yield str(token.attrs[attribute])


def blocks(file: Path) -> Iterator[tuple[str, str]]:
    """Blocks of code: language (empty if none is said) and text."""
    for token in tokens(file):
        if token.type in ("fence", "code_block"):
            yield token.info, token.content


def command_lines(file: Path) -> Iterator[str]:
    """What is shown to be typed: lines of blocks, and code within sentences, that begin with kdeclare."""
    for token in tokens(file):
        if token.type in ("fence", "code_block"):
            for line in token.content.replace("\\\n", " ").splitlines():
                if found := re.match(r"(?:\$ )?(kdeclare\s.*)", line.strip()):
                    yield found[1]
        elif token.type == "code_inline" and token.content.startswith("kdeclare "):
            yield token.content
