"""Render the changes to manifests as a unified diff."""

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff

from kdeclare.core.provider.provider_queries import may_hold_secret
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.manifests.editing.file_text import decode_text

_NULL_DEVICE = "/dev/null"
_NO_NEWLINE_NOTE = "\\ No newline at end of file\n"
_WORD = re.compile(r"[\w.-]+")
_PAIR = re.compile(r"""(?P<key>[\w.-]+)["']?[ \t]*:[ \t]+(?P<value>[^\s#].*)""")
_BLOCK_SCALAR = re.compile(r"[|>]")
_NOT_LITERAL = re.compile(r"""["']?\$\{|null\b|~""")


def render_manifest_diff(files: Sequence[FileEdit]) -> str:
    """Render the diffs of all files, with secrets masked. If no file changes, return an empty string."""
    return "".join(line for edit in files for line in _render_file_diff(edit))


def _render_file_diff(edit: FileEdit) -> Iterator[str]:
    old_name = edit.file if edit.before is not None else _NULL_DEVICE
    new_name = edit.file if edit.after is not None else _NULL_DEVICE
    for line in unified_diff(
        _split_masked_lines(edit.before), _split_masked_lines(edit.after), old_name, new_name
    ):
        # A carriage return at the end of a line would garble the terminal.
        yield line if not line.endswith("\r\n") else f"{line[:-2]}\n"
        if not line.endswith("\n"):
            yield f"\n{_NO_NEWLINE_NOTE}"


def _split_masked_lines(data: bytes | None) -> list[str]:
    text = decode_text(data)[0] if data is not None else ""
    return list(_mask_secrets(text.splitlines(keepends=True)))


def _mask_secrets(lines: Sequence[str]) -> Iterator[str]:
    """Mask the values of sensitive keys. If a value is a block scalar, all lines of the value are masked."""
    secret_depth: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if secret_depth is not None and (depth > secret_depth or not line.strip()):
            yield f"{line[:depth]}{SENSITIVE_MASK}\n" if line.strip() else line
            continue
        secret_match = _find_literal_secret(line)
        secret_depth = depth if secret_match and _BLOCK_SCALAR.match(secret_match["value"]) else None
        yield f"{line[: secret_match.start('value')]}{SENSITIVE_MASK}\n" if secret_match else line


def _find_literal_secret(line: str) -> re.Match[str] | None:
    """Find the first sensitive key with a literal value in a line of YAML, in block or flow style."""
    pairs = (_PAIR.match(line, word.start()) for word in _WORD.finditer(line))
    literal_pairs = (found for found in pairs if found and not _NOT_LITERAL.match(found["value"]))
    return next((found for found in literal_pairs if may_hold_secret(found["key"])), None)
