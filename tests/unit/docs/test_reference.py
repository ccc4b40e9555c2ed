"""The pages in docs/reference match the code."""

import os
import re

import pytest

from kdeclare import api
from kdeclare.app.authoring.schema import list_schema_kinds
from kdeclare.core.exit_codes import ExitCode
from scripts.reference import FOLDER, pages
from scripts.reference.documents import PRINTED_BY

NAMES = ("cli.md", "documents.md", "exit-codes.md", "library.md", "manifests.md", "tables.md")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_reference_page_is_up_to_date(name: str) -> None:
    """To update them: KDECLARE_UPDATE_GOLDEN=1, or python -m scripts.reference."""
    text = pages()[name]
    if os.environ.get("KDECLARE_UPDATE_GOLDEN"):
        (FOLDER / name).write_text(text, encoding="utf-8")
    assert text == (FOLDER / name).read_text(encoding="utf-8")


def test_reference_folder_has_no_other_pages() -> None:
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(pages()) == sorted(NAMES)


def test_reference_covers_all_names() -> None:
    found = pages()
    assert all(f"\n### {name}\n" in found["library.md"] for name in api.__all__)
    assert all(f"\n## {kind}\n" in found["manifests.md"] for kind in list_schema_kinds())
    assert all(f"| `{int(code)}` |" in found["exit-codes.md"] for code in ExitCode)
    assert set(re.findall(r"\n## (\S+)\n", found["documents.md"])) == set(PRINTED_BY)
    for words in ("plan", "topic create", "fleet audit", "connect worker-config patch", "sandbox start"):
        assert f"\n### kdeclare {words}\n" in found["cli.md"]
