"""``python -m benchmarks.moving``: measure the time and memory of large reassignments in batches.

Each size runs in a separate process with an in-memory cluster, so that only kdeclare's own work is
measured. Every partition moves to another broker, in batches under a throttle.
"""

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import pytest

from kdeclare.core.plans.plan import Plan
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.testing.controller import Controller
from kdeclare.providers.kafka.testing.request_handler import RequestHandler
from tests.engine.world import World, desired

T = TypeVar("T")

_PARTITIONS = 10
_BROKERS = 6
_BATCH = 1000
_CLUSTER_WORK = {Controller: ("tick", "moves"), RequestHandler: ("_handle_read", "_handle_change")}


@dataclass(frozen=True, slots=True)
class Figures:
    """The CPU times and the peak memory of the process for one size.

    apply_cpu_s: without the time of the in-memory cluster. base_mb: the peak before planning.
    """

    topics: int
    partitions: int
    operations: int
    plan_cpu_s: float
    apply_cpu_s: float
    base_mb: float
    peak_mb: float


def measure(topics: int) -> Figures:
    """Move all partitions of ``topics`` topics in this process."""
    cluster = MemoryCluster(dict.fromkeys(range(1, _BROKERS + 1)), move_ticks=1)
    targets = []
    for number in range(topics):
        name = f"topic-{number:05}"
        replicas = [[1 + (number + p + i) % (_BROKERS - 1) for i in range(2)] for p in range(_PARTITIONS)]
        cluster.create_topics([NewTopic(name, None, None, dict(enumerate(map(tuple, replicas))), {})])
        targets += [
            {"topic": name, "partition": p, "replicas": [_BROKERS, first]}
            for p, (first, _) in enumerate(replicas)
        ]
    world = World(cluster=cluster, pace=Pace(throttle=10_000_000))
    spec = {"partitions": targets, "batchSize": _BATCH}
    base_mb = _read_peak_mb()
    plan, plan_cpu_s = _measure_plan(world, spec)
    started_at = time.process_time()
    with _measure_cluster() as cluster_s:
        result = world.run(plan)
    apply_cpu_s = time.process_time() - started_at - sum(cluster_s)
    assert result.complete, [r for r in result.results.values() if not r.is_good][:3]
    moved = sum(_BROKERS in p.replicas for topic in cluster.topics().values() for p in topic.partitions)
    assert moved == topics * _PARTITIONS
    return Figures(
        topics,
        moved,
        len(plan.operations),
        round(plan_cpu_s, 2),
        round(apply_cpu_s, 2),
        round(base_mb),
        round(_read_peak_mb()),
    )


@contextmanager
def _measure_cluster() -> Iterator[list[float]]:
    """Collect the CPU times of the in-memory cluster, so that they can be subtracted.

    In each step and response, the cluster examines all of its data.
    """
    times: list[float] = []
    active_threads: set[int] = set()

    def measure(work: Callable[..., T]) -> Callable[..., T]:
        def run(*arguments: object, **named_arguments: object) -> T:
            thread = threading.get_ident()
            if thread in active_threads:  # called by work that is measured
                return work(*arguments, **named_arguments)
            active_threads.add(thread)
            started_at = time.thread_time()
            try:
                return work(*arguments, **named_arguments)
            finally:
                times.append(time.thread_time() - started_at)
                active_threads.remove(thread)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for owner, names in _CLUSTER_WORK.items():
            for name in names:
                patch.setattr(owner, name, measure(getattr(owner, name)))
        yield times


def _measure_plan(world: World, spec: dict[str, Any]) -> tuple[Plan, float]:
    started_at = time.process_time()
    plan = world.plan(desired("Reassignment", "all", **spec), scope=PlanScope())
    return plan, time.process_time() - started_at


def _read_peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str]) -> None:
    """Measure each size in a separate process, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moving", description=__doc__)
    parser.add_argument("--topics", type=int, nargs="+", default=[5_000, 10_000, 20_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        print(json.dumps(asdict(measure(options.one))))
        return
    print("| topics | partitions | operations | plan CPU s | apply CPU s | cluster alone MB | peak MB |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for topics in options.topics:
        command = [sys.executable, "-m", "benchmarks.moving", "--one", str(topics)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print("| " + " | ".join(f"{value:,}" for value in json.loads(output).values()) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
