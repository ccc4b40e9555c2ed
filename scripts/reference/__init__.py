"""Generate the pages in docs/reference from the code.

`python -m scripts.reference` writes the pages. A test fails if the pages are out of date.
"""

from collections.abc import Mapping
from pathlib import Path

from scripts.reference.commands import commands_page
from scripts.reference.documents import documents_page
from scripts.reference.exits import exits_page
from scripts.reference.library import library_page
from scripts.reference.manifests import manifests_page
from scripts.reference.tables import tables_page

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def pages() -> Mapping[str, str]:
    """Return the text of each page by the name of its file in `FOLDER`."""
    return {
        "cli.md": commands_page(),
        "manifests.md": manifests_page(),
        "exit-codes.md": exits_page(),
        "documents.md": documents_page(),
        "library.md": library_page(),
        "tables.md": tables_page(),
    }
