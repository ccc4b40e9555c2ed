"""One HTML page that needs nothing else: no network, no other file.

The parts of the pages are in ``pages``; what they show stands in them as JSON, which their scripts show as
text. Names and values come from clusters and files of others, and none of them is ever markup.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

_UNSAFE_CHARACTERS = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
"""What could end a script, or begin a comment in one, as JSON can say it otherwise."""


@dataclass(slots=True)
class StringTable:
    """Texts by the order in which they were first asked for: a page embeds every text once."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int:
        """Where a text stands; -1 stands for none."""
        return -1 if text is None else self.places.setdefault(text, len(self.places))


def render_html_page(name: str, scripts: Sequence[str], title: str, headline: str, data: object) -> str:
    """The page ``pages/NAME.html`` with its style sheet and scripts.

    scripts: the files, after the one that all pages share. data: what they read, JSON-able.
    """
    style = _read_part("page.css") + _read_part(f"{name}.css")
    script = f'(() => {{\n"use strict";\n{"".join(map(_read_part, ("page.js", *scripts)))}}})();\n'
    return Template(_read_part(f"{name}.html")).substitute(
        title=escape(title),
        headline=escape(headline),
        style=style,
        style_hash=_hash_for_csp(style),
        script=script,
        script_hash=_hash_for_csp(script),
        data=_dump_embedded_json(data),
    )


def _dump_embedded_json(data: object) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_UNSAFE_CHARACTERS)


def _hash_for_csp(text: str) -> str:
    """As a Content-Security-Policy names what may run."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _read_part(name: str) -> str:
    return files("kdeclare.report").joinpath("pages", name).read_text(encoding="utf-8")
