"""Rollouts that are paused, resumed or aborted, and health checks between their waves."""

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.cli.test_applying_fleets import FleetRunner, join_errors


@pytest.fixture
def fleet(kdeclare: CommandLine) -> FleetRunner:
    return FleetRunner(kdeclare)


def run(fleet: FleetRunner, command: str, *options: str) -> CommandResult:
    return fleet.line("fleet", command, "--out", "plans", *options)


def set_rollout(fleet: FleetRunner, **rollout: object) -> None:
    """Change the rollout of the fleet file."""
    document = yaml.safe_load((fleet.line.folder / "fleet.yaml").read_text())
    document["spec"]["rollout"] = rollout
    (fleet.line.folder / "fleet.yaml").write_text(yaml.safe_dump(document))


def act_before_creation(fleet: FleetRunner, cluster: str, act: str, *options: str) -> None:
    """Run a command while a cluster is being changed."""

    def run_command(_: MemoryCluster) -> None:
        assert run(fleet, act, *options).code == 0

    fleet.clusters[cluster].faults.run_before(run_command, method="create_topics")


# pause, resume, abort


def test_paused_rollout_begins_only_after_resume(fleet: FleetRunner) -> None:
    fleet.plan()
    paused = run(fleet, "pause", "--reason", "Consumers lag.")
    assert paused.code == 0
    assert paused.out.startswith("The rollout was paused by ")
    ran = fleet.apply()
    assert ran.code == 3
    assert "Rollout is paused" in ran.err
    assert "Consumers lag. Nothing was applied." in join_errors(ran)
    assert "Run kdeclare fleet resume" in join_errors(ran)
    assert fleet.applied_clusters == []
    assert run(fleet, "resume").out == "The rollout can continue. Run kdeclare fleet apply.\n"
    assert fleet.apply().code == 0
    assert run(fleet, "resume").out == "The rollout is not paused.\n"


def test_running_rollout_stops_before_its_next_wave(fleet: FleetRunner) -> None:
    fleet.plan()
    act_before_creation(fleet, "eu-1", "pause")
    ran = fleet.apply("--batch-size", "1")
    assert ran.code == 5
    assert "The rollout was paused by " in ran.out
    assert fleet.applied_clusters == ["eu-1"]
    assert fleet.apply("--batch-size", "1").code == 3
    assert run(fleet, "resume").code == 0
    ran = fleet.apply("--batch-size", "1")
    assert ran.code == 0, ran
    assert fleet.applied_clusters == ["eu-1", "eu-2", "us-1"]


def test_aborted_rollout_needs_new_plans(fleet: FleetRunner) -> None:
    fleet.plan()
    act_before_creation(fleet, "eu-1", "abort", "--reason", "OPS-1")
    ran = fleet.apply("--batch-size", "1")
    assert "The rollout was aborted by " in ran.out
    assert fleet.applied_clusters == ["eu-1"]
    for ran in (fleet.apply(), run(fleet, "resume")):
        assert ran.code == 3
        assert "Rollout was aborted" in ran.err
        assert "Run kdeclare fleet plan to make new plans." in join_errors(ran)
    assert run(fleet, "pause").out.startswith("The rollout was aborted by "), "an abort is final"
    fleet.plan()
    assert fleet.apply().code == 0


def test_nothing_can_be_paused_without_plans(fleet: FleetRunner) -> None:
    ran = run(fleet, "pause")
    assert ran.code == 1
    assert "No plans found" in ran.err


def test_damaged_request_is_an_error(fleet: FleetRunner) -> None:
    fleet.plan()
    (fleet.line.folder / "plans" / "rollout.json").write_text('{"format_version": "1.0"}')
    ran = fleet.apply()
    assert ran.code == 1
    assert "Invalid request to stop the rollout" in ran.err
    assert fleet.applied_clusters == []


# health checks


def break_partition(cluster: MemoryCluster, **state: Any) -> None:
    """Create a topic whose only partition is not healthy."""
    cluster.create_topics([NewTopic("other", 1, 1, None, {})])
    where = TopicPartition("other", 0)
    cluster.set_partition(where, replace(cluster.partition(where), **state))


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ({"replicas": (1, 2)}, "1 under-replicated partition (allowed: 0)"),
        ({"replicas": (9,), "isr": (9,), "leader": None}, "1 offline partition (allowed: 0)"),
    ],
)
def test_unhealthy_cluster_stops_the_rollout_before_its_wave(
    fleet: FleetRunner, state: dict[str, Any], shown: str
) -> None:
    checks = {"offline-partitions": 0, "under-replicated-partitions": 0}
    set_rollout(fleet, batchSize=1, health={"checks": checks, "timeout": "100ms"})
    break_partition(fleet.clusters["us-1"], **state)
    fleet.plan()
    ran = fleet.apply()
    assert ran.code == 5
    assert "The health checks before wave 3 failed: us-1: " in ran.out
    assert shown in ran.out
    assert fleet.applied_clusters == ["eu-1", "eu-2"]
    assert fleet.apply("--skip-health-checks").code == 0
    assert fleet.applied_clusters == ["eu-1", "eu-2", "us-1"]


