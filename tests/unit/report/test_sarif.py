"""SARIF for other tools: structure, locations, and fingerprints that are stable across logs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sarif_pydantic import Sarif

from kdeclare.core.diagnostics import (
    Diagnostic,
    SourcePosition,
    denied,
    error,
    info,
    sort_diagnostics,
    warning,
)
from kdeclare.core.plans.plan import SYSTEM_POLICY, Plan, Verdict
from kdeclare.core.resources.changes import Action, Risk
from kdeclare.report.run.views import ValidationView
from kdeclare.report.sarif import (
    FINGERPRINT_KEY,
    MAX_RESULTS,
    Checkout,
    build_plan_sarif,
    build_problem_sarif,
    build_validation_sarif,
    find_location,
)
from tests.unit.report.golden_files import check_golden
from tests.unit.report.sample_plans import ALLOW, DENY, ORDERS, SAMPLES, WARN, make_plan, make_position
from tests.unit.report.test_markdown import make_hostile_plan

UNKNOWN_TO_THE_MODEL = {"columnKind"}
"""Properties of the standard (section 3.14.17) that the package of models lacks."""


def find_unknown_properties(model: BaseModel) -> Iterator[str]:
    """Return the properties at any depth that the models do not know."""
    yield from model.model_extra or ()
    for name in type(model).model_fields:
        for value in _iterate_models(getattr(model, name)):
            yield from find_unknown_properties(value)


def _iterate_models(value: Any) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_models(item)


def check_log(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Check the properties of every log, and return its results."""
    document = json.loads(json.dumps(document))
    model = Sarif.model_validate(document)
    assert set(find_unknown_properties(model)) <= UNKNOWN_TO_THE_MODEL
    assert model.model_dump(mode="json", by_alias=True, exclude_unset=True) == document
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    ids = [rule["id"] for rule in rules]
    assert ids == sorted(set(ids)) == sorted({result["ruleId"] for result in results})
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in results:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (item,) = result["locations"]  # GitHub rejects a log with a result that has no location
        physical = item["physicalLocation"]
        assert physical["artifactLocation"]["uri"].isascii()
        assert min(physical["region"].values()) >= 1
        assert "fingerprints" not in result, "GitHub does not read them"
    prints = [result["partialFingerprints"][FINGERPRINT_KEY] for result in results]
    assert len(set(prints)) == len(prints)
    found: list[dict[str, Any]] = results
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_sarif_counts_results_of_samples(name: str) -> None:
    made = SAMPLES[name]
    results = check_log(build_plan_sarif(made))
    acting = [c for c in made.changes if c.action is not Action.NO_OP and not c.blocked]
    risks = sum(risk is not Risk.SAFE for change in acting for risk in change.risks)
    assert len(results) == len(made.diagnostics) + sum(v.outcome is not ALLOW for v in made.verdicts) + risks


def test_plan_sarif_matches_golden_file() -> None:
    text = json.dumps(build_plan_sarif(SAMPLES["judged"]), indent=2, ensure_ascii=False) + "\n"
    text = text.replace(f'"version": "{_get_version()}"', '"version": "VERSION"')
    check_golden("plan-judged", text, "sarif")


def _get_version() -> str:
    from kdeclare.version import VERSION

    return VERSION


@given(st.text(min_size=1, max_size=20))
def test_sarif_escapes_hostile_text(text: str) -> None:
    made = make_hostile_plan(text)
    for result in check_log(build_plan_sarif(made)):
        assert "](" not in result["message"]["text"]
    check_log(build_problem_sarif(made.diagnostics))


def test_sarif_levels_follow_severity_and_outcome() -> None:
    found = (error("e", "E"), denied("d", "D"), warning("w", "W"), info("i", "I"))
    results = check_log(build_validation_sarif(ValidationView(1, 1, found)))
    assert [r["level"] for r in results] == ["error", "error", "warning", "note"]
    verdicts = (
        Verdict("p", str(ORDERS), DENY, "no"),
        Verdict("q", str(ORDERS), WARN, "careful"),
        Verdict("r", str(ORDERS), WARN, "no", override="a test"),
        Verdict("s", str(ORDERS), ALLOW),
    )
    results = check_log(build_plan_sarif(make_plan(verdicts=verdicts)))
    assert [(r["ruleId"], r["level"]) for r in results] == [
        ("policy/p", "error"),
        ("policy/r", "warning"),
        ("policy/q", "warning"),
    ]
    said = "Policy r is overridden for Topic/orders: no\nReason: a test\n"
    assert results[1]["message"]["text"] == said + "This result has no position in a file."
    assert results[1]["properties"]["override"] == "a test"


