"""Pictures of pages for the docs; the test that takes a picture checks the page in that theme and width."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.browser.watched import WatchedPage

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
MOST_BYTES = 250_000
_BACKGROUNDS = {"light": "rgb(244, 245, 247)", "dark": "rgb(13, 16, 20)"}


@dataclass(frozen=True)
class Picture:
    """One picture. width, height: in CSS pixels. link: the state of the page. opened: the label of a row."""

    name: str
    width: int
    height: int
    scheme: Literal["light", "dark"] = "light"
    link: str = ""
    opened: str | None = None


def take_picture(desktop: WatchedPage, page_file: Path, picture: Picture) -> None:
    """Open a page as in the picture; it fits the window, has the theme, and logs no errors.

    KDECLARE_UPDATE_GOLDEN=1 writes the picture into the docs.
    """
    desktop.resize(picture.width, picture.height)
    desktop.page.emulate_media(color_scheme=picture.scheme)
    page = desktop.open(page_file, picture.link)
    if picture.opened:
        page.locator(".toggle").and_(page.get_by_role("button", name=picture.opened)).click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == _BACKGROUNDS[picture.scheme]
    assert page.evaluate("document.documentElement.scrollWidth") == picture.width
    image = page.screenshot()
    assert desktop.messages == []
    if os.environ.get("KDECLARE_UPDATE_GOLDEN"):
        # only here, because the size also depends on the fonts of a machine
        assert len(image) < MOST_BYTES, f"{picture.name} has {len(image):,} bytes"
        (FOLDER / f"{picture.name}.png").write_bytes(image)
