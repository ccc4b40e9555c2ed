"""Faults of real workers during `kdeclare apply`: a killed worker, and tasks that fail after the creation."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.connectors_port import ConnectCluster
from kdeclare.sandbox import SandboxStatus
from tests.kafka.connectors.connector_project import (
    ConnectorProject,
    await_connector,
    has_failed_task,
    is_running,
    parse_results,
)
from tests.thoroughness import mark_rest

pytestmark = pytest.mark.kafka

COUNT = 8
BAD_CONVERTER = "org.apache.kafka.connect.converters.IntegerConverter"


def kill_once_created(
    sandbox: SandboxStatus, worker_number: int, cluster: ConnectCluster, prefix: str, created: int
) -> threading.Thread:
    """Kill a worker as soon as this number of connectors exist. Join the returned thread."""

    def watch() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                names = [name for name in cluster.list_connectors() if name.startswith(prefix)]
            except Fault:
                names = []
            if len(names) >= created:
                kafka_sandbox.kill_worker(sandbox.folder, sandbox.workers[worker_number].id)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.parametrize("killed", mark_rest([0, 1], 1))
def test_worker_killed_during_creations_loses_and_doubles_nothing(
    two_workers: SandboxStatus,
    cluster: ConnectCluster,
    project: ConnectorProject,
    tmp_path: Path,
    killed: int,
) -> None:
    topic = project.declare_topic("lines")
    declared = {
        project.declare_connector(
            f"sink-{number}", "FileStreamSink", {"topics": topic, "file": str(tmp_path / f"{number}.txt")}
        )
        for number in range(COUNT)
    }
    watcher = kill_once_created(two_workers, killed, cluster, project.prefix, 3)
    ran = project.run("apply", "--yes", "--format", "json")
    watcher.join()
    now = kafka_sandbox.status(two_workers.folder)
    assert [worker.alive for worker in now.workers].count(False) == 1, "no worker was killed"
    results = {name: one["status"] for name, one in parse_results(ran).items() if name in declared}
    assert results.keys() == declared
    live = cluster.list_connectors()
    for name, status in results.items():
        if status == "done":
            assert is_running(live[name]), live[name]
        elif status == "started":
            assert name in live
        else:
            assert name not in live, (status, live.get(name))
    assert (ran.code == ExitCode.OK) == (set(results.values()) == {"done"}), ran
    project.apply()
    assert {name for name in cluster.list_connectors() if name.startswith(project.prefix)} == declared
    for name in declared:
        await_connector(cluster, name, is_running)
    project.expect_no_changes()


def test_task_that_fails_at_the_first_record_fails_the_creation(
    cluster: ConnectCluster, project: ConnectorProject, tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("first line\n")
    config = {"topic": project.declare_topic("lines"), "file": str(file), "value.converter": BAD_CONVERTER}
    name = project.declare_connector("source", "FileStreamSource", config)
    result = project.apply(code=ExitCode.PARTIAL)[name]
    assert (result["status"], result["error"]) == ("failed", "work-failed")
    assert "The connector was created, but task 0 failed:" in result["message"]
    assert "\n" not in result["message"]
    assert has_failed_task(await_connector(cluster, name, has_failed_task))
    project.declare_connector("source", "FileStreamSource", {k: v for k, v in config.items() if "." not in k})
    assert project.apply()[name]["status"] == "done"
    await_connector(cluster, name, is_running)
    project.expect_no_changes()


def test_task_that_fails_after_the_run_is_reported_by_the_next_plan(
    cluster: ConnectCluster, project: ConnectorProject, tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    file.touch()
    config = {"topic": project.declare_topic("lines"), "file": str(file), "value.converter": BAD_CONVERTER}
    name = project.declare_connector("source", "FileStreamSource", config)
    assert project.apply()[name]["status"] == "done"
    file.write_text("first line\n")
    failed = await_connector(cluster, name, has_failed_task)
    plan = project.run("plan", "--detailed-exitcode", "--format", "json")
    assert plan.code == ExitCode.OK, plan
    assert "connector-failed" in plan.out
    assert failed.tasks[0].trace.partition(":")[0] in plan.out
    project.declare_connector("source", "FileStreamSource", config, restartFailed=True)
    result = project.apply(code=ExitCode.PARTIAL)[name]
    assert (result["verb"], result["error"]) == ("connector.restart", "work-failed")


def test_sink_whose_folder_is_removed_fails_when_it_is_changed(
    cluster: ConnectCluster, project: ConnectorProject, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    config = {"topics": project.declare_topic("lines"), "file": str(folder / "out.txt")}
    name = project.declare_connector("sink", "FileStreamSink", config)
    assert project.apply()[name]["status"] == "done"
    shutil.rmtree(folder)
    changed = {**config, "errors.log.enable": "true"}
    project.declare_connector("sink", "FileStreamSink", changed, restartFailed=True)
    result = project.apply(code=ExitCode.PARTIAL)[name]
    assert (result["verb"], result["status"], result["error"]) == (
        "connector.configure",
        "failed",
        "work-failed",
    )
    assert "Couldn't find or create file" in result["message"]
    folder.mkdir()
    assert project.apply()[name]["verb"] == "connector.restart"
    await_connector(cluster, name, is_running)
    project.expect_no_changes()
