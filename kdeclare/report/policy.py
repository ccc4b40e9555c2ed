"""What ``policy check`` and ``policy test`` found: as text, and as JSON documents with their schemas."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, WithJsonSchema

from kdeclare.core.diagnostics import Diagnostic, Place
from kdeclare.core.documents import Diagnostics, OneOf, describe_as, publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.engine.planning.planfile_schema import ShownVerdict
from kdeclare.report.elements.diagnostics_text import spoken, verdict_lines
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, listed, plural
from kdeclare.report.outcome import Outcome

if TYPE_CHECKING:
    from kdeclare.policy.testing.run import CaseResult

_MANY_TOPICS = 50
_MANY_OPEN = 3
_WHERE = "Policies stand under 'policies' of the project file, or are manifests of kind Policy."
_IfAny = Annotated[
    str | None, WithJsonSchema({"type": "string"}), Field(exclude_if=lambda said: said is None)
]
_ExitCode = Annotated[int, Field(description="The same as the exit status of the process.")]


@dataclass(frozen=True, slots=True)
class PolicyCheckView:
    """What the policies say of resources.

    cluster: whose resources, as they are; None for manifests, as if these were created now.
    topics: how many there are, of all kinds. noun: what they are called. policies: all that are in force,
    whether one was asked or not.
    open: policy and resource, where only a cluster can tell. places: where resources are declared.
    """

    project: str
    env: str
    cluster: str | None
    topics: int
    policies: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    open: tuple[tuple[str, str], ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    noun: str = "topic"


@dataclass(frozen=True, slots=True)
class PolicyTestView:
    """What came of the cases of a policy's author, in the order of the files."""

    results: tuple["CaseResult", ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def failed(self) -> tuple["CaseResult", ...]:
        """Those in which something was not as expected."""
        return tuple(result for result in self.results if not result.passed)


@dataclass(frozen=True, slots=True)
class Tally:
    """One policy: of how many topics it was asked, denied, warned, and could not tell without a cluster."""

    schema_name = "PolicyTallyDocument"

    policy: str
    asked: int
    denied: int
    warned: int
    open: int


@dataclass(frozen=True, slots=True)
class CheckedVerdict:
    """A verdict, and where the topic is declared; null where it is not."""

    schema_name = "CheckedVerdictDocument"

    policy: str
    resource: str
    outcome: VerdictOutcome
    message: str
    topic: Annotated[
        _IfAny, Field(description="The topic that was judged, where the resource is not the topic.")
    ]
    override: Annotated[
        _IfAny, Field(description="The reason given for overriding the policy; outcome is warn.")
    ]
    place: Place | None


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """What only a cluster can tell."""

    policy: str
    resource: str


@dataclass(frozen=True, slots=True)
class PolicyCheckDocument:
    """What the policies say of topics."""

    outcome: Annotated[str, OneOf("no-policies", "in-order", "warned", "denied")]
    headline: str
    exit_code: _ExitCode
    project: str
    env: str
    cluster: Annotated[str | None, Field(description="null where manifests were checked, without --live.")]
    topics: Annotated[int, Field(description="How many were checked.")]
    against: Annotated[int, Field(description="How many of them are denied by a policy.")]
    policies: tuple[Tally, ...]
    verdicts: tuple[CheckedVerdict, ...]
    open: tuple[OpenDocument, ...]
    diagnostics: Diagnostics


@dataclass(frozen=True, slots=True)
class CaseDocument:
    """One case; ``got`` is null where a policy could not say, and ``problems`` say why."""

    test: Annotated[str, Field(description="The name of the PolicyTest that it stands in.")]
    name: str
    place: Place
    passed: bool
    expected: VerdictOutcome
    got: VerdictOutcome | None
    verdicts: tuple[ShownVerdict, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PolicyTestDocument:
    """What came of an author's cases."""

    outcome: Annotated[str, OneOf("passed", "failed")]
    headline: str
    exit_code: _ExitCode
    passed: int
    failed: int
    cases: tuple[CaseDocument, ...]
    diagnostics: Diagnostics


def check_outcome(view: PolicyCheckView) -> Outcome:
    """What a check comes to; its status is no-policies, in-order, warned or denied."""
    against = {v.resource for v in view.verdicts if v.denies}
    if not view.policies:
        return Outcome("no-policies", "There are no policies.", ExitCode.OK)
    if against:
        verb = "is" if len(against) == 1 else "are"
        headline = f"{len(against):,} of {plural(view.topics, view.noun)} {verb} against a policy."
        return Outcome("denied", headline, ExitCode.DENIED)
    if not view.topics:
        return Outcome("in-order", f"There are no {view.noun}s to judge.", ExitCode.OK)
    warned = {v.resource for v in view.verdicts if v.outcome is VerdictOutcome.WARN}
    policies = plural(len(view.policies), "policy", "policies")
    topics = f"All {view.topics:,} {view.noun}s are" if view.topics > 1 else f"The one {view.noun} is"
    far = ", as far as manifests can tell" if view.open else ""
    with_warning = f", {len(warned):,} with a warning" if warned else ""
    headline = f"{topics} in order with {policies}{_idle(view)}{with_warning}{far}."
    return Outcome("warned" if warned else "in-order", headline, ExitCode.OK)


def _idle(view: PolicyCheckView) -> str:
    """That policies, whose selector or actions may be wrong, were asked about no topic."""
    count = sum(not row.asked for row in tallies(view))
    if not count:
        return ""
    if count == len(view.policies):
        return ", asked about none of them" if view.topics > 1 else ", not asked about it"
    return f", {count:,} of them asked about none" if view.topics > 1 else f", {count:,} of them not asked"


def check_text(view: PolicyCheckView, style: Style = PLAIN, *, everything: bool = False) -> str:
    """The whole text. everything: all topics, however many something is said of."""
    outcome = check_outcome(view)
    if not view.policies:
        return f"{outcome.headline}\n{style.cyan('hint:')} {_WHERE}\n"
    paint = style.red if outcome.exit_code is ExitCode.DENIED else style.green
    blocks = [
        f"{paint(outcome.headline)}\n{style.dim(_what(view))}\n",
        *_by_topic(view, style, None if everything else _MANY_TOPICS),
        _table(tallies(view), style),
        _open(view, style),
    ]
    return "\n".join(block for block in blocks if block)


def tallies(view: PolicyCheckView) -> tuple[Tally, ...]:
    """By policy, in the order of the project."""
    asked = Counter([v.policy for v in view.verdicts] + [policy for policy, _ in view.open])
    said = Counter((v.policy, v.outcome) for v in view.verdicts)
    unsaid = Counter(policy for policy, _ in view.open)
    return tuple(
        Tally(
            policy,
            asked[policy],
            said[policy, VerdictOutcome.DENY],
            said[policy, VerdictOutcome.WARN],
            unsaid[policy],
        )
        for policy in view.policies
    )


def cases_outcome(view: PolicyTestView) -> Outcome:
    """What the cases come to: passed or failed."""
    count, failed = len(view.results), len(view.failed)
    counts = [f"{count - failed:,} passed", f"{failed:,} failed" if failed else ""]
    headline = f"{plural(count, 'case')}: {listed(counts)}."
    if failed:
        return Outcome("failed", headline, ExitCode.ERROR)
    return Outcome("passed", headline, ExitCode.OK)


def cases_text(view: PolicyTestView, style: Style = PLAIN, *, everything: bool = False) -> str:
    """What failed, case by case, and how many passed. everything: those that passed as well."""
    outcome = cases_outcome(view)
    shown = view.results if everything else view.failed
    lines = [line for result in shown for line in _case(result, style)]
    paint = style.red if view.failed else style.green
    return "".join(f"{line}\n" for line in (*lines, paint(outcome.headline)))


def _what(view: PolicyCheckView) -> str:
    place = f"{view.project}/{view.env}"
    if view.cluster is None:
        return clean(f"{place}: the manifests, as if their {view.noun}s were created now.")
    where = f"{place} on {view.cluster}" if view.cluster != view.env else place
    return clean(f"{where}: the {view.noun}s of the cluster as they are.")


def _by_topic(view: PolicyCheckView, style: Style, most: int | None) -> Iterator[str]:
    """A paragraph a topic: those that are denied first."""
    said: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in spoken(view.verdicts):
        said[verdict.resource].append(verdict)
    for resource, verdicts in list(said.items())[:most]:
        place = view.places.get(resource)
        title = style.bold(clean(resource)) + (f"  {style.dim(clean(str(place)))}" if place else "")
        lines = [title, *(f"  {line}" for line in verdict_lines(verdicts, style))]
        yield "".join(f"{line}\n" for line in lines)
    if most is not None and len(said) > most:
        rest = plural(len(said) - most, f"more {view.noun}")
        yield style.dim(f"… and {rest}; -v shows all, and so does --format json.") + "\n"


def _table(rows: Iterable[Tally], style: Style) -> str:
    rows = tuple(rows)
    columns = ["asked", "denied", "warned", *(["open"] if any(row.open for row in rows) else [])]
    cells = [[clean(row.policy), *(f"{getattr(row, name):,}" for name in columns)] for row in rows]
    table = [["policy", *columns], *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for name, *counts in table:
        numbers = (f"{count:>{width}}" for count, width in zip(counts, widths[1:], strict=True))
        lines.append("  ".join([f"{name:<{widths[0]}}", *numbers]))
    return "".join(f"{line}\n" for line in [style.dim(lines[0]), *lines[1:]])


def _open(view: PolicyCheckView, style: Style) -> str:
    if not view.open:
        return ""
    by_policy: defaultdict[str, list[str]] = defaultdict(list)
    for policy, resource in view.open:
        by_policy[policy].append(clean(resource))
    lines = [style.yellow("Only a cluster can tell:")]
    for policy, resources in by_policy.items():
        rest = len(resources) - _MANY_OPEN
        names = ", ".join(resources[:_MANY_OPEN]) + (f" and {rest:,} more" if rest > 0 else "")
        lines.append(f"  policy {clean(policy)} on {names}")
    hint = f"--live asks about the {view.noun}s as they are, and kdeclare plan about what would change."
    lines.append(f"{style.cyan('hint:')} {hint}")
    return "".join(f"{line}\n" for line in lines)


def _case(result: "CaseResult", style: Style) -> Iterator[str]:
    case = result.case
    where, name = style.dim(f"{clean(str(case.place))}:"), style.bold(clean(case.name))
    if result.passed:
        yield f"{where} {style.green('passed')} {name}"
        return
    saying = f" saying '{clean(case.message)}'" if case.message else ""
    got = "could not be judged" if result.outcome is None else f"got {result.outcome.value}"
    yield f"{where} {style.red('failed')} {name}: expected {case.expect.value}{saying}, {got}"
    yield from (f"  {clean(problem)}" for problem in result.problems)
    yield from (f"  {line}" for line in verdict_lines(spoken(result.verdicts), style))
    if not result.verdicts and not result.problems:
        if case.policy is None:
            yield "  no policy is asked about this"
        else:
            yield f"  policy {clean(case.policy)} is not asked about this, by its actions or its selector"


def describe_check(view: PolicyCheckView) -> PolicyCheckDocument:
    """Return what the policies say of topics (docs/schemas/policy-check.schema.json)."""
    outcome = check_outcome(view)
    return describe_as(
        PolicyCheckDocument,
        view,
        outcome=outcome.status,
        headline=outcome.headline,
        exit_code=int(outcome.exit_code),
        against=len({v.resource for v in view.verdicts if v.denies}),
        policies=tallies(view),
        verdicts=tuple(
            describe_as(CheckedVerdict, verdict, place=view.places.get(verdict.resource))
            for verdict in view.verdicts
        ),
        open=tuple(OpenDocument(policy, resource) for policy, resource in view.open),
    )


def describe_cases(view: PolicyTestView) -> PolicyTestDocument:
    """Return what came of an author's cases (docs/schemas/policy-test.schema.json)."""
    outcome = cases_outcome(view)
    return PolicyTestDocument(
        outcome=outcome.status,
        headline=outcome.headline,
        exit_code=int(outcome.exit_code),
        passed=len(view.results) - len(view.failed),
        failed=len(view.failed),
        cases=tuple(map(_describe_case, view.results)),
        diagnostics=view.diagnostics,
    )


def _describe_case(result: "CaseResult") -> CaseDocument:
    case = result.case
    about = {"test": case.test, "name": case.name, "place": case.place}
    return describe_as(CaseDocument, result, **about, expected=case.expect, got=result.outcome)


def policy_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `publish_schemas`."""
    return publish_schemas({"policy-check": PolicyCheckDocument, "policy-test": PolicyTestDocument})
