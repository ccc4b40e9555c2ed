"""``-`` instead of a path: manifests that another program pipes into kdeclare."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.command_line import CommandLine

_TOPIC = "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {{name: {}}}\nspec: {{partitions: {}}}\n"
_PIPED = f"---\n# Source: chart/topics.yaml\n{_TOPIC.format('orders', 2)}---\n{_TOPIC.format('payments', 3)}"
_ROOT = Path(__file__).parents[3]


def test_plan_and_apply_read_manifests_from_stdin(kdeclare: CommandLine) -> None:
    planned = kdeclare("plan", "-", "--format", "json", piped=_PIPED)
    changes = json.loads(planned.out)["changes"]
    assert {change["id"] for change in changes} == {"Topic/orders", "Topic/payments"}
    assert changes[0]["source"] == {"file": "<stdin>", "line": 5, "column": 18}
    assert kdeclare("apply", "-", "--yes", piped=_PIPED).code == 0
    assert kdeclare.topics == {"orders", "payments"}
    again = kdeclare("plan", "-", "--detailed-exitcode", piped=_PIPED)
    assert (again.code, "No changes." in again.out) == (0, True)


def test_stream_leaves_other_resources_of_the_project_alone(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("apply", "--yes").code == 0
    (kdeclare.folder / "manifests/orders.yaml").unlink()
    planned = kdeclare("plan", "-", "--allow-deletes", "--format", "json", piped=_TOPIC.format("users", 1))
    document = json.loads(planned.out)
    assert [change["id"] for change in document["changes"]] == ["Topic/users"]
    assert document["summary"]["orphaned"] == 0
    assert kdeclare("apply", "-", "--allow-deletes", "--yes", piped=_TOPIC.format("users", 1)).code == 0
    assert kdeclare.topics == {"orders", "users"}


def test_stream_is_combined_with_paths_and_gets_the_defaults_of_the_project(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    defaults = {"kind": "Topic", "defaults": {"configs": {"retention.ms": 5}}}
    metadata = {"name": "all"}
    document = {"apiVersion": "kdeclare/v1", "kind": "Defaults", "metadata": metadata, "spec": defaults}
    (kdeclare.folder / "manifests/defaults.yaml").write_text(yaml.safe_dump(document))
    planned = kdeclare(
        "plan", "manifests/orders.yaml", "-", "--format", "json", piped=_TOPIC.format("users", 1)
    )
    fields = {
        change["id"]: [field["path"] for field in change["fields"]]
        for change in json.loads(planned.out)["changes"]
    }
    assert fields.keys() == {"Topic/orders", "Topic/users"}
    assert all("configs.retention.ms" in paths for paths in fields.values())


def test_validate_reports_positions_in_stream(kdeclare: CommandLine) -> None:
    ran = kdeclare("validate", "-", piped=_PIPED.replace("partitions: 3", "partitons: 3"))
    assert ran.code == 1
    assert "<stdin>:11:8" in ran.out
    assert kdeclare("validate", "-", piped=_PIPED).code == 0
    ran = kdeclare("validate", "-", piped="a: [\n")
    assert (ran.code, "<stdin>:2:1" in ran.out) == (1, True)


def test_resource_in_stream_and_file_is_declared_twice(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("validate", "-", "manifests", piped=_TOPIC.format("orders", 2))
    assert ran.code == 1
    assert "<stdin>:3:18" in ran.out
    assert "manifests/orders.yaml:" in ran.out


def test_stream_in_json_and_utf16_is_loaded(kdeclare: CommandLine) -> None:
    text = json.dumps(yaml.safe_load(_TOPIC.format("orders", 1)))
    assert "Topic/orders" in kdeclare("plan", "-", piped=text).out
    assert "Topic/orders" in kdeclare("plan", "-", piped=_TOPIC.format("orders", 1).encode("utf-16")).out


def test_policy_check_reads_stream(kdeclare: CommandLine) -> None:
    kdeclare.write(
        "manifests/policy.yaml",
        "Policy",
        "small",
        rule="post.partitions < 3",
        actions=["CREATE"],
        message="At most 2 partitions.",
    )
    ran = kdeclare("policy", "check", "-", piped=_PIPED)
    assert ran.code == 3
    assert "payments" in ran.out
    assert "orders" not in ran.out


@pytest.mark.parametrize("piped", ["", "\n\n", "# nothing\n", "---\n---\n"])
@pytest.mark.parametrize("command", [("validate",), ("plan",), ("apply", "--yes")])
def test_empty_stream_is_an_error(kdeclare: CommandLine, command: tuple[str, ...], piped: str) -> None:
    ran = kdeclare(*command, "-", piped=piped)
    assert ran.code == 1
    assert "No manifests on standard input" in ran.out + ran.err


@pytest.mark.parametrize("command", ["plan", "validate", "apply"])
def test_terminal_as_stream_is_wrong_usage(kdeclare: CommandLine, command: str) -> None:
    ran = kdeclare(command, "-", answer="yes\n")
    assert ran.code == 64
    assert "is a terminal" in ran.err
    assert "| kdeclare plan -" in ran.err


@pytest.mark.parametrize("command", ["plan", "validate", "apply"])
def test_stream_twice_is_wrong_usage(kdeclare: CommandLine, command: str) -> None:
    ran = kdeclare(command, "-", "-", piped=_PIPED)
    assert ran.code == 64
    assert "given twice" in ran.err


def test_apply_of_stream_needs_yes(kdeclare: CommandLine) -> None:
    ran = kdeclare("apply", "-", piped=_PIPED)
    assert ran.code == 64
    assert "--yes" in ran.err
    assert kdeclare.topics == set()


def test_stream_with_plan_file_is_wrong_usage(kdeclare: CommandLine) -> None:
    assert kdeclare("plan", "-", "--out", "it.plan", piped=_PIPED).code == 0
    assert kdeclare("apply", "it.plan", "-", "--yes", piped=_PIPED).code == 64
    assert kdeclare.topics == set()
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert kdeclare.topics == {"orders", "payments"}


def test_sarif_attaches_findings_in_stream_to_the_project_file(kdeclare: CommandLine) -> None:
    ran = kdeclare("validate", "-", "--format", "sarif", piped=_PIPED.replace("partitions", "partitons"))
    results = json.loads(ran.out)["runs"][0]["results"]
    uris = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results}
    assert uris == {"kdeclare.yaml"}
    assert "stdin" not in ran.out


@pytest.mark.slow
@pytest.mark.parametrize(("redirection", "code"), [("<&-", 1), ("< topics.yaml", 0)])
def test_validate_reads_redirected_stdin(tmp_path: Path, redirection: str, code: int) -> None:
    (tmp_path / "topics.yaml").write_text(_PIPED)
    line = f'"{sys.executable}" -m kdeclare validate - {redirection}'
    environ = {**os.environ, "PYTHONPATH": str(_ROOT)}
    ran = subprocess.run(
        ["/bin/sh", "-c", line], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stderr
