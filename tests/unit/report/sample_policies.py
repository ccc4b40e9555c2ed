"""Sample verdicts of policies on topics and test cases."""

from kdeclare.core.diagnostics import SourcePosition, warning
from kdeclare.core.plans.plan import Verdict, VerdictOutcome
from kdeclare.policy.interface import Action
from kdeclare.policy.testing.case_requests import CaseRequest
from kdeclare.policy.testing.case_run import CaseResult
from kdeclare.policy.testing.cases import Case
from kdeclare.report.policy import PolicyCheckView, PolicyTestView

ALLOW, WARN, DENY = VerdictOutcome
POLICIES = ("bounds", "enough-replicas", "naming", "budget")
DEPRECATED = warning("deprecated-policy", "Deprecated policy interface", "Policy 'old' is one.")

BAD = (
    Verdict("bounds", "Topic/orders", ALLOW),
    Verdict("naming", "Topic/legacy", WARN, "a name begins with its team"),
    Verdict("enough-replicas", "Topic/legacy", DENY, "gold topics need three replicas"),
    Verdict("naming", "Topic/odd", WARN, "a name begins with its team"),
    Verdict("naming", "Topic/orders", WARN, "a name begins with its team"),
    Verdict("bounds", "Topic/orders", DENY, "orders would have 60 partitions.\n\x1b[31mAt most 48."),
)


def make_check(*verdicts: Verdict, topics: int = 120, cluster: str | None = "lab:9092") -> PolicyCheckView:
    """The results of a policy check of a cluster, or of manifests."""
    return PolicyCheckView("shop", "lab", cluster, topics, POLICIES, verdicts)


LIVE = PolicyCheckView(
    "shop",
    "lab",
    "lab:9092",
    120,
    POLICIES,
    BAD,
    places={"Topic/orders": SourcePosition("manifests/orders.yaml", 3, 18)},
    diagnostics=(DEPRECATED,),
)
OFFLINE = PolicyCheckView(
    "shop",
    "lab",
    None,
    120,
    POLICIES,
    (Verdict("bounds", "Topic/t0", ALLOW),),
    (*(("budget", f"Topic/t{n}") for n in range(1200)), ("naming", "Topic/t1")),
)
CHECKS = {
    "denied": LIVE,
    "open": OFFLINE,
    "warned": make_check(*BAD[1:2]),
    "in-order": make_check(BAD[0], cluster=None),
    "one-topic": make_check(BAD[0], topics=1, cluster="lab"),
    "no-topics": make_check(topics=0),
    "no-policies": PolicyCheckView("shop", "lab", None, 3),
}
MANY = make_check(*(Verdict("bounds", f"Topic/t{n}", DENY, "Too many.") for n in range(60)))


def make_case(
    line: int, name: str, expect: VerdictOutcome, policy: str | None = None, message: str | None = None
) -> Case:
    """A test case with a position in a file."""
    place = SourcePosition("gold.yaml", line, 13)
    return Case("gold", name, CaseRequest(Action.CREATE, "orders"), expect, policy, message, place, place)


PASSED = CaseResult(make_case(6, "two replicas are too few", DENY), DENY, (BAD[2],))
TESTS = {
    "failed": PolicyTestView(
        (
            PASSED,
            CaseResult(make_case(10, "a good name", ALLOW), DENY, (BAD[5], BAD[1])),
            CaseResult(
                make_case(14, "what is large", DENY, message="large"),
                DENY,
                (BAD[2],),
                ("no message contains 'large'",),
            ),
            CaseResult(
                make_case(18, "a budget", ALLOW),
                None,
                (),
                ("policy budget reads 'records', which the case does not set",),
            ),
            CaseResult(make_case(22, "a deletion", DENY), ALLOW),
            CaseResult(make_case(26, "a \x1b[31mdeletion", DENY, "bounds"), ALLOW),
        )
    ),
    "passed": PolicyTestView((PASSED,), (DEPRECATED,)),
}
