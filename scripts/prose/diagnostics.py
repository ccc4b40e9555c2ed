"""The form of diagnostics: a constant summary without a period, and a hint that starts with a verb."""

import ast
import re
from collections.abc import Iterator

from scripts.prose.texts import ROOT, expand, find_diagnostics, render

IMPERATIVES = frozenset(
    """
    add adjust adopt allow apply approve ask assign authorize avoid begin bring build call cancel change
    check choose clean close combine commit compare configure connect consider contact convert copy
    correct create decide declare define delete deploy describe divide download drop edit enable end
    ensure exclude export extend fill find fix follow format free generate get give go grant group host
    import include increase inherit install keep leave let limit list load lock look lower make mark
    match merge migrate mount move name need omit open order package pass pick pin plan point prefer
    prepare print protect provide publish put quit quote raise re-run read reconnect recreate reduce
    refer register release remove rename repeat replace report request rerun reset resolve restart
    restore restrict retry review rewrite roll run save schedule see select send separate set shorten
    show sign sort specify split start state stop store supply swap switch sync take tell test transfer
    trust try turn type undo uninstall unlock unset update upgrade use validate verify view wait write
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
    if text and not text[0].isupper() and "." not in text.split()[0]:  # a config key may come first
        return f"summary starts with a small letter: {text}"
    return None


def _check_hint(hint: ast.expr) -> str | None:
    text = render(hint)
    if not text or text.startswith("{}"):
        return None  # made elsewhere: checked there, or a command line
    words = re.findall(r"[A-Za-z'-]+", text)
    if not words:
        return f"hint has no words: {text}"
    first = words[0].lower()
    if text.startswith("Did you mean "):
        return None  # how Git and Terraform suggest a name
    if first in IMPERATIVES or (first in {"do"} and words[1:2] == ["not"]):
        return None
    if first in ADVERBS and any(word.lower() in IMPERATIVES for word in words[1:]):
        return None
    return f"hint does not start with a verb: {text}"
