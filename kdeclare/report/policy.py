"""The results of ``policy check`` and ``policy test`` as text, and as JSON with schemas."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, WithJsonSchema

from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.core.documents import Diagnostics, OneOf, build_document, publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.engine.planning.planfile_schema import SerializedVerdict
from kdeclare.report.elements.diagnostics_text import render_verdict_lines, select_notable_verdicts
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, join_nonempty, sanitize_for_terminal
from kdeclare.report.outcome import Outcome

if TYPE_CHECKING:
    from kdeclare.policy.testing.case_run import CaseResult

_MAX_RESOURCES = 50
_MAX_UNDECIDED = 3
_POLICIES_HINT = "Add policies under 'policies' in the project file, or as manifests of kind Policy."
_OptionalText = Annotated[
    str | None, WithJsonSchema({"type": "string"}), Field(exclude_if=lambda text: text is None)
]
_ExitCode = Annotated[int, Field(description="The exit code of the command.")]


@dataclass(frozen=True, slots=True)
class PolicyCheckView:
    """The results of ``policy check``.

    cluster: the cluster whose live resources were checked. None if manifests were checked, as if their
        resources were created now.
    topics: the number of checked resources of all kinds.
    noun: the word for these resources in messages.
    policies: the names of all policies of the project, including policies that were not evaluated.
    open: pairs of a policy and a resource, if the policy cannot be evaluated for the resource without live
        state.
    places: the positions of the declared resources in the manifests.
    """

    project: str
    env: str
    cluster: str | None
    topics: int
    policies: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    open: tuple[tuple[str, str], ...] = ()
    places: Mapping[str, SourcePosition] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    noun: str = "topic"


@dataclass(frozen=True, slots=True)
class PolicyTestView:
    """The results of ``policy test``, in the order of the test cases in the files."""

    results: tuple["CaseResult", ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def failed(self) -> tuple["CaseResult", ...]:
        """The test cases that failed."""
        return tuple(result for result in self.results if not result.passed)


@dataclass(frozen=True, slots=True)
class PolicyTally:
    """The number of resources that one policy evaluated, denied, warned about, and could not evaluate."""

    schema_name = "PolicyTallyDocument"

    policy: str
    asked: int
    denied: int
    warned: int
    open: int


@dataclass(frozen=True, slots=True)
class CheckedVerdict:
    """A verdict with the position of the resource. The position is null if the resource is not declared."""

    schema_name = "CheckedVerdictDocument"

    policy: str
    resource: str
    outcome: VerdictOutcome
    message: str
    topic: Annotated[
        _OptionalText, Field(description="The evaluated topic, if the resource is not the topic itself.")
    ]
    override: Annotated[
        _OptionalText,
        Field(description="The reason for overriding the policy. If it is set, the outcome is warn."),
    ]
    place: SourcePosition | None


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """A policy that cannot be evaluated for a resource without the live state of a cluster."""

    policy: str
    resource: str


@dataclass(frozen=True, slots=True)
class PolicyCheckDocument:
    """The results of checking resources against policies."""

    outcome: Annotated[str, OneOf("no-policies", "in-order", "warned", "denied")]
    headline: str
    exit_code: _ExitCode
    project: str
    env: str
    cluster: Annotated[
        str | None, Field(description="The cluster whose live resources were checked; null without --live.")
    ]
    topics: Annotated[int, Field(description="The number of checked resources.")]
    against: Annotated[int, Field(description="The number of resources that violate a policy.")]
    policies: tuple[PolicyTally, ...]
    verdicts: tuple[CheckedVerdict, ...]
    open: tuple[OpenDocument, ...]
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True)
class CaseDocument:
    """The result of one test case. ``got`` is null if a policy returned no verdict; see ``problems``."""

    test: Annotated[str, Field(description="The name of the PolicyTest that contains the case.")]
    name: str
    place: SourcePosition
    passed: bool
    expected: VerdictOutcome
    got: VerdictOutcome | None
    verdicts: tuple[SerializedVerdict, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicyTestDocument:
    """The results of running test cases against policies."""

    outcome: Annotated[str, OneOf("passed", "failed")]
    headline: str
    exit_code: _ExitCode
    passed: int
    failed: int
    cases: tuple[CaseDocument, ...]
    diagnostics: Diagnostics


def compute_check_outcome(view: PolicyCheckView) -> Outcome:
    """Return the outcome of a policy check. Its status is no-policies, in-order, warned or denied."""
    denied_resources = {v.resource for v in view.verdicts if v.is_denial}
    if not view.policies:
        return Outcome("no-policies", "The project has no policies.", ExitCode.OK)
    if denied_resources:
        verb = "violates" if len(denied_resources) == 1 else "violate"
        headline = f"{len(denied_resources):,} of {format_count(view.topics, view.noun)} {verb} a policy."
        return Outcome("denied", headline, ExitCode.DENIED)
    if not view.topics:
        return Outcome("in-order", f"There are no {view.noun}s to check.", ExitCode.OK)
    warned_resources = {v.resource for v in view.verdicts if v.outcome is VerdictOutcome.WARN}
    policies = format_count(len(view.policies), "policy", "policies")
    subject = f"All {view.topics:,} {view.noun}s comply" if view.topics > 1 else f"The {view.noun} complies"
    certainty_note = ", as far as the manifests show" if view.open else ""
    warning_note = f", {len(warned_resources):,} with a warning" if warned_resources else ""
    headline = f"{subject} with {policies}{_explain_unused_policies(view)}{warning_note}{certainty_note}."
    return Outcome("warned" if warned_resources else "in-order", headline, ExitCode.OK)


def _explain_unused_policies(view: PolicyCheckView) -> str:
    """Format the number of policies that do not apply to any checked resource, as part of a sentence."""
    unused_count = sum(not row.asked for row in count_by_policy(view))
    if not unused_count:
        return ""
    if unused_count == len(view.policies):
        return " (none of which applies)"
    if view.topics > 1:
        return f" ({unused_count:,} of which {'applies' if unused_count == 1 else 'apply'} to none of them)"
    return f" ({unused_count:,} of which {'does' if unused_count == 1 else 'do'} not apply)"


def render_check_text(view: PolicyCheckView, style: Style = PLAIN, *, show_all: bool = False) -> str:
    """Render the results of a policy check as text.

    show_all: whether to list all resources with verdicts.
    """
    outcome = compute_check_outcome(view)
    if not view.policies:
        return f"{outcome.headline}\n{style.cyan('hint:')} {_POLICIES_HINT}\n"
    paint = style.red if outcome.exit_code is ExitCode.DENIED else style.green
    blocks = [
        f"{paint(outcome.headline)}\n{style.dim(_format_check_scope(view))}\n",
        *_render_resources(view, style, None if show_all else _MAX_RESOURCES),
        _render_tallies(count_by_policy(view), style),
        _render_undecided(view, style),
    ]
    return "\n".join(block for block in blocks if block)


def count_by_policy(view: PolicyCheckView) -> tuple[PolicyTally, ...]:
    """Count the verdicts of each policy. The policies are in the order of the project."""
    evaluated_counts = Counter([v.policy for v in view.verdicts] + [policy for policy, _ in view.open])
    outcome_counts = Counter((v.policy, v.outcome) for v in view.verdicts)
    undecided_counts = Counter(policy for policy, _ in view.open)
    return tuple(
        PolicyTally(
            policy,
            evaluated_counts[policy],
            outcome_counts[policy, VerdictOutcome.DENY],
            outcome_counts[policy, VerdictOutcome.WARN],
            undecided_counts[policy],
        )
        for policy in view.policies
    )


def compute_cases_outcome(view: PolicyTestView) -> Outcome:
    """Return the outcome of the test cases. Its status is passed or failed."""
    case_count, failed_count = len(view.results), len(view.failed)
    counts = [f"{case_count - failed_count:,} passed", f"{failed_count:,} failed" if failed_count else ""]
    headline = f"{format_count(case_count, 'case')}: {join_nonempty(counts)}."
    if failed_count:
        return Outcome("failed", headline, ExitCode.ERROR)
    return Outcome("passed", headline, ExitCode.OK)


def render_cases_text(view: PolicyTestView, style: Style = PLAIN, *, show_all: bool = False) -> str:
    """Render the failed test cases and the counts as text.

    show_all: whether to also show the test cases that passed.
    """
    outcome = compute_cases_outcome(view)
    shown_results = view.results if show_all else view.failed
    lines = [line for result in shown_results for line in _render_case(result, style)]
    paint = style.red if view.failed else style.green
    return "".join(f"{line}\n" for line in (*lines, paint(outcome.headline)))


def _format_check_scope(view: PolicyCheckView) -> str:
    environment = f"{view.project}/{view.env}"
    if view.cluster is None:
        return sanitize_for_terminal(f"{environment}: manifests, as if their {view.noun}s were created now.")
    target = f"{environment} on {view.cluster}" if view.cluster != view.env else environment
    return sanitize_for_terminal(f"{target}: live {view.noun}s of the cluster.")


def _render_resources(view: PolicyCheckView, style: Style, max_resources: int | None) -> Iterator[str]:
    """Render one paragraph per resource with a denial or warning. Denied resources come first."""
    verdicts_by_resource: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in select_notable_verdicts(view.verdicts):
        verdicts_by_resource[verdict.resource].append(verdict)
    for resource, verdicts in list(verdicts_by_resource.items())[:max_resources]:
        position = view.places.get(resource)
        title = style.bold(sanitize_for_terminal(resource)) + (
            f"  {style.dim(sanitize_for_terminal(str(position)))}" if position else ""
        )
        lines = [title, *(f"  {line}" for line in render_verdict_lines(verdicts, style))]
        yield "".join(f"{line}\n" for line in lines)
    if max_resources is not None and len(verdicts_by_resource) > max_resources:
        remaining = format_count(len(verdicts_by_resource) - max_resources, f"more {view.noun}")
        yield style.dim(f"… and {remaining}. Use -v or --format json to see all.") + "\n"


def _render_tallies(rows: Iterable[PolicyTally], style: Style) -> str:
    rows = tuple(rows)
    columns = ["asked", "denied", "warned", *(["open"] if any(row.open for row in rows) else [])]
    titles = [{"asked": "evaluated", "open": "undecided"}.get(name, name) for name in columns]
    cells = [
        [sanitize_for_terminal(row.policy), *(f"{getattr(row, name):,}" for name in columns)] for row in rows
    ]
    table = [["policy", *titles], *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for name, *counts in table:
        numbers = (f"{count:>{width}}" for count, width in zip(counts, widths[1:], strict=True))
        lines.append("  ".join([f"{name:<{widths[0]}}", *numbers]))
    return "".join(f"{line}\n" for line in [style.dim(lines[0]), *lines[1:]])


def _render_undecided(view: PolicyCheckView, style: Style) -> str:
    if not view.open:
        return ""
    by_policy: defaultdict[str, list[str]] = defaultdict(list)
    for policy, resource in view.open:
        by_policy[policy].append(sanitize_for_terminal(resource))
    lines = [style.yellow("Cannot be evaluated without a cluster:")]
    for policy, resources in by_policy.items():
        remaining_count = len(resources) - _MAX_UNDECIDED
        names = ", ".join(resources[:_MAX_UNDECIDED]) + (
            f" and {remaining_count:,} more" if remaining_count > 0 else ""
        )
        lines.append(f"  policy {sanitize_for_terminal(policy)} on {names}")
    hint = f"Pass --live to check the live {view.noun}s, or run 'kdeclare plan' to check the planned changes."
    lines.append(f"{style.cyan('hint:')} {hint}")
    return "".join(f"{line}\n" for line in lines)


def _render_case(result: "CaseResult", style: Style) -> Iterator[str]:
    case = result.case
    position, name = (
        style.dim(f"{sanitize_for_terminal(str(case.place))}:"),
        style.bold(sanitize_for_terminal(case.name)),
    )
    if result.passed:
        yield f"{position} {style.green('passed')} {name}"
        return
    message_note = f" with '{sanitize_for_terminal(case.message)}'" if case.message else ""
    actual = "got no verdict" if result.outcome is None else f"got {result.outcome.value}"
    yield f"{position} {style.red('failed')} {name}: expected {case.expect.value}{message_note}, {actual}"
    yield from (f"  {sanitize_for_terminal(problem)}" for problem in result.problems)
    yield from (f"  {line}" for line in render_verdict_lines(select_notable_verdicts(result.verdicts), style))
    if not result.verdicts and not result.problems:
        if case.policy is None:
            yield "  no policy applies to this case"
        else:
            yield (
                f"  policy {sanitize_for_terminal(case.policy)} does not apply to this case, "
                f"because of the policy's actions or selector"
            )


def build_check_document(view: PolicyCheckView) -> PolicyCheckDocument:
    """Build the JSON document of a policy check (docs/schemas/policy-check.schema.json)."""
    outcome = compute_check_outcome(view)
    return build_document(
        PolicyCheckDocument,
        view,
        outcome=outcome.status,
        headline=outcome.headline,
        exit_code=int(outcome.exit_code),
        against=len({v.resource for v in view.verdicts if v.is_denial}),
        policies=count_by_policy(view),
        verdicts=tuple(
            build_document(CheckedVerdict, verdict, place=view.places.get(verdict.resource))
            for verdict in view.verdicts
        ),
        open=tuple(OpenDocument(policy, resource) for policy, resource in view.open),
    )


def build_cases_document(view: PolicyTestView) -> PolicyTestDocument:
    """Build the JSON document of a policy test (docs/schemas/policy-test.schema.json)."""
    outcome = compute_cases_outcome(view)
    return PolicyTestDocument(
        outcome=outcome.status,
        headline=outcome.headline,
        exit_code=int(outcome.exit_code),
        passed=len(view.results) - len(view.failed),
        failed=len(view.failed),
        cases=tuple(map(_build_case_document, view.results)),
        diagnostics=view.diagnostics,
    )


def _build_case_document(result: "CaseResult") -> CaseDocument:
    case = result.case
    identity = {"test": case.test, "name": case.name, "place": case.place}
    return build_document(CaseDocument, result, **identity, expected=case.expect, got=result.outcome)


def build_policy_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of ``policy check`` and ``policy test``, by document name."""
    return publish_schemas({"policy-check": PolicyCheckDocument, "policy-test": PolicyTestDocument})
