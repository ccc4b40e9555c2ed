"""Formats of stdout: text, JSON, a comment on a pull request, annotations of files."""

import json
from pathlib import Path

import pytest
from sarif_pydantic import Sarif

from kdeclare.core.live.faults import Fault
from kdeclare.engine.planning.planfile import load_plan
from tests.unit.cli.command_line import CommandLine, Ran


def denied(kdeclare: CommandLine, *more: str) -> Ran:
    """A plan of two topics, one of which a policy of the brokers denies."""
    kdeclare.topic("orders")
    kdeclare.topic("payments")
    kdeclare.cluster.faults.fail(
        Fault("POLICY_VIOLATION", "No topics on Fridays."), method="create_topics", nth=None, item="orders"
    )
    return kdeclare("plan", *more)


def results(ran: Ran) -> list[tuple[str, str, str | None]]:
    """Return rule, level and file of each result."""
    document = json.loads(ran.out)
    Sarif.model_validate(document)
    found = []
    for result in document["runs"][0]["results"]:
        places = result.get("locations", ())
        files = [place["physicalLocation"]["artifactLocation"]["uri"] for place in places]
        found.append((result["ruleId"], result["level"], files[0] if files else None))
    return found


def test_a_plan_as_a_comment(kdeclare: CommandLine) -> None:
    ran = denied(kdeclare, "--format", "markdown", "--out", "it.plan")
    assert ran.code == 3
    assert ran.out.startswith("## Plan for shop/lab on lab:9092: 1 to create, 1 blocked.\n")
    assert "- **denied** by a broker policy, <code>Topic/orders</code>" in ran.out
    assert "No topics on Fridays." in ran.out
    assert ran.err == "The plan was saved to it.plan. To apply exactly this plan: kdeclare apply it.plan\n"
    assert f"Plan <code>{load_plan(kdeclare.folder / 'it.plan').plan_id}</code>" in ran.out
    assert kdeclare("show", "it.plan", "--format", "markdown").out == ran.out


def test_a_plan_as_annotations(kdeclare: CommandLine) -> None:
    ran = denied(kdeclare, "--format", "sarif", "--out", "it.plan")
    assert ran.code == 3
    assert results(ran) == [("policy/broker", "error", "manifests/orders.yaml")]
    shown = kdeclare("show", "it.plan", "--format", "sarif")
    assert (shown.code, shown.out) == (0, ran.out)


def test_what_policies_said_is_in_text_and_json_too(kdeclare: CommandLine) -> None:
    assert "denied by a broker policy: No topics on Fridays." in denied(kdeclare).out
    (verdict,) = json.loads(denied(kdeclare, "--format", "json").out)["verdicts"]
    assert verdict == {
        "policy": "broker",
        "resource": "Topic/orders",
        "outcome": "deny",
        "message": "No topics on Fridays.",
    }


def test_a_run_that_the_brokers_refuse_in_part(kdeclare: CommandLine) -> None:
    denied(kdeclare)
    ran = kdeclare("apply", "--yes", "--no-preflight", "--format", "json")
    document = json.loads(ran.out)
    assert ran.code == document["exit_code"] == 3
    assert document["outcome"] == "denied"
    assert document["counts"]["denied"] == 1
    assert [v["message"] for v in document["verdicts"]] == ["No topics on Fridays."]
    assert kdeclare.topics == {"payments"}
    ran = kdeclare("apply", "--yes", "--no-preflight")
    assert ran.code == 3
    assert "Denied by a broker policy:\n  ✗ topic.create Topic/orders\n" in ran.out


