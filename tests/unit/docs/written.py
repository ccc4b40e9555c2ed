"""The Markdown documentation and its content."""

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
"""Written and generated pages, without golden files of tests."""


def get_relative_path(file: Path) -> str:
    """Return the path relative to the repository."""
    return file.relative_to(ROOT).as_posix()


def parse_tokens(file: Path) -> Iterator[Token]:
    """Yield all tokens of a file, including those within paragraphs."""
    for token in _PARSER.parse(file.read_text(encoding="utf-8")):
        yield token
        yield from token.children or ()


def list_links(file: Path) -> Iterator[str]:
    """Yield the targets of links and pictures."""
    for token in parse_tokens(file):
        for attribute in ("href", "src"):
            if attribute in token.attrs:
                yield str(token.attrs[attribute])


def list_code_blocks(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the language (empty if none is given) and the text of code blocks."""
    for token in parse_tokens(file):
        if token.type in ("fence", "code_block"):
            yield token.info, token.content


def list_command_lines(file: Path) -> Iterator[str]:
    """Yield command lines: lines of blocks, and inline code, that begin with kdeclare."""
    for token in parse_tokens(file):
        if token.type in ("fence", "code_block"):
            for line in token.content.replace("\\\n", " ").splitlines():
                if found := re.match(r"(?:\$ )?(kdeclare\s.*)", line.strip()):
                    yield found[1]
        elif token.type == "code_inline" and token.content.startswith("kdeclare "):
            yield token.content
