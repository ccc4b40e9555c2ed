"""Brokers, controllers, whole clusters and connections that fail at random moments of a run.

After each run, what it reported is compared with the cluster, and the next run does the rest.
"""

import json
import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider_queries import find_health_checks
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, NewTopic
from tests.beds import topic_resource
from tests.connections import connections_to
from tests.kafka.test_bad_input import Project, wait_for_exit, wait_for_first_request
from tests.polling import wait_for
from tests.soak.cluster import BROKERS, SoakCluster, run_soak_cluster
from tests.soak.tcp_proxy import NetworkFault

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KDECLARE_TEST_SEED", "0")) or random.randrange(1, 1_000_000)
TOPICS = tuple(f"t{number:02}" for number in range(40))
DOWN_S = 2.0
NETWORK_FAULT_S = 3.0
SOON = {"requestDeadline": "10s", "clientConfig": {"request.timeout.ms": "5000"}}

BROKER, CONTROLLER, WHOLE_CLUSTER = "broker", "controller", "whole cluster"

HITS: list[bool] = []
"""For each test so far, whether the run was under way when its fault began."""


@dataclass(frozen=True)
class Shape:
    """What a run can change in a topic."""

    partitions: int = 1
    factor: int = 2
    retention: str = "7000000"


BEFORE = Shape()
CHANGES: Mapping[str, tuple[Shape | None, Shape]] = {
    "create": (None, BEFORE),
    "alter": (BEFORE, Shape(retention="8000000")),
    "grow": (BEFORE, Shape(partitions=3)),
    "reassign": (BEFORE, Shape(factor=3)),
}
"""What all topics are before and after the change. None: they do not exist."""


@pytest.fixture(scope="module")
def soak_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoakCluster]:
    with run_soak_cluster(tmp_path_factory.mktemp("faults") / "brokers", SEED) as made:
        yield made
    assert any(HITS) or not HITS, "each run had ended before its fault"


@dataclass
class Run:
    """A project on the cluster, and a client of the test that no fault disturbs but that of a broker."""

    project: Project
    cluster: SoakCluster
    chance: random.Random

    def declare(self, shape: Shape) -> None:
        self.project.topics(
            *TOPICS,
            partitions=shape.partitions,
            replicationFactor=shape.factor,
            configs={"retention.ms": int(shape.retention)},
        )

    def read_shapes(self) -> dict[str, Shape]:
        """Return the shapes of the topics that exist, without the prefix of the project."""
        reader = connect(self.cluster.bootstrap, {})
        try:
            return self._read_shapes(reader)
        finally:
            reader.close()

    def _read_shapes(self, reader: Cluster) -> dict[str, Shape]:
        wait_for(lambda: not reader.moves(), every=0.02)
        names = [name for name in reader.topics() if name.startswith(self.project.prefix)]
        topics = reader.topics(names)
        resources: list[ConfigResource] = [topic_resource(name) for name in names]
        configs = reader.configs([ConfigQuery(one, overrides=True) for one in resources])
        retention = {one.name: str(entries["retention.ms"].value) for one, entries in configs.items()}
        shapes: dict[str, Shape] = {}
        for name, topic in topics.items():
            (factor,) = {len(partition.replicas) for partition in topic.partitions}
            short = name.removeprefix(self.project.prefix)
            shapes[short] = Shape(len(topic.partitions), factor, retention[name])
        return shapes

    def cause(self, fault: str, controller: int) -> None:
        """Cause a fault. Returns when it is over."""
        if fault == WHOLE_CLUSTER:
            self.cluster.restart_all_brokers(fault)
        elif fault in (BROKER, CONTROLLER):
            others = [broker for broker in BROKERS if broker != controller]
            victim = controller if fault == CONTROLLER else self.chance.choice(others)
            self.cluster.restart_broker(victim, DOWN_S, fault)
        else:
            for proxy in self.cluster.proxies.values():
                proxy.start_fault(NetworkFault(fault))
            time.sleep(NETWORK_FAULT_S)


@pytest.fixture
def run(soak_cluster: SoakCluster, tmp_path: Path) -> Iterator[Run]:
    soak_cluster.heal()
    chance = random.Random(f"{SEED} {tmp_path.name}")
    made = Run(Project(tmp_path, soak_cluster.proxied, environment=SOON), soak_cluster, chance)
    yield made
    soak_cluster.heal()
    made.project.declare()
    made.project.done("apply", "--yes", "--allow-empty", "--allow-deletes", "--max-deletes", "100%")


