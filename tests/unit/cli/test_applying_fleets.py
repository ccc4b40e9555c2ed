"""``kdeclare fleet apply`` with in-memory clusters: what it refuses, and how it ends."""

import json
import os
import signal
import threading
import time
from dataclasses import dataclass, field

import pytest

from kdeclare.app.fleet.rollout.saved_plans import build_plan_file_name
from kdeclare.core.live.faults import Fault
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.unit.cli.command_line import CommandLine, CommandResult

NAMES = ("eu-1", "eu-2", "us-1")


@dataclass
class FleetRunner:
    """Three clusters of one project; ``plan`` runs ``fleet plan`` without Spark."""

    line: CommandLine
    clusters: dict[str, MemoryCluster] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clusters = {name: MemoryCluster({1: "a"}, cluster_id=name) for name in NAMES}

        def connect(servers: str, config: object, timeout_s: float, attempts: int) -> Cluster:
            return self.clusters[servers.partition(":")[0]]

        self.line.monkeypatch.setattr(connection, "connect_cluster", connect)
        environments = {name: {"bootstrapServers": f"{name}:9092"} for name in NAMES}
        self.line.write("kdeclare.yaml", "Project", "shop", environments=environments)
        entries = [
            {"name": name, "labels": {"region": name[:2]}, "project": "kdeclare.yaml", "env": name}
            for name in NAMES
        ]
        self.line.write("fleet.yaml", "Fleet", "shop", clusters=entries, maxConcurrentClusters=2)
        self.line.topic("orders")

    def plan(self, *names: str, adopt: bool = False) -> None:
        """Plan some or all clusters."""
        options = [word for name in names for word in ("--cluster", name)] + ["--adopt"] * adopt
        self.line("fleet", "plan", "fleet.yaml", "--out", "plans", *options)

    def plan_deletes(self) -> None:
        """Plan all clusters, and delete what is no longer declared."""
        assert self.line("fleet", "plan", "fleet.yaml", "--out", "plans", "--allow-deletes").code == 0

    def apply(self, *options: str) -> CommandResult:
        return self.line("fleet", "apply", "fleet.yaml", "--out", "plans", "--yes", *options)

    @property
    def applied_clusters(self) -> list[str]:
        return [name for name in NAMES if "orders" in self.clusters[name].topics()]


@pytest.fixture
def fleet(kdeclare: CommandLine) -> FleetRunner:
    """Three clusters."""
    return FleetRunner(kdeclare)


def join_errors(ran: CommandResult) -> str:
    """Return the reported errors on one line."""
    assert "Traceback" not in ran.err
    return " ".join(ran.err.split())


def test_fleet_apply_applies_all_clusters(fleet: FleetRunner) -> None:
    fleet.plan()
    assert fleet.apply().code == 0
    assert fleet.applied_clusters == [*NAMES]


def test_fleet_apply_refuses_replaced_plan_file(fleet: FleetRunner) -> None:
    fleet.plan()
    fleet.line.topic("payments")
    assert fleet.line("plan", "--env", "eu-2", "--out", f"plans/{build_plan_file_name('eu-2')}").code == 0
    ran = fleet.apply()
    assert ran.code == 1
    assert "eu-2.plan.json contains plan " in join_errors(ran)
    assert "Plan does not match the list of saved plans" in join_errors(ran)
    assert not fleet.applied_clusters


def test_fleet_apply_names_clusters_without_plan(fleet: FleetRunner) -> None:
    fleet.plan("eu-1")
    ran = fleet.apply("--cluster", "eu-1", "--cluster", "us-1")
    assert ran.code == 1
    assert "overview.json has no plan for us-1." in join_errors(ran)
    overview = fleet.line.folder / "plans" / "overview.json"
    overview.write_text(overview.read_text().replace('"shop"', '"other"'))
    assert "belongs to the fleet 'other', but the fleet file is for 'shop'" in join_errors(fleet.apply())
    assert not fleet.applied_clusters


def test_fleet_apply_exit_code_depends_on_locked_clusters(fleet: FleetRunner) -> None:
    fleet.plan()
    with LocalStore(fleet.line.folder / "state" / "shop" / "eu-1").lock("kdeclare apply, by someone else"):
        ran = fleet.apply("--cluster", "eu-1", "--format", "json")
        assert (ran.code, json.loads(ran.out)["counts"]["locked"]) == (6, 1)
        ran = fleet.apply("--max-failures", "3")
    assert ran.code == 5
    assert "1 locked by another command" in ran.out
    assert fleet.applied_clusters == ["eu-2", "us-1"]


