"""Errors outside of kdeclare have an actionable message and the right exit code."""

import errno
import os
from collections.abc import Callable

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.thoroughness import pick
from tests.unit.cli.command_line import CommandLine

FORBIDDEN = Fault("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed.")


def test_plan_reports_missing_read_permission(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare.cluster.faults.fail(FORBIDDEN, method="topics")
    ran = kdeclare("plan")
    assert ran.code == 1
    assert "Not authorized" in ran.err
    assert "TOPIC_AUTHORIZATION_FAILED" in ran.err


def test_plan_and_apply_report_missing_create_permission(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare.topic("payments")
    kdeclare.cluster.faults.fail(FORBIDDEN, method="create_topics", item="orders", nth=None)
    ran = kdeclare("plan")
    assert ran.code == 0, "whoever plans need not be who applies"
    problem = "Topic/orders: the principal that made this plan needs Create on topic orders or on the cluster"
    assert problem in ran.out
    ran = kdeclare("apply", "--yes")
    assert ran.code == 5
    assert "TOPIC_AUTHORIZATION_FAILED" in ran.out
    assert kdeclare.topics == {"payments"}


def test_apply_reports_topic_deleted_after_plan(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    kdeclare.topic("orders", configs={"retention.ms": 1000})
    kdeclare("plan", "--out", "it.plan")
    kdeclare.cluster.delete_topics({"orders": None})
    ran = kdeclare("apply", "it.plan", "--yes")
    assert ran.code == 4
    assert "Topic/orders" in ran.err
    assert kdeclare("apply", "it.plan", "--yes", "--skip-stale").code == 5


def test_apply_reports_broker_lost_during_run(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")

    def lose_broker(_: MemoryCluster) -> None:
        gone = Fault("NOT_CONNECTED", "No broker is to be reached.", FaultKind.UNKNOWN)
        for method in ("describe", "topics", "configs", "moves"):
            kdeclare.cluster.faults.fail(gone, method=method, nth=None)

    kdeclare.cluster.faults.run_before(lose_broker)
    kdeclare.cluster.faults.time_out(after_effect=False)
    kdeclare.hurry()
    ran = kdeclare("apply", "--yes", "--no-preflight")
    assert ran.code == 5
    assert "the live state could not be read afterwards" in " ".join(ran.out.split())
    ran = kdeclare("status")
    assert ran.code == 1
    assert "A system stopped responding" in ran.err
    kdeclare.cluster.faults.clear()
    assert "was recovered" in kdeclare("plan").err
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare.topics == {"orders"}


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "No space left for the state"), (errno.EACCES, "No access to the state")],
)
def test_apply_reports_failed_state_write(kdeclare: CommandLine, number: int, said: str) -> None:
    kdeclare.topic("orders")

    def fail_fsync(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    with kdeclare.monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_fsync)
        ran = kdeclare("apply", "--yes")
    assert ran.code == 1
    assert said in ran.err
    assert not kdeclare.topics, "nothing is sent that is not written down before"


def test_plan_reports_unwritable_plan_file(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("plan", "--out", "nowhere/it.plan")
    assert ran.code == 1
    assert "nowhere/it.plan" in ran.err


@pytest.mark.parametrize("change", [lambda text: text[:-40], lambda text: text.replace("orders", "0rders")])
def test_modified_plan_file_is_refused(kdeclare: CommandLine, change: Callable[[str], str]) -> None:
    kdeclare.topic("orders")
    kdeclare("plan", "--out", "it.plan")
    file = kdeclare.folder / "it.plan"
    file.write_text(change(file.read_text()))
    for line in (("apply", file, "--yes"), ("show", file)):
        ran = kdeclare(*line)
        assert ran.code == 1
        assert "Plan file refused" in ran.err


def test_show_reports_missing_plan_file(kdeclare: CommandLine) -> None:
    ran = kdeclare("show", "nowhere.plan")
    assert ran.code == 1
    assert "plan file" in ran.err


def test_show_suggests_plan_for_manifest(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders paid")
    ran = kdeclare("show", "manifests/orders paid.yaml")
    assert ran.code == 1
    assert "cut short" not in ran.err
    assert "'manifests/orders paid.yaml' is YAML, like a manifest" in ran.err
    assert "kdeclare plan 'manifests/orders paid.yaml'" in ran.err


def test_rollback_and_history_report_unknown_run(kdeclare: CommandLine) -> None:
    for line in ("rollback nope --yes", "history nope"):
        assert "this environment has no runs yet." in kdeclare(*line.split()).err
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    [run] = (kdeclare.folder / "state" / "shop" / "lab" / "runs").iterdir()
    for line in ("rollback nope --yes", "history nope"):
        ran = kdeclare(*line.split())
        assert ran.code == 1
        assert "'nope' is not a run of this project and environment." in ran.err
        assert "plan file" not in ran.err
        assert f"Run kdeclare history to list the runs. The last one is {run.name}." in ran.err
    assert "nor a plan file" in kdeclare("history", "diff", "nope", run.name).err


def test_commands_accept_empty_project(kdeclare: CommandLine) -> None:
    for line in ("validate", "plan", "apply", "apply --yes", "status", "history", "import"):
        assert kdeclare(*line.split()).code == 0
    assert kdeclare("plan").out == "No changes. shop/lab on lab:9092: 0 resources up to date.\n"
    ran = kdeclare("import", "--match", "x")
    assert ran.code == 0
    assert "No resource has a name that fully matches 'x'." in ran.err
    ran = kdeclare("rollback", "--yes")
    assert ran.code == 1
    assert "No run that can be undone has been recorded in this environment." in ran.err


def test_plan_without_project_needs_path_and_server(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "kdeclare.yaml").unlink()
    manifest = kdeclare.topic("orders")
    ran = kdeclare("plan", "--bootstrap-server", "lab:9092")
    assert ran.code == 1
    assert "no PATH was given" in ran.err
    ran = kdeclare("plan", manifest)
    assert ran.code == 1
    assert "--bootstrap-server" in ran.err
    assert kdeclare("plan", manifest, "--bootstrap-server", "lab:9092").code == 0


@pytest.mark.slow
@pytest.mark.sampled
def test_plan_handles_thousands_of_resources(kdeclare: CommandLine) -> None:
    count = pick(2_000, 10_000)
    text = "".join(
        f"---\napiVersion: kdeclare/v1\nkind: Topic\nmetadata: {{name: t{n}}}\nspec: {{partitions: 1}}\n"
        for n in range(count)
    )
    (kdeclare.folder / "manifests" / "all.yaml").write_text(text)
    ran = kdeclare("plan", "--no-preflight", "--detailed-exitcode")
    assert ran.code == 2
    assert f"{count:,} to create" in ran.out
    (kdeclare.folder / "manifests" / "all.yaml").write_text(text.replace("partitions", "partitons"))
    ran = kdeclare("plan")
    assert ran.code == 1
    assert len(ran.err.splitlines()) < 200, "nobody reads thousands of messages"


def test_history_accepts_a_limit_above_any_number_of_runs(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    ran = kdeclare("history", "--limit", "99999999999999999999")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 2


def test_import_into_folder_with_impossible_name_says_why(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    ran = kdeclare("import", "--include-declared", "--out", "x" * 300)
    assert ran.code == 1
    assert "error: Manifests cannot be written\n" in ran.err
    assert "File name too long" in ran.err
