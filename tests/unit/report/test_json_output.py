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
from tests.unit.report.sample_plans import CREATE_ORDERS, SAMPLES, UPDATE_PAYMENTS, config, plan
from tests.unit.report.sample_runs import BUSY, DENIED, DETAIL, HISTORY, QUIET, RUN_ID, RUNS, results


def _read(document: Mapping[str, object]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(document))
    return read


def _dump(value: object) -> dict[str, Any]:
    return _read(dump_document(value))


@pytest.mark.parametrize("name", SAMPLES)
def test_plans_fit_their_schema(name: str) -> None:
    Draft202012Validator(build_plan_schema()).validate(build_plan_document(SAMPLES[name]))


@pytest.mark.parametrize("name", RUNS)
def test_runs_fit_their_schema_and_their_text(name: str) -> None:
    document = _dump(build_run_document(RUNS[name], seconds=1.5))
    Draft202012Validator(build_run_schemas()["run"]).validate(document)
    assert render_run_text(RUNS[name]).startswith(document["headline"] + "\n")
    assert sum(document["counts"].values()) == len(document["operations"])
    assert document["plan_id"] == compute_plan_id(RUNS[name].plan)


def test_a_run_says_what_policies_said_before_and_during_it() -> None:
    judged = SAMPLES["judged"]
    document = _dump(build_run_document(ApplyResult(RUN_ID, judged, results(judged, _0=DENIED))))
    assert document["verdicts"][:-1] == build_plan_document(judged)["verdicts"]
    assert document["verdicts"][-1] == {
        "policy": "broker",
        "resource": "Topic/orders",
        "outcome": "deny",
        "message": DENIED[2],
    }
    assert (document["outcome"], document["exit_code"], document["counts"]["denied"]) == ("denied", 3, 1)


def test_the_schemas_in_the_docs_are_the_ones_in_use() -> None:
    for name, schema in build_run_schemas().items():
        check_schema(name, schema)


def _fits(name: str, document: dict[str, Any]) -> None:
    Draft202012Validator(build_run_schemas()[name]).validate(document)


def test_the_id_of_a_plan_file_is_kept() -> None:
    assert build_run_document(RUNS["done"], known_plan_id="ab").plan_id == "ab"


def test_the_id_is_that_of_the_plan_that_was_asked_for_whatever_was_denied_of_it() -> None:
    asked_for = replace(RUNS["denied"], identity="cd")
    assert build_run_document(asked_for).plan_id == "cd"
    assert build_run_document(asked_for, known_plan_id="ab").plan_id == "ab"


def test_status() -> None:
    busy, quiet = _read(dump_status(BUSY)), _read(dump_status(QUIET))
    _fits("status", busy)
    _fits("status", quiet)
    assert busy["lock"]["who"] == "bob@ci"
    assert busy["unfinished"][0]["not_begun"] == 4
    assert busy["moves"][0]["target"] == [1, 2, 4]
    assert (quiet["lock"], quiet["unfinished"], quiet["moves"]) == (None, [], [])
    assert dump_status(replace(QUIET, last=None))["last"] is None


def test_history() -> None:
    document = _dump(History(HISTORY))
    _fits("history", document)
    assert document["runs"][0]["ended"] is None
    assert document["runs"][2]["undone_by"] == HISTORY[1].run_id
    assert [run["overridden"] for run in document["runs"]] == [0, 0, 2, 0, 0, 0]
    assert [run["adopted"] for run in document["runs"]] == [0, 0, 0, 0, 52, 1]
    detail = _dump(DETAIL)
    _fits("history-run", detail)
    assert detail["run_id"] == RUN_ID
    assert detail["overrides"][1] == {
        "policy": "racks",
        "resource": "Reassignment/drain-broker-3",
        "topic": "orders",
        "reason": "broker 3\nis going",
        "principal": "User:ann",
    }
    assert [step["status"] for step in detail["steps"]] == ["done", None, "skipped", "failed", None]


def test_history_diff() -> None:
    other = replace(UPDATE_PAYMENTS, fields=(config("cleanup.policy", ["delete"], ["compact"]),))
    a = build_plan_document(plan(changes=(CREATE_ORDERS, replace(other, fields=()))))
    b = build_plan_document(plan(changes=(other,)))
    document = _dump(compare_plans(a, b, "A", "B"))
    _fits("history-diff", document)
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


def test_validation_and_problems() -> None:
    wrong = (warning("w", "Careful"), error("e", "Wrong"))
    assert ValidationView(3, 5, (denied("d", "No"),)).valid is False
    assert ValidationView(3, 5, wrong).valid is False
    assert ValidationView(3, 5, wrong[:1]).valid is True
    _fits("validation", _dump(ValidationView(3, 5, wrong)))
    problem = _dump(ProblemDocument("error", int(ExitCode.LOCKED), wrong))
    _fits("problem", problem)
    assert problem["exit_code"] == 6
    assert [d["severity"] for d in problem["diagnostics"]] == ["error", "warning"]
