"""The form of diagnostics: a constant summary without a period, and a hint that starts with a verb."""

import ast
import re
from collections.abc import Iterator

from scripts.prose.texts import ROOT, expand, find_diagnostics, render

IMPERATIVES = frozenset(
    """
    add adjust adopt allow apply ask begin bring check choose clean close combine compare configure
    connect contact copy correct create declare define delete describe divide drop edit enable end
    ensure export fill find fix follow free generate give go grant import increase install keep leave
    let limit list load look lower make mark match merge move name omit open pass pick pin plan provide
    put quote raise read reduce refer release remove rename repeat replace report rerun reset resolve
    restart restore restrict retry review rewrite roll run save see select send separate set shorten
    show specify split start state stop store swap switch test try turn undo unlock unset update upgrade
    use validate verify wait write
    """.split()  # noqa: SIM905
)
ADVERBS = frozenset(
    {"either", "first", "then", "if", "to", "for", "after", "before", "once", "in", "on", "with"}
)
"""A clause may come before the verb: "If the topic is new, declare …"."""


def check_diagnostics() -> Iterator[str]:
    """Yield the diagnostics in the code whose summary or hint has another form, as ``file:line: problem``."""
    for file in sorted((ROOT / "kdeclare").rglob("*.py")):
        tree = ast.parse(file.read_text())
        for call in find_diagnostics(tree):
            place = f"{file.relative_to(ROOT)}:{call.line}"
            for summary in expand(call.summary, tree, call.scope) if call.summary is not None else ():
                if problem := _check_summary(summary):
                    yield f"{place}: {problem}"
            for hint in expand(call.hint, tree, call.scope) if call.hint is not None else ():
                if problem := _check_hint(hint):
                    yield f"{place}: {problem}"


def _check_summary(summary: ast.expr) -> str | None:
    text = render(summary)
    if isinstance(summary, ast.JoinedStr) or "{}" in text:
        return f"summary has values in it: {text}"
    if text.endswith("."):
        return f"summary ends with a period: {text}"
    if text and not text[0].isupper():
        return f"summary starts with a small letter: {text}"
    return None


def _check_hint(hint: ast.expr) -> str | None:
    text = render(hint)
    if not text or text.startswith("{}"):
        return None  # made elsewhere: checked there, or a command line
    words = re.findall(r"[A-Za-z']+", text)
    if not words:
        return f"hint has no words: {text}"
    first = words[0].lower()
    if first in IMPERATIVES or (first in {"do"} and words[1:2] == ["not"]):
        return None
    if first in ADVERBS and any(word.lower() in IMPERATIVES for word in words[1:]):
        return None
    return f"hint does not start with a verb: {text}"
