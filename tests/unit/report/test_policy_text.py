"""The output of ``policy check`` and ``policy test``: golden texts, and documents that agree with them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.core.exit_codes import ExitCode
from kdeclare.report.elements.terminal import Style
from kdeclare.report.policy import (
    build_cases_document,
    build_check_document,
    build_policy_schemas,
    compute_cases_outcome,
    compute_check_outcome,
    count_by_policy,
    render_cases_text,
    render_check_text,
)
from tests.unit.report.golden_files import check_golden, check_schema
from tests.unit.report.sample_policies import CHECKS, LIVE, MANY, OFFLINE, TESTS


@pytest.mark.parametrize("name", CHECKS)
def test_policy_check_text_matches_golden_file(name: str) -> None:
    text = render_check_text(CHECKS[name])
    assert "\x1b" not in text
    check_golden(f"policy-check-{name}", text)


@pytest.mark.parametrize("name", TESTS)
def test_policy_test_text_matches_golden_file(name: str) -> None:
    text = render_cases_text(TESTS[name])
    assert "\x1b" not in text
    check_golden(f"policy-test-{name}", text)


def test_policy_text_with_show_all_is_complete() -> None:
    assert render_check_text(MANY).count("denied by policy") == 50
    whole = render_check_text(MANY, show_all=True)
    assert whole.count("denied by policy") == 60
    assert "-v shows all" not in whole
    assert "passed two replicas are too few" in render_cases_text(TESTS["failed"], show_all=True)
    assert "passed two" not in render_cases_text(TESTS["failed"])


def test_policy_colors_change_no_text() -> None:
    for plain, coloured in (
        (render_check_text(LIVE), render_check_text(LIVE, Style(on=True))),
        (render_check_text(OFFLINE), render_check_text(OFFLINE, Style(on=True))),
        (render_cases_text(TESTS["failed"]), render_cases_text(TESTS["failed"], Style(on=True))),
    ):
        for code in ("0", "1", "2", "31", "32", "33", "36"):
            coloured = coloured.replace(f"\x1b[{code}m", "")
        assert coloured == plain


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("denied", "denied", ExitCode.DENIED),
        ("open", "in-order", ExitCode.OK),
        ("warned", "warned", ExitCode.OK),
        ("in-order", "in-order", ExitCode.OK),
        ("no-topics", "in-order", ExitCode.OK),
        ("no-policies", "no-policies", ExitCode.OK),
    ],
)
def test_check_outcome_has_status_and_exit_code(name: str, status: str, code: ExitCode) -> None:
    outcome = compute_check_outcome(CHECKS[name])
    assert (outcome.status, outcome.exit_code) == (status, code)


def test_cases_outcome_counts_passed_and_failed() -> None:
    assert compute_cases_outcome(TESTS["failed"]).exit_code is ExitCode.ERROR
    assert compute_cases_outcome(TESTS["failed"]).headline == "6 cases: 1 passed, 5 failed."
    assert compute_cases_outcome(TESTS["passed"]).exit_code is ExitCode.OK


def test_unavailable_verdicts_count_as_asked() -> None:
    by_policy = {row.policy: row for row in count_by_policy(OFFLINE)}
    assert (by_policy["budget"].asked, by_policy["budget"].open) == (1200, 1200)
    assert (by_policy["bounds"].asked, by_policy["enough-replicas"].asked) == (1, 0)


def test_policy_schemas_match_docs() -> None:
    for name, schema in build_policy_schemas().items():
        check_schema(name, schema)


def _dump(value: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(dump_document(value)))
    return document


@pytest.mark.parametrize("name", CHECKS)
def test_check_documents_fit_schema_and_match_text(name: str) -> None:
    document = _dump(build_check_document(CHECKS[name]))
    Draft202012Validator(build_policy_schemas()["policy-check"]).validate(document)
    assert render_check_text(CHECKS[name]).startswith(document["headline"] + "\n")


def test_check_document_has_counts_and_positions() -> None:
    document = _dump(build_check_document(LIVE))
    assert (document["outcome"], document["exit_code"], document["against"]) == ("denied", 3, 2)
    assert document["policies"][0] == {"policy": "bounds", "asked": 2, "denied": 1, "warned": 0, "open": 0}
    places = {v["resource"]: v["place"] for v in document["verdicts"]}
    assert places["Topic/orders"] == {"file": "manifests/orders.yaml", "line": 3, "column": 18}
    assert places["Topic/legacy"] is None
    assert document["diagnostics"][0]["code"] == "deprecated-policy"
    assert _dump(build_check_document(OFFLINE))["open"][0] == {"policy": "budget", "resource": "Topic/t0"}


@pytest.mark.parametrize("name", TESTS)
def test_cases_documents_fit_schema_and_match_text(name: str) -> None:
    document = _dump(build_cases_document(TESTS[name]))
    Draft202012Validator(build_policy_schemas()["policy-test"]).validate(document)
    assert render_cases_text(TESTS[name]).endswith(document["headline"] + "\n")
    assert document["passed"] + document["failed"] == len(document["cases"])


def test_cases_document_has_results_and_problems() -> None:
    found = _dump(build_cases_document(TESTS["failed"]))["cases"]
    assert [case["passed"] for case in found] == [True, False, False, False, False, False]
    assert [case["got"] for case in found] == ["deny", "deny", "deny", None, "allow", "allow"]
    assert found[0]["place"] == {"file": "gold.yaml", "line": 6, "column": 13}
    assert found[2]["problems"] == ["no message contains 'large'"]


def test_check_headline_uses_singular() -> None:
    one = replace(LIVE, verdicts=LIVE.verdicts[:3], topics=1)
    assert compute_check_outcome(one).headline == "1 of 1 topic violates a policy."


def test_check_headline_counts_inapplicable_policies() -> None:
    idle = replace(LIVE, verdicts=(), open=(), topics=2, policies=LIVE.policies[:1])
    assert (
        compute_check_outcome(idle).headline == "All 2 topics comply with 1 policy (none of which applies)."
    )
    some = replace(LIVE, verdicts=(), open=((LIVE.policies[0], "Topic/a"),), topics=2)
    assert " (3 of which apply to none of them), as far as" in compute_check_outcome(some).headline
