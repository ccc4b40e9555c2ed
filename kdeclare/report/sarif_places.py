"""Places in files as SARIF locations."""

import os.path
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from kdeclare.core.diagnostics import Place

ROOT = "%SRCROOT%"
"""What relative paths are relative to: the top of the checkout, as hosts of code understand it."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where places are. root: the top of the checkout; folder: what they are relative to. Both absolute.

    project: the project file, if it is known, absolute or relative to the folder; what has no place of its
    own is shown there.
    """

    root: str = ""
    folder: str = ""
    project: str = ""


NO_CHECKOUT = Checkout()
"""Places are relative to the top already."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a result is shown. uri: relative to the root, or absolute for what lies elsewhere."""

    uri: str
    line: int
    column: int

    def document(self) -> dict[str, Any]:
        """As SARIF has it (sections 3.28, 3.29 and 3.30)."""
        artifact = {"uri": self.uri}
        if not self.uri.startswith("file:"):
            artifact["uriBaseId"] = ROOT
        physical: dict[str, Any] = {"artifactLocation": artifact}
        if self.line >= 1:
            physical["region"] = {"startLine": self.line, "startColumn": max(self.column, 1)}
        return {"physicalLocation": physical}


def location(place: Place | None, checkout: Checkout) -> Location | None:
    """The location; None without a place, or where its file has no name."""
    if place is None or not place.file:
        return None
    path = PurePath(os.path.normpath(PurePath(checkout.folder, place.file)))
    if checkout.root and path.is_relative_to(checkout.root):
        path = path.relative_to(checkout.root)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/")
    return Location(uri, place.line, place.column)