def press_ctrl_c(_: MemoryCluster) -> None:
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)


def test_fleet_apply_ctrl_c_finishes_running_clusters(fleet: FleetRunner) -> None:
    """Running clusters finish, and no other cluster starts."""
    fleet.plan()
    fleet.clusters["eu-1"].faults.run_before(press_ctrl_c)
    ran = fleet.apply("--batch-size", "1")
    assert ran.code == 130
    assert "Stopped: The rollout was interrupted." in ran.out
    assert fleet.applied_clusters == ["eu-1"]
    assert fleet.apply().code == 0
    assert fleet.applied_clusters == [*NAMES]


def test_fleet_apply_second_ctrl_c_exits_at_once(fleet: FleetRunner) -> None:
    fleet.plan()
    answers, answered = threading.Event(), threading.Event()

    def hang(cluster: MemoryCluster) -> None:
        press_ctrl_c(cluster)
        press_ctrl_c(cluster)
        answers.wait(120)
        answered.set()

    fleet.clusters["eu-1"].faults.run_before(hang)
    try:
        ran = fleet.apply("--batch-size", "1")
        waited = answered.is_set()
    finally:
        answers.set()
    assert (ran.code, waited) == (130, False)
    assert "The run was stopped immediately" in join_errors(ran)


CANARIES = ("--canary", "region=eu", "--max-failures", "5", "--batch-size", "1", "--format", "json")


def read_statuses(ran: CommandResult) -> dict[str, str]:
    return {cluster["name"]: cluster["status"] for cluster in json.loads(ran.out)["clusters"]}


def drop_concurrent_cluster(ran: CommandResult, name: str, *ended: str) -> dict[str, str]:
    """Return the statuses of the other clusters. ``name`` may have started before the rollout stopped."""
    found = read_statuses(ran)
    assert found.pop(name) in (*ended, "not-begun")
    return found


def break_brokers(cluster: MemoryCluster) -> None:
    """Cluster stopped responding."""
    raise Fault("NETWORK_EXCEPTION", "the broker is gone")


def test_fleet_apply_stops_after_stale_canary(fleet: FleetRunner) -> None:
    fleet.plan()
    fleet.clusters["eu-1"].create_topics([NewTopic("orders", 3, 1, None, {})])
    ran = fleet.apply(*CANARIES)
    assert drop_concurrent_cluster(ran, "eu-2", "done") == {"eu-1": "stale", "us-1": "not-begun"}
    stopped = json.loads(ran.out)["stopped"]
    assert stopped.startswith("Not all canaries are done: eu-1 (stale).")
    # if the other canary was not started, the whole result is stale: 4, because nothing was applied
    assert ran.code == (5 if read_statuses(ran)["eu-2"] == "done" else 4)
    again = fleet.apply(*CANARIES)
    assert drop_concurrent_cluster(again, "eu-2", "done", "skipped") == {"eu-1": "stale", "us-1": "not-begun"}


def test_fleet_apply_stops_after_locked_canary(fleet: FleetRunner) -> None:
    fleet.plan()
    with LocalStore(fleet.line.folder / "state" / "shop" / "eu-2").lock("kdeclare apply, by someone else"):
        ran = fleet.apply(*CANARIES)
    assert read_statuses(ran) == {"eu-1": "done", "eu-2": "locked", "us-1": "not-begun"}
    assert read_statuses(fleet.apply(*CANARIES)) == {"eu-1": "skipped", "eu-2": "done", "us-1": "done"}


def test_fleet_apply_stops_after_failed_canary(fleet: FleetRunner) -> None:
    fleet.plan()
    fleet.clusters["eu-1"].faults.run_before(break_brokers)
    ran = fleet.apply(*CANARIES)
    assert read_statuses(ran)["us-1"] == "not-begun", ran.out
    assert read_statuses(ran)["eu-1"] in ("failed", "partial")
    nothing_done = read_statuses(ran)["eu-1"] == "failed" and read_statuses(ran)["eu-2"] == "not-begun"
    assert ran.code == (1 if nothing_done else 5)


@pytest.mark.parametrize("more", [(), ("payments",)])
def test_fleet_apply_stops_after_denied_canary(fleet: FleetRunner, more: tuple[str, ...]) -> None:
    """The next apply stops, too, because no canary has tried the denied change."""
    environments = {name: {"bootstrapServers": f"{name}:9092"} for name in NAMES}
    pattern = {"name": "names", "class": "kdeclare.policy.rules:NamePattern", "config": {"pattern": "p.*"}}
    fleet.line.write("kdeclare.yaml", "Project", "shop", environments=environments, policies=[pattern])
    for name in more:
        fleet.line.topic(name)
    fleet.plan()
    ran = fleet.apply(*CANARIES)
    assert read_statuses(ran) == {"eu-1": "denied", "eu-2": "denied", "us-1": "not-begun"}
    assert ran.code == 5
    ran = fleet.apply(*CANARIES)
    assert read_statuses(ran)["us-1"] == "not-begun", ran.out