def test_cluster_that_a_wave_damaged_stops_the_next_wave(fleet: FleetRunner) -> None:
    set_rollout(fleet, batchSize=2, health={"checks": {"offline-partitions": 0}, "timeout": "100ms"})
    fleet.plan()
    fleet.clusters["eu-1"].faults.run_before(
        lambda other: break_partition(other, replicas=(9,), isr=(9,), leader=None), method="create_topics"
    )
    ran = fleet.apply()
    assert "The health checks before wave 2 failed: eu-1: 1 offline partition (allowed: 0)" in ran.out
    assert fleet.applied_clusters == ["eu-1", "eu-2"]


def test_rollout_waits_until_clusters_are_healthy(
    fleet: FleetRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdeclare.app.fleet.rollout.rollout_health._POLL_S", 0.01)
    set_rollout(fleet, health={"checks": {"under-replicated-partitions": 0}})
    cluster = fleet.clusters["eu-1"]
    break_partition(cluster, replicas=(1, 2))
    fleet.plan()
    where = TopicPartition("other", 0)
    healthy = replace(cluster.partition(where), replicas=(1,))
    cluster.faults.run_before(lambda _: cluster.set_partition(where, healthy), method="moves", nth=3)
    assert fleet.apply().code == 0


def test_cluster_that_cannot_be_read_is_not_healthy(fleet: FleetRunner) -> None:
    set_rollout(fleet, health={"checks": {"offline-partitions": 3}, "timeout": "100ms"})
    fleet.plan()
    fleet.clusters["eu-2"].faults.fail(Fault("NETWORK_EXCEPTION", "gone"), nth=None, method="moves")
    ran = fleet.apply()
    assert ran.code == 1
    assert "The health checks before wave 1 failed: eu-2: " in ran.out
    assert fleet.applied_clusters == []


@pytest.mark.parametrize("is_healthy", [True, False], ids=["healthy", "waiting"])
def test_rollout_that_is_paused_during_health_checks_does_not_begin_the_wave(
    fleet: FleetRunner, monkeypatch: pytest.MonkeyPatch, is_healthy: bool
) -> None:
    """Waiting for an unhealthy cluster ends as well, long before the time limit."""
    monkeypatch.setattr("kdeclare.app.fleet.rollout.rollout_health._POLL_S", 0.01)
    set_rollout(fleet, batchSize=1, health={"checks": {"under-replicated-partitions": 0}})
    if not is_healthy:
        break_partition(fleet.clusters["eu-2"], replicas=(1, 2))
    fleet.plan()
    fleet.clusters["eu-2"].faults.run_before(lambda _: pause(fleet), method="moves")
    ran = fleet.apply()
    assert ran.code == 5
    assert "The rollout was paused by " in ran.out
    assert "health checks" not in ran.out
    assert fleet.applied_clusters == ["eu-1"]


def pause(fleet: FleetRunner) -> None:
    assert run(fleet, "pause").code == 0


def write_command(fleet: FleetRunner, text: str) -> None:
    script = fleet.line.folder / "check.sh"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    set_rollout(fleet, batchSize=2, health={"command": ["./check.sh"], "timeout": "200ms"})


@pytest.mark.slow
def test_command_decides_about_each_wave(fleet: FleetRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDECLARE_SIGNING_KEY", "a-secret")
    write_command(fleet, 'echo "$KDECLARE_WAVE: $KDECLARE_CLUSTERS $KDECLARE_SIGNING_KEY" >> waves.txt')
    fleet.plan()
    assert fleet.apply().code == 0
    lines = (fleet.line.folder / "waves.txt").read_text().splitlines()
    assert lines == ["1: eu-1 eu-2 ", "2: eu-1 eu-2 us-1 "], "the folder of the fleet file, and no secrets"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'echo one; echo "Orders are late." >&2; exit 3',
            "./check.sh failed with exit code 3: Orders are late.",
        ),
        ("sleep 20", "./check.sh did not end within 0.2 s"),
    ],
)
def test_failing_command_stops_the_rollout(fleet: FleetRunner, text: str, shown: str) -> None:
    write_command(fleet, text)
    fleet.plan()
    ran = fleet.apply()
    assert ran.code == 1
    assert f"The health checks before wave 1 failed: {shown}" in ran.out
    assert fleet.applied_clusters == []


def test_missing_command_is_explained(fleet: FleetRunner) -> None:
    set_rollout(fleet, health={"command": ["./nothing.sh"], "timeout": "100ms"})
    fleet.plan()
    assert "./nothing.sh cannot be run: No such file or directory" in fleet.apply().out


def test_unknown_health_check_is_reported_with_its_position(fleet: FleetRunner) -> None:
    set_rollout(fleet, health={"checks": {"offline-partition": 0}})
    ran = fleet.line("fleet", "plan", "fleet.yaml", "--out", "plans")
    assert ran.code == 1
    assert "There is no health check 'offline-partition'." in ran.err
    assert "Did you mean" in ran.err
    assert "fleet.yaml:" in ran.err


def test_path_of_project_is_irrelevant(fleet: FleetRunner, tmp_path: Path) -> None:
    """Options of commands that read only the folder of plans need no fleet file."""
    fleet.plan()
    (fleet.line.folder / "fleet.yaml").rename(tmp_path / "elsewhere.yaml")
    assert run(fleet, "pause").code == 0
    assert run(fleet, "resume").code == 0
