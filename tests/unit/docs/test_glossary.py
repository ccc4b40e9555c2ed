"""The glossary refers to existing code."""

import re

import pytest

from tests.unit.docs.written import ROOT

PAGE = ROOT / "docs" / "glossary.md"
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]


def test_glossary_terms_are_unique() -> None:
    terms = [term.strip() for row in ROWS for term in row.split("|")[1].split(",")]
    assert len(terms) == len(set(terms)) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_glossary_code_references_exist(row: str) -> None:
    places = re.findall(r"`([a-z_/]+(?:/|\.py))`", row.split("|")[3])
    names = re.findall(r"`([A-Z]\w+)(?:\.(\w+))?`", row.split("|")[3])
    assert places or names, "a term is somewhere in the code"
    assert all((ROOT / "kdeclare" / place).exists() for place in places), places
    text = "".join(
        (ROOT / "kdeclare" / place).read_text(encoding="utf-8") for place in places if place.endswith(".py")
    )
    for name, member in names:
        if places:
            assert re.search(rf"\b{name}\b", text), name
        else:
            found = [
                p for p in (ROOT / "kdeclare" / "core").rglob("*.py") if f"class {name}" in p.read_text()
            ]
            assert found, name
            assert not member or any(member in p.read_text() for p in found), member
