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
from tests.unit.report.sample_plans import ALLOW, DENY, ORDERS, SAMPLES, WARN, place, plan
from tests.unit.report.test_markdown import hostile_plan

UNKNOWN_TO_THE_MODEL = {"columnKind"}
"""Properties of the standard (section 3.14.17) that the package of models lacks."""


def named(model: BaseModel) -> Iterator[str]:
    """Return the properties at any depth that the models do not know."""
    yield from model.model_extra or ()
    for name in type(model).model_fields:
        for value in _each(getattr(model, name)):
            yield from named(value)


def _each(value: Any) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _each(item)


def check(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Check the properties of every log, and return its results."""
    document = json.loads(json.dumps(document))
    model = Sarif.model_validate(document)
    assert set(named(model)) <= UNKNOWN_TO_THE_MODEL
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
def test_every_sample(name: str) -> None:
    made = SAMPLES[name]
    results = check(build_plan_sarif(made))
    acting = [c for c in made.changes if c.action is not Action.NO_OP and not c.blocked]
    risks = sum(risk is not Risk.SAFE for change in acting for risk in change.risks)
    assert len(results) == len(made.diagnostics) + sum(v.outcome is not ALLOW for v in made.verdicts) + risks


def test_a_whole_log() -> None:
    text = json.dumps(build_plan_sarif(SAMPLES["judged"]), indent=2, ensure_ascii=False) + "\n"
    text = text.replace(f'"version": "{_version()}"', '"version": "VERSION"')
    check_golden("plan-judged", text, "sarif")


def _version() -> str:
    from kdeclare.version import VERSION

    return VERSION


@given(st.text(min_size=1, max_size=20))
def test_whatever_names_and_messages_there_are(text: str) -> None:
    made = hostile_plan(text)
    for result in check(build_plan_sarif(made)):
        assert "](" not in result["message"]["text"]
    check(build_problem_sarif(made.diagnostics))


def test_levels() -> None:
    found = (error("e", "E"), denied("d", "D"), warning("w", "W"), info("i", "I"))
    results = check(build_validation_sarif(ValidationView(1, 1, found)))
    assert [r["level"] for r in results] == ["error", "error", "warning", "note"]
    verdicts = (
        Verdict("p", str(ORDERS), DENY, "no"),
        Verdict("q", str(ORDERS), WARN, "careful"),
        Verdict("r", str(ORDERS), WARN, "no", override="a test"),
        Verdict("s", str(ORDERS), ALLOW),
    )
    results = check(build_plan_sarif(plan(verdicts=verdicts)))
    assert [(r["ruleId"], r["level"]) for r in results] == [
        ("policy/p", "error"),
        ("policy/r", "warning"),
        ("policy/q", "warning"),
    ]
    said = "Policy r is overridden for Topic/orders: no\nReason: a test\n"
    assert results[1]["message"]["text"] == said + "This result has no position in a file."
    assert results[1]["properties"]["override"] == "a test"


def region(result: dict[str, Any]) -> tuple[str, int, int]:
    """Return file, line and column."""
    physical = result["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], *physical["region"].values()


def test_a_verdict_stands_at_its_change() -> None:
    results = {r["ruleId"]: r for r in check(build_plan_sarif(SAMPLES["blocked"]))}
    assert region(results["policy/bounds"]) == ("manifests/payments.yaml", 14, 1)
    for name in ("policy/factor", "prevent-destroy"):  # an unchanged resource, and an orphan
        assert region(results[name]) == ("manifests/payments.yaml", 1, 1)
        assert results[name]["message"]["text"].endswith("\nThis result has no position in a file.")
    assert "no place of its own" not in results["policy/bounds"]["message"]["text"]


def test_what_has_no_place_is_shown_at_the_project_file() -> None:
    nowhere = error("nowhere", "Nowhere")
    (result,) = check(build_problem_sarif([nowhere]))
    assert region(result) == ("kdeclare.yaml", 1, 1)
    there = Checkout("/repo", "/repo/kafka", "blue.yaml")
    somewhere = error("somewhere", "Somewhere", place=SourcePosition("a.yaml", 5, 6))
    shown = check(build_problem_sarif([nowhere, somewhere], there))
    assert [region(r) for r in shown] == [("kafka/blue.yaml", 1, 1), ("kafka/a.yaml", 5, 6)]
    assert [r["partialFingerprints"] for r in shown[:1]] == [result["partialFingerprints"]]


@pytest.mark.slow
def test_a_log_has_no_more_results_than_are_shown() -> None:
    verdicts = [Verdict("p", f"Topic/t{n}", WARN, "careful") for n in range(MAX_RESULTS)]
    assert len(check(build_plan_sarif(plan(verdicts=tuple(verdicts))))) == MAX_RESULTS
    verdicts += [Verdict("q", "Topic/x", DENY, "no")]
    results = check(build_plan_sarif(plan(verdicts=tuple(verdicts), diagnostics=(info("i", "I"),))))
    assert len(results) == MAX_RESULTS
    assert [results[0]["ruleId"], results[-1]["ruleId"]] == ["policy/q", "results-left-out"]
    assert "there would be 3 more results." in results[-1]["message"]["text"]
    assert "i" not in {r["ruleId"] for r in results}, "the worst are kept"


def test_a_diagnostic_stands_at_its_own_place_or_else_at_its_change() -> None:
    own = error("own", "Own", place=SourcePosition("other.yaml", 3, 5), resource=str(ORDERS))
    none = denied("none", "None", resource=str(ORDERS))
    made = replace(SAMPLES["create"], diagnostics=(own, none))
    assert [region(r) for r in check(build_plan_sarif(made))] == [
        ("other.yaml", 3, 5),
        ("manifests/orders.yaml", 1, 1),
    ]


def test_the_brokers_own_policy_is_a_rule_of_its_own() -> None:
    made = plan(verdicts=(Verdict(SYSTEM_POLICY, str(ORDERS), DENY, "no"),))
    (rule,) = build_plan_sarif(made)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["id"] == "policy/broker"
    assert "cannot be overridden" in rule["help"]["text"]
    assert "--override-policy" not in rule["help"]["text"]


def prints(made: Plan) -> list[str]:
    return [r["partialFingerprints"][FINGERPRINT_KEY] for r in check(build_plan_sarif(made))]


def moved(item: Diagnostic) -> Diagnostic:
    return replace(
        item, place=item.place and replace(item.place, line=item.place.line + 7), detail="Otherwise."
    )


def test_a_finding_is_the_same_when_its_line_and_its_words_change() -> None:
    made = SAMPLES["blocked"]
    later = replace(
        made,
        changes=tuple(replace(c, source=c.source and place("payments", 99)) for c in made.changes),
        diagnostics=tuple(moved(d) for d in made.diagnostics),
        verdicts=tuple(replace(v, message="otherwise") for v in made.verdicts),
    )
    first, then = prints(made), prints(later)
    assert first[:2] == then[:2], "the guard's and the denial, whose file is the same"
    assert first[2] != then[2], "it is said of another file now"


def test_findings_that_differ_in_nothing_but_their_line_are_told_apart() -> None:
    twins = [error("e", "E", place=SourcePosition("a.yaml", line, 1)) for line in (1, 2, 3)]
    assert len(check(build_problem_sarif(twins))) == 3
    assert prints(plan(diagnostics=tuple(twins[:1]))) == prints(plan(diagnostics=tuple(twins[2:])))
    topics = [Verdict("p", "Reassignment/r", DENY, "no", topic) for topic in ("a", "b")]
    one, other = prints(plan(verdicts=tuple(topics)))
    assert prints(plan(verdicts=(topics[1],))) == [other]
    assert one != other


def test_environments_are_uploaded_beside_each_other() -> None:
    made = build_plan_sarif(SAMPLES["blocked"])["runs"][0]
    assert made["automationDetails"]["id"] == "kdeclare/plan/payments/sandbox/"


def test_a_command_that_failed_says_so() -> None:
    failed = build_problem_sarif([error("unreachable", "Cluster unreachable", "No route.", hint="Look.")])
    (result,) = check(failed)
    assert failed["runs"][0]["invocations"] == [{"executionSuccessful": False}]
    said = result["message"]["text"].splitlines()
    assert said[:-1] == ["Cluster unreachable", "No route.", "Hint: Look."]
    assert build_plan_sarif(SAMPLES["errors"])["runs"][0]["invocations"] == [{"executionSuccessful": True}]


def test_the_order_is_that_of_the_text() -> None:
    made = SAMPLES["errors"]
    assert [r["ruleId"] for r in check(build_plan_sarif(made))] == [
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
def test_files(file: str, root: str, folder: str, uri: str) -> None:
    found = find_location(SourcePosition(file, 2, 3), Checkout(root, folder))
    assert found
    physical = found.document()["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == uri
    assert ("uriBaseId" in physical["artifactLocation"]) is not uri.startswith("file:")
    assert physical["region"] == {"startLine": 2, "startColumn": 3}


def test_no_place_and_no_line() -> None:
    assert find_location(None, Checkout()) is None
    assert find_location(SourcePosition("", 1, 1), Checkout()) is None
    found = find_location(SourcePosition("a.yaml", 0, 0), Checkout())
    assert found
    assert "region" not in found.document()["physicalLocation"]


def test_nothing_of_this_machine_is_in_a_log() -> None:
    assert str(Path.cwd()) not in json.dumps(build_plan_sarif(SAMPLES["judged"], Checkout("/repo", "/repo")))
