"""Self-contained HTML pages, which load nothing from the network or from other files.

The templates, style sheets and scripts are in the folder ``pages``. Data is embedded as JSON. The scripts
insert names and values only as text, because data from clusters and files must never be interpreted as HTML.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

_UNSAFE_CHARACTERS = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
"""JSON escapes for characters that are not safe in the data of an inline ``<script>`` element."""


@dataclass(slots=True)
class StringTable:
    """The strings of a page. The page contains each string once, and its data refers to strings by index."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int:
        """Return the index of a string, and add the string if it is new. Return -1 for None."""
        return -1 if text is None else self.places.setdefault(text, len(self.places))


def render_html_page(
    name: str,
    scripts: Sequence[str],
    title: str,
    headline: str,
    data: object,
    parts: Mapping[str, str] | None = None,
) -> str:
    """Render the page ``pages/NAME.html`` with its style sheet and scripts.

    scripts: the names of the script files to run after ``page.js``, the script that all pages share.
    data: the data for the scripts, as dicts, lists and scalars.
    parts: the HTML for the other placeholders of the template. It must work without scripts, and text in it
        must be escaped.
    """
    style = _read_part("page.css") + _read_part(f"{name}.css")
    script = f'(() => {{\n"use strict";\n{"".join(map(_read_part, ("page.js", *scripts)))}}})();\n'
    return Template(_read_part(f"{name}.html")).substitute(
        parts or {},
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
    """Return the hash that allows an inline script or style in a Content-Security-Policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _read_part(name: str) -> str:
    return files("kdeclare.report").joinpath("pages", name).read_text(encoding="utf-8")