def test_annotations_of_validate(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert results(kdeclare("validate", "--format", "sarif")) == []
    kdeclare.topic("payments", partitons=1)
    ran = kdeclare("validate", "--format", "sarif")
    assert ran.code == 1
    assert results(ran) == [("unknown-field", "error", "manifests/payments.yaml")]


def test_files_are_named_from_the_top_of_the_checkout(kdeclare: CommandLine) -> None:
    kdeclare.topic("payments", partitons=1)
    (kdeclare.folder / ".git").mkdir()
    kdeclare.monkeypatch.chdir(kdeclare.folder / "manifests")
    ran = kdeclare("validate", "--project", "../kdeclare.yaml", "--format", "sarif")
    assert results(ran) == [("unknown-field", "error", "manifests/payments.yaml")]


def test_what_has_no_file_is_shown_at_the_project_file(kdeclare: CommandLine) -> None:
    orders, payments = kdeclare.topic("orders"), kdeclare.topic("payments")
    assert kdeclare("apply", "--yes").code == 0
    orders.unlink()
    payments.write_text(payments.read_text().replace("partitions: 1", "configs: {min.insync.replicas: 2}"))
    assert sorted(results(kdeclare("plan", "--format", "sarif"))) == [
        ("min-isr-above-factor", "warning", "manifests/payments.yaml"),
        ("orphaned", "warning", "kdeclare.yaml"),
    ]


def test_a_project_below_is_where_findings_about_no_file_are_shown(kdeclare: CommandLine) -> None:
    orders = kdeclare.topic("orders")
    kdeclare.topic("payments")
    assert kdeclare("apply", "--yes").code == 0
    orders.unlink()
    (kdeclare.folder / ".git").mkdir()
    kdeclare("plan", "--out", "it.plan")
    for name in ("kdeclare.yaml", "manifests", "state"):
        (kdeclare.folder / "kafka").mkdir(exist_ok=True)
        (kdeclare.folder / name).rename(kdeclare.folder / "kafka" / name)
    below = ("--project", "kafka/kdeclare.yaml", "--format", "sarif")
    expected = [("orphaned", "warning", "kafka/kdeclare.yaml")]
    assert results(kdeclare("plan", *below)) == expected
    assert results(kdeclare("show", "it.plan", *below)) == expected
    kdeclare.monkeypatch.chdir(kdeclare.folder / "kafka")
    assert results(kdeclare("plan", "--format", "sarif")) == expected
    ran = kdeclare("plan", "--format", "sarif", "--env", "labb")
    assert results(ran) == [("unknown-environment", "error", "kafka/kdeclare.yaml")]


@pytest.mark.parametrize("command", ["plan", "validate"])
def test_a_host_of_code_closes_what_was_mended(kdeclare: CommandLine, command: str) -> None:
    """GitHub replaces an earlier log with the same id."""
    ids = set()
    kdeclare.topic("orders", partitons=1)
    ids.add(run_id(kdeclare(command, "--format", "sarif")))
    kdeclare.topic("orders")
    ids.add(run_id(kdeclare(command, "--format", "sarif")))
    ids.add(run_id(kdeclare(command, "--format", "sarif", "--env", "lab")))
    assert ids == {{"plan": "kdeclare/plan/shop/lab/", "validate": "kdeclare/validate/"}[command]}


def test_a_project_file_with_mistakes_has_no_name_to_go_by(kdeclare: CommandLine) -> None:
    kdeclare.write("kdeclare.yaml", "Project", "shop", environmnts={})
    assert run_id(kdeclare("plan", "--format", "sarif")) == "kdeclare/problem/"
    assert run_id(kdeclare("validate", "--format", "sarif")) == "kdeclare/validate/"
    (kdeclare.folder / "kdeclare.yaml").unlink()
    kdeclare.topic("orders", partitons=1)
    assert run_id(kdeclare("plan", "--format", "sarif")) == "kdeclare/plan/default/default/"


def run_id(ran: Ran) -> str:
    """Return the category of the log."""
    found = json.loads(ran.out)["runs"][0]["automationDetails"]["id"]
    assert isinstance(found, str)
    return found


def test_a_failure_as_annotations(kdeclare: CommandLine) -> None:
    kdeclare.topic("payments", partitons=1)
    ran = kdeclare("plan", "--format", "sarif")
    assert ran.code == 1
    assert results(ran) == [("unknown-field", "error", "manifests/payments.yaml")]
    assert json.loads(ran.out)["runs"][0]["invocations"] == [{"executionSuccessful": False}]
    assert not ran.err


def test_a_failure_as_a_comment(kdeclare: CommandLine) -> None:
    kdeclare.topic("payments", partitons=1)
    ran = kdeclare("plan", "--format", "markdown")
    assert ran.code == 1
    assert ran.out.startswith("## kdeclare failed: 1 error.\n\n- **error** ")
    assert "manifests/payments.yaml" in ran.out
    assert not ran.err


@pytest.mark.parametrize("output", ["markdown", "sarif"])
def test_a_plan_file_that_is_none(kdeclare: CommandLine, tmp_path: Path, output: str) -> None:
    (tmp_path / "it.plan").write_text("{}")
    ran = kdeclare("show", "it.plan", "--format", output)
    assert ran.code == 1
    assert "Plan file refused" in ran.out


@pytest.mark.parametrize(
    "line",
    [
        "validate --format markdown",
        "apply --format sarif",
        "apply --format markdown",
        "rollback --format sarif",
        "status --format markdown",
    ],
)
def test_formats_that_a_command_does_not_have(kdeclare: CommandLine, line: str) -> None:
    ran = kdeclare(*line.split())
    assert ran.code == 64
    assert "--format" in ran.err
    assert not ran.out


def bounded(kdeclare: CommandLine) -> None:
    """A project whose policy allows at most 4 partitions, and a topic with 12."""
    kdeclare.write(
        "kdeclare.yaml",
        "Project",
        "shop",
        policies=[
            {"name": "bounds", "class": "kdeclare.policy.rules:PartitionBounds", "config": {"max": 4}},
            {
                "name": "factor",
                "class": "kdeclare.policy.rules:ReplicationFactorBounds",
                "config": {"min": 1},
            },
        ],
        environments={"lab": {"bootstrapServers": "lab:9092"}},
    )
    kdeclare.topic("orders", partitions=12)


def test_a_team_that_was_denied_is_told_what_to_do(kdeclare: CommandLine) -> None:
    bounded(kdeclare)
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "denied by policy bounds: " in ran.out
    assert "Policies: 2 evaluated, 1 of 2 verdicts allow.\n  hint: Change the manifest, ask" in ran.out
    comment = kdeclare("plan", "--format", "markdown").out
    assert "- **denied** by policy <code>bounds</code>, <code>Topic/orders</code>" in comment
    assert "Hint: Change the manifest" in comment
    ran = kdeclare("plan", "--format", "sarif")
    assert results(ran) == [("policy/bounds", "error", "manifests/orders.yaml")]


def test_an_override_is_said_with_its_reason(kdeclare: CommandLine) -> None:
    bounded(kdeclare)
    override = ("--override-policy", "bounds", "--reason", "a migration")
    ran = kdeclare("plan", "--out", "it.plan", *override)
    assert ran.code == 0
    assert "overridden policy bounds: " in ran.out
    assert "\n        reason: a migration\n" in ran.out
    assert "hint: change the manifest" not in ran.out
    assert (
        "**overridden** policy <code>bounds</code>" in kdeclare("show", "it.plan", "--format", "markdown").out
    )
    ran = kdeclare("show", "it.plan", "--format", "sarif")
    assert results(ran) == [("policy/bounds", "warning", "manifests/orders.yaml")]
    applied = json.loads(kdeclare("apply", "it.plan", "--yes", "--format", "json").out)
    assert applied["outcome"] == "done"
    assert [v.get("override") for v in applied["verdicts"]] == ["a migration", None]


def test_validate_denies_with_the_code_of_a_denial(kdeclare: CommandLine) -> None:
    rule = {"rule": 'topic.startsWith("x-")', "message": "names begin with x-"}
    kdeclare.write("manifests/names.yaml", "Policy", "names", **rule)
    kdeclare.topic("orders")
    ran = kdeclare("validate")
    assert ran.code == 3
    assert ran.out.endswith("Not valid: 1 denial in 2 files.\n")
    assert json.loads(kdeclare("validate", "--format", "json").out)["valid"] is False
    assert results(kdeclare("validate", "--format", "sarif")) == [
        ("policy-violation", "error", "manifests/orders.yaml")
    ]
