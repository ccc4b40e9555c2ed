"""Measure the scrolling of a page in headless Chromium: frames, and main-thread time per frame."""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

_SECONDS = 10
"""The maximum duration of one measurement, in seconds."""

_SCROLL = """([speed, seconds]) => new Promise((done) => {
  const frames = [];
  let begun = null, before = null, still = 0;
  const frame = (now) => {
    if (before !== null) frames.push(now - before);
    begun ??= now;
    const was = scrollY;
    if (before !== null) scrollBy({ top: speed * (now - before) / 1000, behavior: "instant" });
    still = scrollY === was ? still + 1 : 0;
    before = now;
    if (still > 30 || now - begun > seconds * 1000) done(frames.slice(0, frames.length - still));
    else requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""
"""A JavaScript function that returns the milliseconds between frames while the page scrolls."""


@dataclass(frozen=True, slots=True)
class Scrolled:
    """The result of scrolling. most_ms: the time that 95 % of the frames do not exceed."""

    frames_per_second: float
    most_ms: float
    main_thread_ms: float


@contextmanager
def browser(executable: str) -> Iterator[Browser]:
    """Yield a headless browser."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable)
        try:
            yield opened
        finally:
            opened.close()


def scrolled(chromium: Browser, html: str, width: int, speed: int) -> Scrolled:
    """Scroll a page of ``width`` CSS pixels from its top at ``speed`` pixels per second."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(html, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": 900})
        page = context.new_page()
        page.goto(file.as_uri())
        session = context.new_cdp_session(page)
        session.send("Performance.enable")
        before = _busy(session)
        frames: list[float] = page.evaluate(_SCROLL, [speed, _SECONDS])
        if page.evaluate("scrollY") < speed:
            raise RuntimeError("The page did not scroll for a second.")
        busy = _busy(session) - before
        context.close()
    most = statistics.quantiles(frames, n=20)[-1]
    return Scrolled(1000 * len(frames) / sum(frames), most, busy * 1000 / len(frames))


def _busy(session: Any) -> float:
    """Return the seconds that the page's main thread was busy."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))
