"""Render diagnostics and policy verdicts as text."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kdeclare.core.diagnostics import Diagnostic, Severity, sort_diagnostics
from kdeclare.core.plans.plan import SYSTEM_POLICY, Plan, Verdict, VerdictOutcome
from kdeclare.core.provider.provider_queries import find_guards
from kdeclare.core.resources.changes import Reason
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, join_nonempty, sanitize_for_terminal

FOLD_LIMIT = 20
"""The maximum number of diagnostics with the same code that are shown in full.

If there are more, half of this number is shown, and the rest are only counted.
"""


def render_diagnostics(
    diagnostics: Iterable[Diagnostic], style: Style = PLAIN, fold: int = FOLD_LIMIT
) -> str:
    """Render one paragraph per diagnostic, errors first. If there are no diagnostics, return an empty string.

    fold: the maximum number of diagnostics with the same severity and code. If there are more, half of this
        number is rendered, and the rest are only counted.
    """
    sorted_diagnostics = sort_diagnostics(diagnostics)
    totals = Counter((d.severity, d.code) for d in sorted_diagnostics)
    shown_counts: Counter[tuple[Severity, str]] = Counter()
    lines: list[str] = []
    for item in sorted_diagnostics:
        group = (item.severity, item.code)
        if totals[group] > fold and shown_counts[group] >= fold // 2:
            continue
        shown_counts[group] += 1
        lines += _render_diagnostic(item, style)
        hidden_count = totals[group] - shown_counts[group]
        if totals[group] > fold and shown_counts[group] == fold // 2:
            lines.append(style.dim(f"  … and {hidden_count:,} more of the same ({item.code})"))
    return "".join(f"{line}\n" for line in lines)


def format_severity_counts(diagnostics: Iterable[Diagnostic]) -> str:
    """Format the number of diagnostics by severity, such as ``2 errors, 1 warning``; empty if all are 0."""
    counts = Counter(d.severity for d in diagnostics)
    nouns = {Severity.ERROR: "error", Severity.DENIED: "denial", Severity.WARNING: "warning"}
    return join_nonempty(format_count(counts[s], word) for s, word in nouns.items() if counts[s])


def _render_diagnostic(diagnostic: Diagnostic, style: Style) -> list[str]:
    paint = {Severity.WARNING: style.yellow, Severity.INFO: style.cyan}.get(diagnostic.severity, style.red)
    label = paint(f"{diagnostic.severity.value}:")
    lines = [f"{label} {style.bold(sanitize_for_terminal(diagnostic.summary))}"]
    location = " · ".join(
        sanitize_for_terminal(str(part)) for part in (diagnostic.place, diagnostic.resource) if part
    )
    if location:
        lines.append(style.dim(f"  {location}"))
    lines += [f"  {sanitize_for_terminal(line)}" for line in diagnostic.detail.splitlines()]
    if diagnostic.hint:
        first, *more_lines = diagnostic.hint.splitlines()
        lines.append(f"  {style.cyan('hint:')} {sanitize_for_terminal(first)}")
        lines += [f"        {sanitize_for_terminal(line)}" for line in more_lines]
    return lines


_OVERRIDE_HINT = (
    "ask the owners of the policy, or pass --override-policy NAME --reason TEXT (the override is recorded)."
)
_ASK_OWNER_HINT = f"{_OVERRIDE_HINT[0].upper()}{_OVERRIDE_HINT[1:]}"
DENIAL_HINT = f"Change the manifest, {_OVERRIDE_HINT}"
"""The hint for a denial by a policy of the project."""

_MAX_VERDICTS = 20
_VERDICT_LABELS = ("denied", "overridden", "warned")


def select_notable_verdicts(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the denials, then the overridden denials, then the warnings."""
    notable = (v for v in verdicts if v.outcome is not VerdictOutcome.ALLOW)
    return sorted(notable, key=lambda v: _VERDICT_LABELS.index(get_verdict_label(v)))


def get_verdict_label(verdict: Verdict) -> str:
    """Return the word for a verdict: ``denied``, ``warned`` or ``overridden``."""
    if verdict.override is not None:
        return "overridden"
    return "denied" if verdict.is_denial else "warned"


def is_system_verdict(verdict: Verdict) -> bool:
    """Whether the verdict comes from a broker policy. Such a verdict cannot be overridden."""
    return verdict.policy == SYSTEM_POLICY


def is_project_verdict(verdict: Verdict) -> bool:
    """Whether the verdict comes from a policy of the project, not from the brokers or from a guard."""
    return not is_system_verdict(verdict) and verdict.policy not in find_guards()


