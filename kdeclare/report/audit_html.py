"""An audit as one HTML page that needs nothing else: no network, no other file.

The page's own parts are in ``pages``; the data stands in it as JSON, which its script shows as text.
"""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from kdeclare.fleet.summary import Audit
from kdeclare.report.audit_page_data import page_data
from kdeclare.report.audit_words import headline
from kdeclare.report.values import clean

_SCRIPTS = ("audit_data.js", "audit_charts.js", "audit_rows.js", "audit.js")
_UNSAFE = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
"""What could end a script, or begin a comment in one, as JSON can say it otherwise."""


def audit_html(audit: Audit) -> str:
    """The whole page; some 0.3 kB a finding. What secrets left as hashes is not in it."""
    style = _part("audit.css")
    script = f'(() => {{\n"use strict";\n{"".join(map(_part, _SCRIPTS))}}})();\n'
    return Template(_part("audit.html")).substitute(
        title=escape(clean(f"{audit.summary.fleet}: audit {audit.summary.audit_id}")),
        headline=escape(headline(audit.summary, tallied=False)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=_embedded(page_data(audit)),
    )


def _embedded(data: object) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def _hash(text: str) -> str:
    """As a Content-Security-Policy names what may run."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _part(name: str) -> str:
    return files("kdeclare.report").joinpath("pages", name).read_text(encoding="utf-8")
