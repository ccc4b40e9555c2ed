"""A page of a browser, for tests."""

from pathlib import Path

from playwright.sync_api import Page


class WatchedPage:
    """A page, with its forbidden log messages and requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.messages.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def clear(self, width: int, height: int) -> None:
        """Leave the page of the last test, forget its log, and set the size (in pixels) and light colors."""
        self.page.goto("about:blank")
        self.page.emulate_media(media="screen", color_scheme="light")
        self.resize(width, height)
        self.messages.clear()
        self.requests.clear()

    def open(self, file: Path, hash_: str = "") -> Page:
        """Open a file, with the state in the URL's fragment."""
        self.page.goto(f"{file.as_uri()}{hash_}")
        return self.page

    def resize(self, width: int, height: int) -> None:
        """Give the window this size, in CSS pixels."""
        self.page.set_viewport_size({"width": width, "height": height})

    def list_labels(self) -> list[str]:
        """Return the labels of the listed findings, in order."""
        labels: list[str] = self.page.eval_on_selector_all(
            ".toggle", "all => all.map(one => one.getAttribute('aria-label'))"
        )
        return labels

    def read_cells(self, column: str) -> list[str]:
        """Return the texts of a column of the list, in order."""
        return self.page.locator(f"tr.finding .c-{column}").all_inner_texts()

    def read_count(self) -> str:
        """Return the page's text about the number of listed rows."""
        return self.page.locator("#count").inner_text()


def find_weak_texts(page: Page) -> list[str]:
    """Return the texts with less contrast than WCAG AA requires, 4.5 to 1."""
    found: list[str] = page.evaluate(_CONTRAST)
    return found


def find_truncated_texts(page: Page) -> list[str]:
    """Return the texts that their elements cut off at the right."""
    found: list[str] = page.evaluate(_TRUNCATED)
    return found


_TRUNCATED = """() => [...document.querySelectorAll("main *, header *")].filter((one) => {
  const style = getComputedStyle(one);
  return one.checkVisibility() && style.overflowX === "hidden" && one.tagName !== "SELECT"
    && style.clipPath === "none" // otherwise it is only for screen readers
    && one.scrollWidth > one.clientWidth + 1;
}).map((one) => one.textContent)"""

_CONTRAST = """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !one.checkVisibility() || one.closest(":disabled, svg, script, noscript")) continue;
    const [a, b] = [light(rgb(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push(`${one.className}: ${one.textContent}`);
  }
  return weak;
}"""