FAULTS = (BROKER, CONTROLLER, WHOLE_CLUSTER, *NetworkFault)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("create", BROKER),
        ("alter", FAULTS[3]),
        *(
            pytest.param(change, fault, marks=pytest.mark.thorough)
            for change, fault in (
                *zip(CHANGES, (CONTROLLER, BROKER, CONTROLLER, BROKER), strict=True),
                ("reassign", CONTROLLER),
                *zip(("alter", "grow", "create", "grow"), (CONTROLLER, BROKER, *FAULTS[2:5:2]), strict=True),
                *zip(("reassign", "create", "alter"), FAULTS[5:], strict=True),
            )
        ),
    ],
)
def test_run_reports_what_happened_and_next_run_does_the_rest(run: Run, change: str, fault: str) -> None:
    """KDECLARE_TEST_SEED repeats the moments; what the brokers do in the meantime is up to them."""
    before, after = CHANGES[change]
    if before is not None:
        run.declare(before)
        run.project.done("apply", "--yes")
    run.declare(after)
    controller = run.cluster.find_controller()
    moment_s = run.chance.uniform(0, 0.25)
    earlier_runs = run.project.count_runs()
    process = run.project.start("apply", "--yes", "--format", "json")
    wait_for_first_request(run.project, process, earlier_runs)
    time.sleep(moment_s)
    is_hit = process.poll() is None
    HITS.append(is_hit)
    run.cause(fault, controller)
    ran = wait_for_exit(process)
    run.cluster.heal()
    print(f"KDECLARE_TEST_SEED={SEED}: {fault} after {moment_s:.3f} s, {is_hit=}; {ran.code!r}; {ran.err}")
    shapes = run.read_shapes()
    document = json.loads(ran.out)
    assert "operations" in document, ran
    results = document["operations"]
    check_results(results, run.project.prefix, shapes, before, after)
    assert (ran.code is ExitCode.OK) == all(result["status"] in {"done", "started"} for result in results)
    again = run.project("apply", "--yes")
    assert again.code is ExitCode.OK, again
    assert run.read_shapes() == dict.fromkeys(TOPICS, after)
    assert run.project.in_order()


def check_results(
    results: list[dict[str, Any]],
    prefix: str,
    shapes: Mapping[str, Shape],
    before: Shape | None,
    after: Shape,
) -> None:
    """Check that what is done can be seen, and that what failed had no effect."""
    statuses: dict[str, set[str]] = {}
    for result in results:
        name = result["resource"].removeprefix(f"Topic/{prefix}")
        statuses.setdefault(name, set()).add(result["status"])
    assert statuses.keys() == set(TOPICS)
    for name, found in statuses.items():
        if found <= {"done", "started"}:
            assert shapes.get(name) == after, (name, found)
        elif found <= {"failed", "skipped", "interrupted"}:
            assert shapes.get(name) == before, (name, found)
        else:
            assert found == {"unknown"}, (name, found)


def test_health_checks_count_what_a_lost_broker_leaves(soak_cluster: SoakCluster) -> None:
    """Rollouts of fleets wait until these numbers are zero."""
    soak_cluster.heal()
    names = ("health-one", "health-two")
    reader = connect(soak_cluster.bootstrap, {})

    def count(check: str) -> int:
        """Return what a health check counts; -1 if the client asks the lost broker."""
        try:
            return find_health_checks()[check].count(connections_to(reader))
        except Fault:
            return -1

    try:
        victim = next(broker for broker in BROKERS if broker != soak_cluster.find_controller())
        others = [broker for broker in BROKERS if broker != victim]
        reader.create_topics(
            [
                NewTopic(names[0], None, None, {0: (victim,), 1: (others[0],)}, {}),
                NewTopic(names[1], None, None, {0: (others[0], victim)}, {}),
            ]
        )
        wait_for(lambda: set(names) <= reader.topics().keys(), every=0.02)
        wait_for(lambda: count("offline-partitions") == count("under-replicated-partitions") == 0, every=0.02)
        kafka_sandbox.kill_broker(soak_cluster.folder, victim)
        wait_for(lambda: count("offline-partitions") == 1, every=0.02)
        wait_for(lambda: count("under-replicated-partitions") >= 1, every=0.02)
        soak_cluster.heal()
        wait_for(lambda: count("offline-partitions") == count("under-replicated-partitions") == 0, every=0.02)
    finally:
        soak_cluster.heal()
        reader.delete_topics(dict.fromkeys(names))
        reader.close()
