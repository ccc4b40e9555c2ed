"""Core and engine are typed: no module says ``Any``, ``cast`` or ``type: ignore``."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "kdeclare"
ESCAPES = re.compile(r"\bAny\b|\bcast\(|\bimport\b.*\bcast\b|#\s*(?:type|mypy):")


def find_escapes(text: str) -> list[str]:
    """What a module says instead of a type; prose does not count."""
    without_docs = re.sub(r'"""(?:[^"\\]|\\.|"(?!""))*"""', "", text)
    return ESCAPES.findall(without_docs)


def test_core_and_engine_have_no_untyped_escapes() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for layer in ("core", "engine")
        for path in (ROOT / layer).rglob("*.py")
        if find_escapes(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Any) -> None: ...",
        "y = cast(str, x)",
        "from typing import cast as convert",
        "x = y  # type: ignore[misc]",
        "# mypy: ignore-errors",
        "A = dict[str, Any]",
    ],
)
def test_find_escapes_detects_escapes(text: str) -> None:
    assert find_escapes(text)


@pytest.mark.parametrize("text", ['"""Any text."""', "x = 1  # anything", "broadcast(x)", 'many = "all"'])
def test_find_escapes_ignores_prose_and_other_names(text: str) -> None:
    assert not find_escapes(text)
