"""Formats of stdout: text, JSON, a comment on a pull request, file annotations."""

import json
from pathlib import Path

import pytest
from sarif_pydantic import Sarif

from kdeclare.core.live.faults import Fault
from kdeclare.engine.planning.planfile import load_plan
from tests.unit.cli.command_line import CommandLine, CommandResult


def plan_with_denial(kdeclare: CommandLine, *more: str) -> CommandResult:
    """A plan of two topics, one of which a policy of the brokers denies."""
    kdeclare.topic("orders")
    kdeclare.topic("payments")
    kdeclare.cluster.faults.fail(
        Fault("POLICY_VIOLATION", "No topics on Fridays."), method="create_topics", nth=None, item="orders"
    )
    return kdeclare("plan", *more)


def parse_results(ran: CommandResult) -> list[tuple[str, str, str | None]]:
    """Return rule, level and file of each result."""
    document = json.loads(ran.out)
    Sarif.model_validate(document)
    found = []
    for result in document["runs"][0]["results"]:
        places = result.get("locations", ())
        files = [place["physicalLocation"]["artifactLocation"]["uri"] for place in places]
        found.append((result["ruleId"], result["level"], files[0] if files else None))
    return found


def test_plan_as_markdown_shows_denial(kdeclare: CommandLine) -> None:
    ran = plan_with_denial(kdeclare, "--format", "markdown", "--out", "it.plan")
    assert ran.code == 3
    assert ran.out.startswith("## Plan for shop/lab on lab:9092: 1 to create, 1 blocked.\n")
    assert "- **denied** by a broker policy, <code>Topic/orders</code>" in ran.out
    assert "No topics on Fridays." in ran.out
    assert ran.err == "The plan was saved to it.plan. To apply exactly this plan: kdeclare apply it.plan\n"
    assert f"Plan <code>{load_plan(kdeclare.folder / 'it.plan').plan_id}</code>" in ran.out
    assert kdeclare("show", "it.plan", "--format", "markdown").out == ran.out


def test_plan_as_sarif_equals_saved_plan(kdeclare: CommandLine) -> None:
    ran = plan_with_denial(kdeclare, "--format", "sarif", "--out", "it.plan")
    assert ran.code == 3
    assert parse_results(ran) == [("policy/broker", "error", "manifests/orders.yaml")]
    shown = kdeclare("show", "it.plan", "--format", "sarif")
    assert (shown.code, shown.out) == (0, ran.out)


def test_denial_is_shown_in_text_and_json(kdeclare: CommandLine) -> None:
    assert "denied by a broker policy: No topics on Fridays." in plan_with_denial(kdeclare).out
    (verdict,) = json.loads(plan_with_denial(kdeclare, "--format", "json").out)["verdicts"]
    assert verdict == {
        "policy": "broker",
        "resource": "Topic/orders",
        "outcome": "deny",
        "message": "No topics on Fridays.",
    }


def test_apply_json_reports_partial_denial(kdeclare: CommandLine) -> None:
    plan_with_denial(kdeclare)
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


