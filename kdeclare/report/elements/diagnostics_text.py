"""Diagnostics and the verdicts of policies, for people."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kdeclare.core.diagnostics import Diagnostic, Severity, in_order
from kdeclare.core.plans.plan import SYSTEM_POLICY, Plan, Verdict, VerdictOutcome
from kdeclare.core.resources.changes import Reason
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, listed, plural

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


_ASK = "ask those who keep the policy; --override-policy NAME --reason TEXT overrides it and is recorded"
HINT = f"change the manifest, or {_ASK}"
"""What to do about a denial by a policy of the project."""

_MANY = 20
_JUDGEMENTS = ("denied", "overridden", "warned")


def spoken(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that say more than yes: denials first, then what was overridden, then warnings."""
    found = (v for v in verdicts if v.outcome is not VerdictOutcome.ALLOW)
    return sorted(found, key=lambda v: _JUDGEMENTS.index(judgement(v)))


def judgement(verdict: Verdict) -> str:
    """``denied``, ``warned`` or ``overridden``."""
    if verdict.override is not None:
        return "overridden"
    return "denied" if verdict.denies else "warned"


def is_brokers(verdict: Verdict) -> bool:
    """Whether it is of a policy that the brokers are configured with: that one nobody overrides."""
    return verdict.policy == SYSTEM_POLICY


def is_open_to_override(verdicts: Iterable[Verdict]) -> bool:
    """Whether a policy of the project denied something."""
    return any(v.denies and not is_brokers(v) for v in verdicts)


def hint_of(plan: Plan) -> str:
    """What to do about the denials of a plan; empty where there is none that can be overridden.

    Of a rollback, and of what a command itself asks for, no manifest says anything.
    """
    if not is_open_to_override(plan.verdicts):
        return ""
    denied = {v.resource for v in plan.verdicts if v.denies}
    reasons = {change.reason for change in plan.changes if str(change.id) in denied}
    return _ASK if plan.undoes or reasons == {Reason.ASKED} else HINT


def verdict_lines(verdicts: Sequence[Verdict], style: Style = PLAIN, resource: bool = False) -> list[str]:
    """A line each, and one with the reason of an override; of very many, some and a count.

    resource: whether a line begins with what was judged.
    """
    lines = []
    for verdict in verdicts[:_MANY]:
        name = f"{clean(verdict.resource)}: " if resource else ""
        first, *more = [clean(line) for line in verdict.message.splitlines()] or [""]
        lines.append(f"{name}{_who(verdict, style)}{f': {first}' if first else ''}")
        lines += [f"  {line}" for line in more]
        if verdict.override is not None:
            lines.append(f"  {style.cyan('reason:')} {clean(verdict.override)}")
    if len(verdicts) > _MANY:
        lines.append(style.dim(f"… and {plural(len(verdicts) - _MANY, 'more verdict')}"))
    return lines


def policies_line(verdicts: Iterable[Verdict]) -> str:
    """``Policies: 5 asked, 12 of 14 verdicts allow.``; empty where none of the project was asked.

    The brokers' own policies are not counted: nobody is told what they allow.
    """
    found = [v for v in verdicts if not is_brokers(v)]
    if not found:
        return ""
    asked = len({v.policy for v in found})
    allow = len(found) - len(spoken(found))
    words = "verdict allows" if allow == len(found) == 1 else "verdicts allow"
    return f"Policies: {asked:,} asked, {allow:,} of {len(found):,} {words}."


def policies_text(
    verdicts: Sequence[Verdict], shown: Sequence[Verdict], style: Style = PLAIN, hint: str = ""
) -> str:
    """How many of all ``verdicts`` allow, and those of ``shown`` with what they are about.

    hint: what to do about a denial, see `hint_of`.
    """
    lines = verdict_lines(shown, style, resource=True)
    if hint:
        lines.append(f"{style.cyan('hint:')} {hint}")
    title = policies_line(verdicts) or ("Policies:" if lines else "")
    return "".join(f"{line}\n" for line in [title, *(f"  {line}" for line in lines)]) if title else ""


def _who(verdict: Verdict, style: Style) -> str:
    paint = style.red if verdict.denies else style.yellow
    by = "" if verdict.override is not None else "by "
    policy = "a policy of the brokers" if is_brokers(verdict) else f"policy {clean(verdict.policy)}"
    topic = f" on {clean(name_subject(verdict.topic))}" if verdict.topic is not None else ""
    return f"{paint(judgement(verdict))} {by}{policy}{topic}"


def name_subject(topic: str) -> str:
    """Return what was judged, as a verdict names it: a topic, or ``Kind/name`` of another kind."""
    return topic if "/" in topic else f"topic {topic}"
