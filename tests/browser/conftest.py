"""A real Chromium, once a session; tests that need it are skipped where there is none."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.watched import Watched

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser. Any test may skip it, none may change it."""
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGS))
        yield browser
        browser.close()


@pytest.fixture
def desktop(chromium: Browser) -> Iterator[Watched]:
    """A wide window; the test ends with nothing said on its console and nothing asked of the network."""
    context = chromium.new_context(viewport={"width": 1440, "height": 1000}, color_scheme="light")
    watched = Watched(context.new_page())
    yield watched
    context.close()
    assert watched.said == []
    assert [url for url in watched.asked if not url.startswith(("file:", "data:"))] == []