def test_validate_as_sarif_lists_errors(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert parse_results(kdeclare("validate", "--format", "sarif")) == []
    kdeclare.topic("payments", partitons=1)
    ran = kdeclare("validate", "--format", "sarif")
    assert ran.code == 1
    assert parse_results(ran) == [("unknown-field", "error", "manifests/payments.yaml")]


def test_sarif_paths_start_at_repository_root(kdeclare: CommandLine) -> None:
    kdeclare.topic("payments", partitons=1)
    (kdeclare.folder / ".git").mkdir()
    kdeclare.monkeypatch.chdir(kdeclare.folder / "manifests")
    ran = kdeclare("validate", "--project", "../kdeclare.yaml", "--format", "sarif")
    assert parse_results(ran) == [("unknown-field", "error", "manifests/payments.yaml")]


def test_sarif_uses_project_file_for_results_without_file(kdeclare: CommandLine) -> None:
    orders, payments = kdeclare.topic("orders"), kdeclare.topic("payments")
    assert kdeclare("apply", "--yes").code == 0
    orders.unlink()
    payments.write_text(payments.read_text().replace("partitions: 1", "configs: {min.insync.replicas: 2}"))
    assert sorted(parse_results(kdeclare("plan", "--format", "sarif"))) == [
        ("min-isr-above-factor", "warning", "manifests/payments.yaml"),
        ("orphaned", "warning", "kdeclare.yaml"),
    ]


def test_sarif_uses_project_file_in_subfolder(kdeclare: CommandLine) -> None:
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
    assert parse_results(kdeclare("plan", *below)) == expected
    assert parse_results(kdeclare("show", "it.plan", *below)) == expected
    kdeclare.monkeypatch.chdir(kdeclare.folder / "kafka")
    assert parse_results(kdeclare("plan", "--format", "sarif")) == expected
    ran = kdeclare("plan", "--format", "sarif", "--env", "labb")
    assert parse_results(ran) == [("unknown-environment", "error", "kafka/kdeclare.yaml")]


@pytest.mark.parametrize("command", ["plan", "validate"])
def test_sarif_run_id_is_stable_per_command(kdeclare: CommandLine, command: str) -> None:
    """GitHub replaces an earlier log with the same id."""
    ids = set()
    kdeclare.topic("orders", partitons=1)
    ids.add(read_run_id(kdeclare(command, "--format", "sarif")))
    kdeclare.topic("orders")
    ids.add(read_run_id(kdeclare(command, "--format", "sarif")))
    ids.add(read_run_id(kdeclare(command, "--format", "sarif", "--env", "lab")))
    assert ids == {{"plan": "kdeclare/plan/shop/lab/", "validate": "kdeclare/validate/"}[command]}


def test_sarif_run_id_omits_unreadable_project_name(kdeclare: CommandLine) -> None:
    kdeclare.write("kdeclare.yaml", "Project", "shop", environmnts={})
    assert read_run_id(kdeclare("plan", "--format", "sarif")) == "kdeclare/problem/"
    assert read_run_id(kdeclare("validate", "--format", "sarif")) == "kdeclare/validate/"
    (kdeclare.folder / "kdeclare.yaml").unlink()
    kdeclare.topic("orders", partitons=1)
    assert read_run_id(kdeclare("plan", "--format", "sarif")) == "kdeclare/plan/default/default/"


def read_run_id(ran: CommandResult) -> str:
    """Return the category of the log."""
    found = json.loads(ran.out)["runs"][0]["automationDetails"]["id"]
    assert isinstance(found, str)
    return found


def test_plan_failure_as_sarif(kdeclare: CommandLine) -> None:
    kdeclare.topic("payments", partitons=1)
    ran = kdeclare("plan", "--format", "sarif")
    assert ran.code == 1
    assert parse_results(ran) == [("unknown-field", "error", "manifests/payments.yaml")]
    assert json.loads(ran.out)["runs"][0]["invocations"] == [{"executionSuccessful": False}]
    assert not ran.err


def test_plan_failure_as_markdown(kdeclare: CommandLine) -> None:
    kdeclare.topic("payments", partitons=1)
    ran = kdeclare("plan", "--format", "markdown")
    assert ran.code == 1
    assert ran.out.startswith("## kdeclare failed: 1 error.\n\n- **error** ")
    assert "manifests/payments.yaml" in ran.out
    assert not ran.err


@pytest.mark.parametrize("output", ["markdown", "sarif"])
def test_show_refuses_invalid_plan_file_in_every_format(
    kdeclare: CommandLine, tmp_path: Path, output: str
) -> None:
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
def test_unsupported_format_is_usage_error(kdeclare: CommandLine, line: str) -> None:
    ran = kdeclare(*line.split())
    assert ran.code == 64
    assert "--format" in ran.err
    assert not ran.out


def add_violated_policy(kdeclare: CommandLine) -> None:
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


def test_denied_plan_hints_what_to_do(kdeclare: CommandLine) -> None:
    add_violated_policy(kdeclare)
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "denied by policy bounds: " in ran.out
    assert "Policies: 2 evaluated. Verdicts: 1 allow, 1 deny.\n  hint: Change the manifest, ask" in ran.out
    comment = kdeclare("plan", "--format", "markdown").out
    assert "- **denied** by policy <code>bounds</code>, <code>Topic/orders</code>" in comment
    assert "Hint: Change the manifest" in comment
    ran = kdeclare("plan", "--format", "sarif")
    assert parse_results(ran) == [("policy/bounds", "error", "manifests/orders.yaml")]


def test_policy_override_is_shown_with_reason(kdeclare: CommandLine) -> None:
    add_violated_policy(kdeclare)
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
    assert parse_results(ran) == [("policy/bounds", "warning", "manifests/orders.yaml")]
    applied = json.loads(kdeclare("apply", "it.plan", "--yes", "--format", "json").out)
    assert applied["outcome"] == "done"
    assert [v.get("override") for v in applied["verdicts"]] == ["a migration", None]


def test_validate_denial_has_exit_code_of_denial(kdeclare: CommandLine) -> None:
    rule = {"rule": 'topic.startsWith("x-")', "message": "names begin with x-"}
    kdeclare.write("manifests/names.yaml", "Policy", "names", **rule)
    kdeclare.topic("orders")
    ran = kdeclare("validate")
    assert ran.code == 3
    assert ran.out.endswith("Not valid: 1 denial in 2 files.\n")
    assert json.loads(kdeclare("validate", "--format", "json").out)["valid"] is False
    assert parse_results(kdeclare("validate", "--format", "sarif")) == [
        ("policy-violation", "error", "manifests/orders.yaml")
    ]
