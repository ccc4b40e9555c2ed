"""Read an HTML page without a browser."""

import json
from html.parser import HTMLParser

from tests.jsontypes import Json


class Reader(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data

    @property
    def data(self) -> Json:
        """The data embedded in the page."""
        return json.loads(self.scripts[0])


class ElementReader(HTMLParser):
    """The texts of all elements of a page with one tag, each with the class of the element."""

    def __init__(self, tag: str, text: str) -> None:
        super().__init__()
        self.tag = tag
        self.found: list[tuple[str, str]] = []
        self.depth = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == self.tag:
            self.depth += 1
            self.found.append((dict(attrs).get("class") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == self.tag

    def handle_data(self, data: str) -> None:
        if self.depth:
            name, text = self.found.pop()
            self.found.append((name, text + data))
