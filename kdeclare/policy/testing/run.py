"""Putting cases before the policies: what is said, and whether it is what was expected."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.policy_subjects import PolicyRequest, PolicyViolation
from kdeclare.core.suggest import did_you_mean
from kdeclare.policy.cel.rule import RuleFailed
from kdeclare.policy.configured import ConfiguredPolicy, Policy
from kdeclare.policy.isolation import Asking
from kdeclare.policy.testing.cases import Case
from kdeclare.policy.testing.given import NotGiven

_WEIGHT = tuple(VerdictOutcome)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of a case.

    outcome: the worst of the verdicts, allow if nobody is asked; None where a policy could not say.
    problems: what went wrong beside a verdict that was not expected, as sentences.
    """

    case: Case
    outcome: VerdictOutcome | None
    verdicts: tuple[Verdict, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return self.outcome is self.case.expect and not self.problems


def unknown_policies(cases: Iterable[Case], policies: Iterable[ConfiguredPolicy]) -> list[Diagnostic]:
    """An error for each case that names a policy that there is not."""
    known = [item.name for item in policies]
    return [
        error(
            "unknown-policy",
            "No such policy",
            f"The case '{case.name}' is about '{case.policy}', and the project has no such policy.",
            hint=did_you_mean(case.policy, known) or f"The policies are {', '.join(known) or 'none'}.",
            place=case.policy_place,
            subject=case.policy,
        )
        for case in cases
        if case.policy is not None and case.policy not in known
    ]


def run_cases(
    policies: Sequence[ConfiguredPolicy], cases: Iterable[Case], limit_s: float | None = None
) -> tuple[CaseResult, ...]:
    """Ask the policies about each case, just as a plan asks them; the results in the same order.

    A policy that fails denies in a plan, but no case can expect it to: neither does it pass.
    """
    watched = [(item, _Watched(item.policy)) for item in policies]
    with Asking(limit_s) as asking:
        return tuple(_run(watched, case, asking) for case in cases)


class _Watched:
    """A policy, and whether it has answered by itself."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.answered = False

    def close(self) -> None:
        """Whoever has made the policy closes it."""

    def validate(self, request: PolicyRequest) -> Any:  # what it should not return counts as well
        validate: Callable[..., object] = self._policy.validate
        try:
            returned = validate(request)
        except RuleFailed:
            raise
        except PolicyViolation:
            self.answered = True
            raise
        self.answered = returned is None
        return returned


def _run(watched: Sequence[tuple[ConfiguredPolicy, _Watched]], case: Case, asking: Asking) -> CaseResult:
    verdicts: list[Verdict] = []
    unanswered: list[str] = []
    for item, policy in watched:
        named = case.policy in (None, item.name)
        if not named or item.kind != case.kind or not item.covers(case.request):
            continue
        policy.answered = False
        case.request.withholding.forget()
        try:
            message = asking.ask(replace(item, policy=policy), case.request)
            case.request.withholding.tell()  # also where the policy has caught it
        except NotGiven as missing:
            unanswered.append(f"policy {item.name} asks for '{missing.what}', which the case does not give")
            continue
        if not policy.answered:
            unanswered.append(message or f"policy {item.name} did not answer")
            continue
        verdicts.append(_verdict(item, case, message))
    if unanswered:
        return CaseResult(case, None, tuple(verdicts), tuple(unanswered))
    outcome = max((v.outcome for v in verdicts), key=_WEIGHT.index, default=VerdictOutcome.ALLOW)
    problems = _unsaid(case, outcome, verdicts) + _asked_otherwise(case, verdicts)
    return CaseResult(case, outcome, tuple(verdicts), problems)


def _asked_otherwise(case: Case, verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Who is asked, or that nobody is, where the case expects the opposite."""
    asked = [v.policy for v in verdicts]
    if case.asked is None or case.asked == bool(asked):
        return ()
    if asked:
        return (f"{', '.join(asked)} {'is' if len(asked) == 1 else 'are'} asked about this",)
    if case.policy is None:
        return ("no policy is asked about this",)
    return (f"policy {case.policy} is not asked about this, by its actions or its selector",)


def _verdict(item: ConfiguredPolicy, case: Case, message: str | None) -> Verdict:
    resource = str(ResourceId(case.kind, case.request.name))
    if message is None:
        return Verdict(item.name, resource, VerdictOutcome.ALLOW)
    return Verdict(item.name, resource, item.outcome, message)


def _unsaid(case: Case, outcome: VerdictOutcome, verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """That none of the deciding verdicts says what was expected, if so."""
    if case.message is None or outcome is not case.expect:
        return ()
    if any(v.outcome is outcome and case.message in v.message for v in verdicts):
        return ()
    return (f"no message has '{case.message}' in it",)
