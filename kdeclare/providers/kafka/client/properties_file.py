"""Properties files, as java.util.Properties reads them."""

import re
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a properties file as java.util.Properties does, ISO 8859-1 included.

    Raises KdeclareError when it cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="iso-8859-1")
    except OSError as exc:
        raise KdeclareError(
            error("client-properties", "Client properties cannot be read", f"{path}: {exc.strerror}")
        ) from exc
    return dict(_pairs(text))


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert match is not None  # every part of it may be empty
        pairs.append((_unescaped(match[1]), _unescaped(match[2])))
    return pairs


def _logical_lines(text: str) -> list[str]:
    """Lines without comments, each joined with those that a backslash at its end continues it with."""
    lines: list[str] = []
    continued = False
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        ends_open = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        body = line[:-1] if ends_open else line
        if continued:
            lines[-1] += body
        else:
            lines.append(body)
        continued = ends_open
    return lines


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", one, text, flags=re.DOTALL)
