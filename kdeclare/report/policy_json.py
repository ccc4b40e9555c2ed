"""What scripts read of ``policy check`` and ``policy test``."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kdeclare.core.diagnostics import in_order
from kdeclare.core.plan import Verdict
from kdeclare.engine.planning.plan_document import diagnostic_document, verdict_document
from kdeclare.report.json_output import FORMAT_VERSION
from kdeclare.report.outcome import Outcome
from kdeclare.report.policy_text import cases_outcome, check_outcome, tallies
from kdeclare.report.views import PolicyCheckView, PolicyTestView

if TYPE_CHECKING:
    from kdeclare.policy.testing.run import CaseResult


def policy_check_document(view: PolicyCheckView) -> dict[str, Any]:
    """What the policies say of topics (docs/schemas/policy-check.schema.json)."""
    return _head(check_outcome(view)) | {
        "project": view.project,
        "env": view.env,
        "cluster": view.cluster,
        "topics": view.topics,
        "against": len({v.resource for v in view.verdicts if v.denies}),
        "policies": [
            {
                "policy": row.policy,
                "asked": row.asked,
                "denied": row.denied,
                "warned": row.warned,
                "open": row.open,
            }
            for row in tallies(view)
        ],
        "verdicts": [_verdict(verdict, view) for verdict in view.verdicts],
        "open": [{"policy": policy, "resource": resource} for policy, resource in view.open],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.diagnostics)],
    }


def policy_test_document(view: PolicyTestView) -> dict[str, Any]:
    """What came of an author's cases (docs/schemas/policy-test.schema.json)."""
    failed = len(view.failed)
    return _head(cases_outcome(view)) | {
        "passed": len(view.results) - failed,
        "failed": failed,
        "cases": [_case(result) for result in view.results],
        "diagnostics": [diagnostic_document(d) for d in in_order(view.diagnostics)],
    }


def _head(outcome: Outcome) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "outcome": outcome.status,
        "headline": outcome.headline,
        "exit_code": int(outcome.exit_code),
    }


def _verdict(verdict: Verdict, view: PolicyCheckView) -> dict[str, Any]:
    place = view.places.get(verdict.resource)
    return verdict_document(verdict) | {"place": asdict(place) if place else None}


def _case(result: "CaseResult") -> dict[str, Any]:
    case = result.case
    return {
        "test": case.test,
        "name": case.name,
        "place": asdict(case.place),
        "passed": result.passed,
        "expected": case.expect.value,
        "got": result.outcome and result.outcome.value,
        "verdicts": [verdict_document(v) for v in result.verdicts],
        "problems": list(result.problems),
    }
