"""Edits of manifests for people: the lines that change, as ``diff -u`` shows them."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.manifests.editing.text import decoded

_NOWHERE = "/dev/null"
_NO_BREAK = "\\ No newline at end of file\n"


def manifest_diff(files: Sequence[FileEdit]) -> str:
    """The diff of all files, one after the other; empty where nothing changes."""
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
    return text.splitlines(keepends=True)