def test_fleet_apply_continues_after_failure_of_other_clusters(fleet: FleetRunner) -> None:
    fleet.plan()
    fleet.clusters["eu-1"].create_topics([NewTopic("orders", 3, 1, None, {})])
    ran = fleet.apply("--canary", "region=us", *CANARIES[2:])
    assert read_statuses(ran) == {"eu-1": "stale", "eu-2": "done", "us-1": "done"}


def create_conflicting_topic(fleet: FleetRunner) -> MemoryCluster:
    """In one cluster, another team has created a different topic of the same name."""
    cluster = fleet.clusters["eu-1"]
    cluster.create_topics([NewTopic("orders", 1, 1, None, {"retention.ms": "1000"})])
    fleet.line.topic("orders", configs={"retention.ms": 2000})
    return cluster


def read_retention(cluster: MemoryCluster) -> str:
    found: str = cluster.overrides(ConfigResource(ConfigScope.TOPIC, "orders"))["retention.ms"]
    return found


def test_fleet_apply_without_adopt_leaves_existing_topic(fleet: FleetRunner) -> None:
    cluster = create_conflicting_topic(fleet)
    fleet.plan()
    assert fleet.apply().code == 3
    assert (read_retention(cluster), fleet.applied_clusters) == ("1000", list(NAMES))


def test_fleet_apply_adopts_only_with_plan_and_apply_option(fleet: FleetRunner) -> None:
    cluster = create_conflicting_topic(fleet)
    fleet.plan(adopt=True)
    ran = fleet.apply()
    assert (ran.code, read_retention(cluster)) == (3, "1000")
    assert "The plans of eu-1 adopt existing resources" in join_errors(ran)
    assert "Pass --adopt to apply them" in join_errors(ran)
    assert fleet.applied_clusters == ["eu-1"], "nothing was begun"
    assert fleet.apply("--adopt").code == 0
    assert read_retention(cluster) == "2000"


def test_fleet_apply_with_adopt_refuses_plans_without_adopt(fleet: FleetRunner) -> None:
    create_conflicting_topic(fleet)
    fleet.plan()
    ran = fleet.apply("--adopt")
    assert ran.code == 3
    assert "Plans were made without --adopt" in join_errors(ran)


def test_fleet_apply_adopts_when_manifest_allows_it(fleet: FleetRunner) -> None:
    cluster = create_conflicting_topic(fleet)
    fleet.line.topic("orders", configs={"retention.ms": 2000}, lifecycle={"adopt": True})
    fleet.plan()
    assert fleet.apply().code == 0
    assert read_retention(cluster) == "2000"


def test_fleet_apply_adopts_when_project_is_automatic(fleet: FleetRunner) -> None:
    cluster = create_conflicting_topic(fleet)
    environments = {name: {"bootstrapServers": f"{name}:9092"} for name in NAMES}
    fleet.line.write("kdeclare.yaml", "Project", "shop", environments=environments, adoption="automatic")
    fleet.plan()
    assert fleet.apply().code == 0
    assert read_retention(cluster) == "2000"


def test_fleet_apply_refuses_many_deletions_in_all_plans_together(fleet: FleetRunner) -> None:
    """Each plan deletes few topics, so that the limit of a single plan does not help."""
    for name in ("old", "older"):
        fleet.line.topic(name)
    fleet.plan()
    assert fleet.apply().code == 0
    for name in ("old", "older"):
        (fleet.line.folder / "manifests" / f"{name}.yaml").unlink()
    fleet.plan_deletes()
    ran = fleet.apply("--max-deletes", "5")
    assert ran.code == 3
    assert "The plans delete 6 resources, but --max-deletes is 5" in join_errors(ran)
    assert "Nothing was applied." in join_errors(ran)
    assert all("old" in cluster.topics() for cluster in fleet.clusters.values())
    assert fleet.apply("--max-deletes", "2", "--cluster", "eu-1").code == 0, "only the plan of eu-1 counts"
    assert fleet.apply("--max-deletes", "4").code == 0, "the plan of eu-1 was applied"
    assert all("old" not in cluster.topics() for cluster in fleet.clusters.values())
