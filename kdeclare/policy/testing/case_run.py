"""Evaluate policies for test cases, and compare the verdicts with the expected verdicts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.core.policies.policy_request import PolicyRequest, PolicyViolation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.suggestions import format_suggestion
from kdeclare.policy.cel.rule import RuleEvaluationError
from kdeclare.policy.configured_policy import ConfiguredPolicy, Policy
from kdeclare.policy.isolation import PolicyEvaluator
from kdeclare.policy.testing.case_requests import MissingCaseField
from kdeclare.policy.testing.cases import Case

_SEVERITY_ORDER = tuple(VerdictOutcome)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a test case.

    outcome: the most severe outcome of all verdicts; ALLOW if no policy was evaluated; None if a policy
        failed to return a verdict.
    problems: messages about failures other than an unexpected outcome.
    """

    case: Case
    outcome: VerdictOutcome | None
    verdicts: tuple[Verdict, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the outcome is as expected, and there are no other problems."""
        return self.outcome is self.case.expect and not self.problems


def check_case_policies(cases: Iterable[Case], policies: Iterable[ConfiguredPolicy]) -> list[Diagnostic]:
    """Return an error for each test case that refers to an unknown policy."""
    policy_names = [item.name for item in policies]
    return [
        error(
            "unknown-policy",
            "No such policy",
            f"Test case '{case.name}' refers to policy '{case.policy}', which does not exist in the project.",
            hint=format_suggestion(case.policy, policy_names)
            or (
                f"Use one of {', '.join(policy_names)}." if policy_names else "Add the policy to the project."
            ),
            place=case.policy_place,
            subject=case.policy,
        )
        for case in cases
        if case.policy is not None and case.policy not in policy_names
    ]


def run_cases(
    policies: Sequence[ConfiguredPolicy], cases: Iterable[Case], limit_s: float | None = None
) -> tuple[CaseResult, ...]:
    """Evaluate the policies for each test case, and return the results in the same order.

    If a policy fails to return a verdict (for example, if it raises an unexpected exception or times out),
    the test case does not pass, even if it expects ``deny``. In a plan, such a policy denies the change.

    limit_s: the time limit of a policy for one case, in seconds; None for the default.
    """
    observed_policies = [(item, _ObservedPolicy(item.policy)) for item in policies]
    with PolicyEvaluator(limit_s) as evaluator:
        return tuple(_run_case(observed_policies, case, evaluator) for case in cases)


class _ObservedPolicy:
    """A wrapper that records whether a policy returned a verdict or failed."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.answered = False

    def close(self) -> None:
        """Do nothing. The owner of the wrapped policy closes the policy."""

    def validate(self, request: PolicyRequest) -> Any:  # also passes on invalid return values
        validate: Callable[..., object] = self._policy.validate
        try:
            returned = validate(request)
        except RuleEvaluationError:
            raise
        except PolicyViolation:
            self.answered = True
            raise
        self.answered = returned is None
        return returned


def _run_case(
    observed_policies: Sequence[tuple[ConfiguredPolicy, _ObservedPolicy]],
    case: Case,
    evaluator: PolicyEvaluator,
) -> CaseResult:
    verdicts: list[Verdict] = []
    unanswered: list[str] = []
    for item, policy in observed_policies:
        is_selected = case.policy in (None, item.name)
        if not is_selected or item.kind != case.kind or not item.covers(case.request):
            continue
        policy.answered = False
        case.request.withholding.forget()
        try:
            message = evaluator.ask(replace(item, policy=policy), case.request)
            case.request.withholding.tell()  # raises the exception again if the policy caught it
        except MissingCaseField as missing_field:
            unanswered.append(f"policy {item.name} reads '{missing_field.what}', which the case does not set")
            continue
        if not policy.answered:
            unanswered.append(message or f"policy {item.name} gave no verdict")
            continue
        verdicts.append(_build_verdict(item, case, message))
    if unanswered:
        return CaseResult(case, None, tuple(verdicts), tuple(unanswered))
    outcome = max((v.outcome for v in verdicts), key=_SEVERITY_ORDER.index, default=VerdictOutcome.ALLOW)
    problems = _explain_missing_message(case, outcome, verdicts) + _explain_evaluation(case, verdicts)
    return CaseResult(case, outcome, tuple(verdicts), problems)


def _explain_evaluation(case: Case, verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Return a problem if ``asked`` is false but a policy was evaluated, or if it is true but none was."""
    policy_names = [v.policy for v in verdicts]
    if case.asked is None or case.asked == bool(policy_names):
        return ()
    if policy_names:
        verb = "applies" if len(policy_names) == 1 else "apply"
        return (f"{', '.join(policy_names)} {verb} to this case, although 'asked' is false",)
    if case.policy is None:
        return ("no policy applies to this case",)
    return (f"policy {case.policy} does not apply to this case, because of the policy's actions or selector",)


def _build_verdict(item: ConfiguredPolicy, case: Case, message: str | None) -> Verdict:
    resource = str(ResourceId(case.kind, case.request.name))
    if message is None:
        return Verdict(item.name, resource, VerdictOutcome.ALLOW)
    return Verdict(item.name, resource, item.outcome, message)


def _explain_missing_message(
    case: Case, outcome: VerdictOutcome, verdicts: Iterable[Verdict]
) -> tuple[str, ...]:
    """Return a problem if no verdict with the expected outcome has the expected message."""
    if case.message is None or outcome is not case.expect:
        return ()
    if any(v.outcome is outcome and case.message in v.message for v in verdicts):
        return ()
    return (f"no message contains '{case.message}'",)
