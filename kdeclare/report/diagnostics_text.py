"""Diagnostics for people: what is wrong, where, and what to do."""

from collections import Counter
from collections.abc import Iterable

from kdeclare.core.diagnostics import Diagnostic, Severity, in_order
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, listed, plural

FOLD = 20
"""How many diagnostics of one code are shown in full; of more, half as many and a count."""


def diagnostics_text(diagnostics: Iterable[Diagnostic], style: Style = PLAIN, fold: int = FOLD) -> str:
    """One paragraph a diagnostic, errors first; empty when there are none."""
    items = in_order(diagnostics)
    totals = Counter((d.severity, d.code) for d in items)
    shown: Counter[tuple[Severity, str]] = Counter()
    lines: list[str] = []
    for item in items:
        kind = (item.severity, item.code)
        if totals[kind] > fold and shown[kind] >= fold // 2:
            continue
        shown[kind] += 1
        lines += _lines(item, style)
        rest = totals[kind] - shown[kind]
        if totals[kind] > fold and shown[kind] == fold // 2:
            lines.append(style.dim(f"  … and {rest:,} more of the same ({item.code})"))
    return "".join(f"{line}\n" for line in lines)


def tally(diagnostics: Iterable[Diagnostic]) -> str:
    """``2 errors, 1 denial, 1 warning``; empty when there is none of them."""
    counts = Counter(d.severity for d in diagnostics)
    words = {Severity.ERROR: "error", Severity.DENIED: "denial", Severity.WARNING: "warning"}
    return listed(plural(counts[s], word) for s, word in words.items() if counts[s])


def _lines(item: Diagnostic, style: Style) -> list[str]:
    paint = {Severity.WARNING: style.yellow, Severity.INFO: style.cyan}.get(item.severity, style.red)
    label = paint(f"{item.severity.value}:")
    lines = [f"{label} {style.bold(clean(item.summary))}"]
    place = " · ".join(clean(str(part)) for part in (item.place, item.resource) if part)
    if place:
        lines.append(style.dim(f"  {place}"))
    lines += [f"  {clean(line)}" for line in item.detail.splitlines()]
    if item.hint:
        first, *more = item.hint.splitlines()
        lines.append(f"  {style.cyan('hint:')} {clean(first)}")
        lines += [f"        {clean(line)}" for line in more]
    return lines
