"""Edits of manifests for people: the lines that change, as ``diff -u`` shows them."""

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff

from kdeclare.core.provider.registry import may_hold_secret
from kdeclare.core.secrets.secret_refs import SHOWN
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.manifests.editing.file_text import decoded

_NOWHERE = "/dev/null"
_NO_BREAK = "\\ No newline at end of file\n"
_WORD = re.compile(r"[\w.-]+")
_PAIR = re.compile(r"""(?P<key>[\w.-]+)["']?[ \t]*:[ \t]+(?P<value>[^\s#].*)""")
_BLOCK = re.compile(r"[|>]")
_HARMLESS = re.compile(r"""["']?\$\{|null\b|~""")


def manifest_diff(files: Sequence[FileEdit]) -> str:
    """The diff of all files, one after the other; empty where nothing changes. It shows no literal secret."""
    return "".join(line for edit in files for line in _lines(edit))


def _lines(edit: FileEdit) -> Iterator[str]:
    before = edit.file if edit.before is not None else _NOWHERE
    after = edit.file if edit.after is not None else _NOWHERE
    for line in unified_diff(_split(edit.before), _split(edit.after), before, after):
        # a carriage return at the end of a line would only disturb a terminal
        yield line if not line.endswith("\r\n") else f"{line[:-2]}\n"
        if not line.endswith("\n"):
            yield f"\n{_NO_BREAK}"


def _split(data: bytes | None) -> list[str]:
    text = decoded(data)[0] if data is not None else ""
    return list(_masked(text.splitlines(keepends=True)))


def _masked(lines: Sequence[str]) -> Iterator[str]:
    """With what stands behind a sensitive key hidden, to the end of its line, and the block below it, too."""
    below: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if below is not None and (depth > below or not line.strip()):
            yield f"{line[:depth]}{SHOWN}\n" if line.strip() else line
            continue
        found = _secret(line)
        below = depth if found and _BLOCK.match(found["value"]) else None
        yield f"{line[: found.start('value')]}{SHOWN}\n" if found else line


def _secret(line: str) -> re.Match[str] | None:
    """The first sensitive key of a line, in flow style too, whose value is no reference."""
    pairs = (_PAIR.match(line, word.start()) for word in _WORD.finditer(line))
    literal = (found for found in pairs if found and not _HARMLESS.match(found["value"]))
    return next((found for found in literal if may_hold_secret(found["key"])), None)
