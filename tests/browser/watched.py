"""A page of a browser as a test uses it."""

from pathlib import Path

from playwright.sync_api import Page


class Watched:
    """A page, and what it said and asked for that it must not."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, file: Path, hash_: str = "") -> Page:
        """The page of a file, with the state of a link."""
        self.page.goto(f"{file.as_uri()}{hash_}")
        return self.page

    def shown(self) -> list[str]:
        """The labels of the findings that are listed now, in order."""
        labels: list[str] = self.page.eval_on_selector_all(
            ".toggle", "all => all.map(one => one.getAttribute('aria-label'))"
        )
        return labels

    def cells(self, column: str) -> list[str]:
        """The texts of a column of the list, in order."""
        return self.page.locator(f"tr.finding .c-{column}").all_inner_texts()

    def count(self) -> str:
        """What the page says of how many it lists."""
        return self.page.locator("#count").inner_text()
