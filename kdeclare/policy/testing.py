"""Putting cases before the policies: what is said, and whether it is what was expected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kdeclare.manifests.suggest import did_you_mean
from kdeclare.model.diagnostics import Diagnostic, error
from kdeclare.model.ids import ResourceId
from kdeclare.model.plan import Verdict, VerdictOutcome
from kdeclare.policy.asking import LIMIT_S, Asking
from kdeclare.policy.cases import Case
from kdeclare.policy.cel import RuleFailed
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.policy.given import NotGiven
from kdeclare.policy.interface import PolicyViolation, RequestMetadata, TopicActionsPolicy

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
    policies: Sequence[ConfiguredPolicy], cases: Iterable[Case], limit_s: float = LIMIT_S
) -> tuple[CaseResult, ...]:
    """Ask the policies about each case, just as a plan asks them; the results in the same order.

    A policy that fails denies in a plan, but no case can expect it to: neither does it pass.
    """
    watched = [(item, _Watched(item.policy)) for item in policies]
    with Asking(limit_s) as asking:
        return tuple(_run(watched, case, asking) for case in cases)


class _Watched(TopicActionsPolicy):
    """A policy, and whether it has answered by itself."""

    def __init__(self, policy: TopicActionsPolicy) -> None:
        self._policy = policy
        self.answered = False

    def validate(self, request: RequestMetadata) -> None:
        try:
            self._policy.validate(request)
        except RuleFailed:
            raise
        except PolicyViolation:
            self.answered = True
            raise
        self.answered = True


def _run(watched: Sequence[tuple[ConfiguredPolicy, _Watched]], case: Case, asking: Asking) -> CaseResult:
    verdicts: list[Verdict] = []
    unanswered: list[str] = []
    for item, policy in watched:
        if case.policy not in (None, item.name) or not item.covers(case.request):
            continue
        policy.answered = False
        try:
            message = asking.ask(replace(item, policy=policy), case.request)
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
    return CaseResult(case, outcome, tuple(verdicts), _unsaid(case, outcome, verdicts))


def _verdict(item: ConfiguredPolicy, case: Case, message: str | None) -> Verdict:
    topic = str(ResourceId("Topic", case.request.topic))
    if message is None:
        return Verdict(item.name, topic, VerdictOutcome.ALLOW)
    return Verdict(item.name, topic, item.outcome, message)


def _unsaid(case: Case, outcome: VerdictOutcome, verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """That none of the deciding verdicts says what was expected, if so."""
    if case.message is None or outcome is not case.expect:
        return ()
    if any(v.outcome is outcome and case.message in v.message for v in verdicts):
        return ()
    return (f"no message has '{case.message}' in it",)
