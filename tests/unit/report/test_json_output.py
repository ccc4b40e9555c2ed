"""JSON output matches its schema and agrees with the text."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.diagnostics import denied, error, warning
from kdeclare.core.documents import dump_document
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.run import ApplyResult
from kdeclare.engine.planning.planfile import build_plan_document, compute_plan_id
from kdeclare.engine.planning.planfile_schema import build_plan_schema
from kdeclare.report.run.documents import build_run_document, build_run_schemas, dump_status
from kdeclare.report.run.history_text import compare_plans
from kdeclare.report.run.run_text import render_run_text
from kdeclare.report.run.views import History, ProblemDocument, ValidationView
from tests.unit.report.golden_files import check_schema
from tests.unit.report.sample_plans import (
    CREATE_ORDERS,
    SAMPLES,
    UPDATE_PAYMENTS,
    make_config_change,
    make_plan,
)
from tests.unit.report.sample_runs import BUSY, DENIED, DETAIL, HISTORY, QUIET, RUN_ID, RUNS, make_results


def _round_trip(document: Mapping[str, object]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(document))
    return read


def _dump(value: object) -> dict[str, Any]:
    return _round_trip(dump_document(value))


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_documents_fit_schema(name: str) -> None:
    Draft202012Validator(build_plan_schema()).validate(build_plan_document(SAMPLES[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_run_documents_fit_schema_and_match_text(name: str) -> None:
    document = _dump(build_run_document(RUNS[name], seconds=1.5))
    Draft202012Validator(build_run_schemas()["run"]).validate(document)
    assert render_run_text(RUNS[name]).startswith(document["headline"] + "\n")
    assert sum(document["counts"].values()) == len(document["operations"])
    assert document["plan_id"] == compute_plan_id(RUNS[name].plan)


def test_run_document_includes_verdicts_of_plan_and_run() -> None:
    judged = SAMPLES["judged"]
    document = _dump(build_run_document(ApplyResult(RUN_ID, judged, make_results(judged, _0=DENIED))))
    assert document["verdicts"][:-1] == build_plan_document(judged)["verdicts"]
    assert document["verdicts"][-1] == {
        "policy": "broker",
        "resource": "Topic/orders",
        "outcome": "deny",
        "message": DENIED[2],
    }
    assert (document["outcome"], document["exit_code"], document["counts"]["denied"]) == ("denied", 3, 1)


def test_run_schemas_match_docs() -> None:
    for name, schema in build_run_schemas().items():
        check_schema(name, schema)


def _check_schema(name: str, document: dict[str, Any]) -> None:
    Draft202012Validator(build_run_schemas()[name]).validate(document)


def test_run_document_keeps_id_of_plan_file() -> None:
    assert build_run_document(RUNS["done"], known_plan_id="ab").plan_id == "ab"


def test_run_document_uses_id_of_requested_plan() -> None:
    asked_for = replace(RUNS["denied"], identity="cd")
    assert build_run_document(asked_for).plan_id == "cd"
    assert build_run_document(asked_for, known_plan_id="ab").plan_id == "ab"


def test_status_documents_fit_schema() -> None:
    busy, quiet = _round_trip(dump_status(BUSY)), _round_trip(dump_status(QUIET))
    _check_schema("status", busy)
    _check_schema("status", quiet)
    assert busy["lock"]["who"] == "bob@ci"
    assert busy["unfinished"][0]["not_begun"] == 4
    assert busy["moves"][0]["target"] == [1, 2, 4]
    assert (quiet["lock"], quiet["unfinished"], quiet["moves"]) == (None, [], [])
    assert dump_status(replace(QUIET, last=None))["last"] is None


def test_history_documents_fit_schema() -> None:
    document = _dump(History(HISTORY))
    _check_schema("history", document)
    assert document["runs"][0]["ended"] is None
    assert document["runs"][2]["undone_by"] == HISTORY[1].run_id
    assert [run["overridden"] for run in document["runs"]] == [0, 0, 2, 0, 0, 0]
    assert [run["adopted"] for run in document["runs"]] == [0, 0, 0, 0, 52, 1]
    detail = _dump(DETAIL)
    _check_schema("history-run", detail)
    assert detail["run_id"] == RUN_ID
    assert detail["overrides"][1] == {
        "policy": "racks",
        "resource": "Reassignment/drain-broker-3",
        "topic": "orders",
        "reason": "broker 3\nis going",
        "principal": "User:ann",
    }
    assert [step["status"] for step in detail["steps"]] == ["done", None, "skipped", "failed", None]


def test_history_diff_document_lists_differences() -> None:
    other = replace(UPDATE_PAYMENTS, fields=(make_config_change("cleanup.policy", ["delete"], ["compact"]),))
    a = build_plan_document(make_plan(changes=(CREATE_ORDERS, replace(other, fields=()))))
    b = build_plan_document(make_plan(changes=(other,)))
    document = _dump(compare_plans(a, b, "A", "B"))
    _check_schema("history-diff", document)
    assert document["differences"] == [
        {
            "resource": "Topic/orders",
            "path": "",
            "a": {
                "action": "create",
                "reason": "declared",
                "risk": "safe",
                "fields": [field.path for field in CREATE_ORDERS.fields],
            },
            "b": None,
        },
        {
            "resource": "Topic/payments",
            "path": "configs.cleanup.policy",
            "a": None,
            "b": {"op": "SET", "before": ["delete"], "after": ["compact"]},
        },
    ]


def test_validation_and_problem_documents_fit_schema() -> None:
    wrong = (warning("w", "Careful"), error("e", "Wrong"))
    assert ValidationView(3, 5, (denied("d", "No"),)).valid is False
    assert ValidationView(3, 5, wrong).valid is False
    assert ValidationView(3, 5, wrong[:1]).valid is True
    _check_schema("validation", _dump(ValidationView(3, 5, wrong)))
    problem = _dump(ProblemDocument("error", int(ExitCode.LOCKED), wrong))
    _check_schema("problem", problem)
    assert problem["exit_code"] == 6
    assert [d["severity"] for d in problem["diagnostics"]] == ["error", "warning"]