def has_overridable_denial(verdicts: Iterable[Verdict]) -> bool:
    """Whether a policy of the project denied a change. Denials by broker policies and guards do not count."""
    return any(v.is_denial and is_project_verdict(v) for v in verdicts)


def find_policy_noun(verdict: Verdict) -> str:
    """Return the noun for the source of a verdict: ``policy`` or ``guard``."""
    return "guard" if verdict.policy in find_guards() else "policy"


def find_denial_hint(plan: Plan) -> str:
    """Return the hints for the denials of a plan; empty if there are none.

    The hint about policies that can be overridden suggests changing the manifest, unless the denied changes
    are ad hoc changes or a rollback.
    """
    guards = find_guards()
    hints = dict.fromkeys(guards[v.policy] for v in plan.verdicts if v.is_denial and v.policy in guards)
    return " ".join(filter(None, (_find_policy_hint(plan), *hints)))


def _find_policy_hint(plan: Plan) -> str:
    if not has_overridable_denial(plan.verdicts):
        return ""
    denied_resources = {v.resource for v in plan.verdicts if v.is_denial}
    reasons = {change.reason for change in plan.changes if str(change.id) in denied_resources}
    return _ASK_OWNER_HINT if plan.undoes or reasons == {Reason.ASKED} else DENIAL_HINT


def render_verdict_lines(
    verdicts: Sequence[Verdict], style: Style = PLAIN, with_resource: bool = False
) -> list[str]:
    """Render one line per verdict. The reason for an override is on the next line.

    If there are too many verdicts, the last line contains the number of omitted verdicts.

    with_resource: whether the line of a verdict begins with the evaluated resource.
    """
    lines = []
    for verdict in verdicts[:_MAX_VERDICTS]:
        prefix = f"{sanitize_for_terminal(verdict.resource)}: " if with_resource else ""
        first, *more_lines = [sanitize_for_terminal(line) for line in verdict.message.splitlines()] or [""]
        lines.append(f"{prefix}{_format_verdict(verdict, style)}{f': {first}' if first else ''}")
        lines += [f"  {line}" for line in more_lines]
        if verdict.override is not None:
            lines.append(f"  {style.cyan('reason:')} {sanitize_for_terminal(verdict.override)}")
    if len(verdicts) > _MAX_VERDICTS:
        lines.append(style.dim(f"… and {format_count(len(verdicts) - _MAX_VERDICTS, 'more verdict')}"))
    return lines


def format_policy_counts(verdicts: Iterable[Verdict]) -> str:
    """Format the number of evaluated policies, and the number of verdicts with each outcome.

    Return an empty string if no policy of the project returned a verdict.

    Broker policies and guards are not counted: they report only their denials, so it is not known how often
    they were evaluated.
    """
    policy_verdicts = [v for v in verdicts if is_project_verdict(v)]
    if not policy_verdicts:
        return ""
    policy_count = len({v.policy for v in policy_verdicts})
    outcomes = Counter("overridden" if v.override is not None else v.outcome.value for v in policy_verdicts)
    counts = join_nonempty(
        f"{outcomes[outcome]:,} {outcome}" if outcomes[outcome] else ""
        for outcome in ("allow", "warn", "overridden", "deny")
    )
    return f"Policies: {policy_count:,} evaluated. Verdicts: {counts}."


def render_policies(
    verdicts: Sequence[Verdict], shown_verdicts: Sequence[Verdict], style: Style = PLAIN, hint: str = ""
) -> str:
    """Render the policy counts of all verdicts, and one line for each shown verdict.

    hint: the hint for denials (see `find_denial_hint`).
    """
    lines = render_verdict_lines(shown_verdicts, style, with_resource=True)
    if hint:
        lines.append(f"{style.cyan('hint:')} {hint}")
    title = format_policy_counts(verdicts) or ("Policies:" if lines else "")
    return "".join(f"{line}\n" for line in [title, *(f"  {line}" for line in lines)]) if title else ""


def _format_verdict(verdict: Verdict, style: Style) -> str:
    paint = style.red if verdict.is_denial else style.yellow
    preposition = "" if verdict.override is not None else "by "
    policy = (
        "a broker policy"
        if is_system_verdict(verdict)
        else f"{find_policy_noun(verdict)} {sanitize_for_terminal(verdict.policy)}"
    )
    subject = (
        f" on {sanitize_for_terminal(format_subject(verdict.topic))}" if verdict.topic is not None else ""
    )
    return f"{paint(get_verdict_label(verdict))} {preposition}{policy}{subject}"


def format_subject(subject: str) -> str:
    """Return ``topic NAME`` for the name of a topic. Return the id of any other resource unchanged."""
    return subject if "/" in subject else f"topic {subject}"