def read_region(result: dict[str, Any]) -> tuple[str, int, int]:
    """Return file, line and column."""
    physical = result["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], *physical["region"].values()


def test_sarif_verdict_is_located_at_its_change() -> None:
    results = {r["ruleId"]: r for r in check_log(build_plan_sarif(SAMPLES["blocked"]))}
    assert read_region(results["policy/bounds"]) == ("manifests/payments.yaml", 14, 1)
    for name in ("policy/factor", "prevent-destroy"):  # an unchanged resource, and an orphan
        assert read_region(results[name]) == ("manifests/payments.yaml", 1, 1)
        assert results[name]["message"]["text"].endswith("\nThis result has no position in a file.")
    assert "no place of its own" not in results["policy/bounds"]["message"]["text"]


def test_sarif_result_without_position_uses_project_file() -> None:
    nowhere = error("nowhere", "Nowhere")
    (result,) = check_log(build_problem_sarif([nowhere]))
    assert read_region(result) == ("kdeclare.yaml", 1, 1)
    there = Checkout("/repo", "/repo/kafka", "blue.yaml")
    somewhere = error("somewhere", "Somewhere", place=SourcePosition("a.yaml", 5, 6))
    shown = check_log(build_problem_sarif([nowhere, somewhere], there))
    assert [read_region(r) for r in shown] == [("kafka/blue.yaml", 1, 1), ("kafka/a.yaml", 5, 6)]
    assert [r["partialFingerprints"] for r in shown[:1]] == [result["partialFingerprints"]]


@pytest.mark.slow
def test_sarif_results_are_limited() -> None:
    verdicts = [Verdict("p", f"Topic/t{n}", WARN, "careful") for n in range(MAX_RESULTS)]
    assert len(check_log(build_plan_sarif(make_plan(verdicts=tuple(verdicts))))) == MAX_RESULTS
    verdicts += [Verdict("q", "Topic/x", DENY, "no")]
    results = check_log(build_plan_sarif(make_plan(verdicts=tuple(verdicts), diagnostics=(info("i", "I"),))))
    assert len(results) == MAX_RESULTS
    assert [results[0]["ruleId"], results[-1]["ruleId"]] == ["policy/q", "results-left-out"]
    assert "3 results were omitted." in results[-1]["message"]["text"]
    assert "i" not in {r["ruleId"] for r in results}, "the worst are kept"


def test_sarif_diagnostic_is_located_at_position_or_change() -> None:
    own = error("own", "Own", place=SourcePosition("other.yaml", 3, 5), resource=str(ORDERS))
    none = denied("none", "None", resource=str(ORDERS))
    made = replace(SAMPLES["create"], diagnostics=(own, none))
    assert [read_region(r) for r in check_log(build_plan_sarif(made))] == [
        ("other.yaml", 3, 5),
        ("manifests/orders.yaml", 1, 1),
    ]


def test_sarif_broker_policy_has_own_rule() -> None:
    made = make_plan(verdicts=(Verdict(SYSTEM_POLICY, str(ORDERS), DENY, "no"),))
    (rule,) = build_plan_sarif(made)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["id"] == "policy/broker"
    assert "cannot be overridden" in rule["help"]["text"]
    assert "--override-policy" not in rule["help"]["text"]


def list_fingerprints(made: Plan) -> list[str]:
    return [r["partialFingerprints"][FINGERPRINT_KEY] for r in check_log(build_plan_sarif(made))]


def shift_lines(item: Diagnostic) -> Diagnostic:
    return replace(
        item, place=item.place and replace(item.place, line=item.place.line + 7), detail="Otherwise."
    )


def test_sarif_fingerprint_ignores_line_and_message() -> None:
    made = SAMPLES["blocked"]
    later = replace(
        made,
        changes=tuple(replace(c, source=c.source and make_position("payments", 99)) for c in made.changes),
        diagnostics=tuple(shift_lines(d) for d in made.diagnostics),
        verdicts=tuple(replace(v, message="otherwise") for v in made.verdicts),
    )
    first, then = list_fingerprints(made), list_fingerprints(later)
    assert first[:2] == then[:2], "the guard's and the denial, whose file is the same"
    assert first[2] != then[2], "it is said of another file now"


def test_sarif_results_differing_in_line_are_kept_apart() -> None:
    twins = [error("e", "E", place=SourcePosition("a.yaml", line, 1)) for line in (1, 2, 3)]
    assert len(check_log(build_problem_sarif(twins))) == 3
    assert list_fingerprints(make_plan(diagnostics=tuple(twins[:1]))) == list_fingerprints(
        make_plan(diagnostics=tuple(twins[2:]))
    )
    topics = [Verdict("p", "Reassignment/r", DENY, "no", topic) for topic in ("a", "b")]
    one, other = list_fingerprints(make_plan(verdicts=tuple(topics)))
    assert list_fingerprints(make_plan(verdicts=(topics[1],))) == [other]
    assert one != other


def test_sarif_run_id_contains_environment() -> None:
    made = build_plan_sarif(SAMPLES["blocked"])["runs"][0]
    assert made["automationDetails"]["id"] == "kdeclare/plan/payments/sandbox/"


def test_sarif_marks_failed_command() -> None:
    failed = build_problem_sarif([error("unreachable", "Cluster unreachable", "No route.", hint="Look.")])
    (result,) = check_log(failed)
    assert failed["runs"][0]["invocations"] == [{"executionSuccessful": False}]
    said = result["message"]["text"].splitlines()
    assert said[:-1] == ["Cluster unreachable", "No route.", "Hint: Look."]
    assert build_plan_sarif(SAMPLES["errors"])["runs"][0]["invocations"] == [{"executionSuccessful": True}]


def test_sarif_results_are_sorted_like_text() -> None:
    made = SAMPLES["errors"]
    assert [r["ruleId"] for r in check_log(build_plan_sarif(made))] == [
        d.code for d in sort_diagnostics(made.diagnostics)
    ]


@pytest.mark.parametrize(
    ("file", "root", "folder", "uri"),
    [
        ("manifests/a.yaml", "", "", "manifests/a.yaml"),
        ("./manifests//x/../a.yaml", "", "", "manifests/a.yaml"),
        ("a b#c?d%e:f.yaml", "", "", "a%20b%23c%3Fd%25e%3Af.yaml"),
        ("mañana.yaml", "", "", "ma%C3%B1ana.yaml"),
        ("manifests/a.yaml", "/repo", "/repo/kafka", "kafka/manifests/a.yaml"),
        ("../a.yaml", "/repo", "/repo/kafka", "a.yaml"),
        ("/repo/kafka/a.yaml", "/repo", "/repo/kafka", "kafka/a.yaml"),
        ("/elsewhere/a b.yaml", "/repo", "/repo", "file:///elsewhere/a%20b.yaml"),
        ("../a.yaml", "/repo", "/repo", "file:///a.yaml"),
    ],
)
def test_find_location_builds_uri_from_checkout(file: str, root: str, folder: str, uri: str) -> None:
    found = find_location(SourcePosition(file, 2, 3), Checkout(root, folder))
    assert found
    physical = found.document()["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == uri
    assert ("uriBaseId" in physical["artifactLocation"]) is not uri.startswith("file:")
    assert physical["region"] == {"startLine": 2, "startColumn": 3}


def test_find_location_without_position_or_line() -> None:
    assert find_location(None, Checkout()) is None
    assert find_location(SourcePosition("", 1, 1), Checkout()) is None
    found = find_location(SourcePosition("a.yaml", 0, 0), Checkout())
    assert found
    assert "region" not in found.document()["physicalLocation"]


def test_sarif_contains_no_local_paths() -> None:
    assert str(Path.cwd()) not in json.dumps(build_plan_sarif(SAMPLES["judged"], Checkout("/repo", "/repo")))
