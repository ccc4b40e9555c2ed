"""What policies said, for people: one line a verdict, and how many of them there were."""

from collections.abc import Iterable, Sequence

from kdeclare.core.changes import Reason
from kdeclare.core.plan import SYSTEM_POLICY, Plan, Verdict, VerdictOutcome
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, plural

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
