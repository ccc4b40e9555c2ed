"""Measure the time and memory of a plan whose operations run one after another, on the in-memory cluster.

    python -m benchmarks.batched_operations [COUNT …]

Moves COUNT partitions one by one (batch size 1), so that the operations form a chain. Each count runs in a
separate process, because the benchmark measures the peak memory. For each count, the output contains the
number of operations, the seconds of each step, and the peak of resident memory. The last line compares the
time per operation of the largest count with that of the smallest count.
"""

import json
import resource
import subprocess
import sys
import time
from threading import Event

from kdeclare.core.clock import SystemClock
from kdeclare.core.parts import Connections
from kdeclare.core.plans.policy_gate import NO_POLICIES
from kdeclare.core.progress import ignore_progress
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.executor.apply import Applier
from kdeclare.engine.executor.expectations import find_stale_live, observe_operations
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster

COUNTS = (2_500, 5_000, 10_000, 20_000)
_PER_TOPIC = 100


class NoSecrets:
    """A stub for plans without secrets."""

    def reveal(self, secret: object) -> str:
        """Never called."""
        raise AssertionError(secret)


class NoWaiting(SystemClock):
    """A clock that never waits, because moves of the in-memory cluster complete after a few polls."""

    def sleep(self, seconds: float) -> None:
        """Return immediately."""


def request_moves(cluster: MemoryCluster, count: int) -> PlanRequest:
    """Build a reassignment of ``count`` partitions in batches of one."""
    topics = [f"t{n:05}" for n in range(-(-count // _PER_TOPIC))]
    replicas = dict.fromkeys(range(_PER_TOPIC), (1, 2))
    cluster.create_topics([NewTopic(name, None, None, replicas, {}) for name in topics])
    wanted = [
        {"topic": name, "partition": n, "replicas": [1, 3]} for name in topics for n in range(_PER_TOPIC)
    ]
    kind = KINDS["Reassignment"]
    body, problems = kind.parse(
        "moves", kind.spec.model_validate({"partitions": wanted[:count], "batchSize": 1})
    )
    assert not problems
    desired = (DesiredResource(ResourceId("Reassignment", "moves"), body),)
    return PlanRequest("benchmark", "default", "memory", desired, None, PlanScope())


def measure(count: int) -> dict[str, float]:
    """Return the seconds by step, the number of operations, and the peak memory in MiB."""
    cluster = MemoryCluster({1: "a", 2: "b", 3: "c"})
    cluster.move_ticks = 0
    # Moves complete with their request. Advancing the time on each poll would only visit every partition.
    cluster.tick_on_poll = False
    request = request_moves(cluster, count)
    secrets, seconds, started = NoSecrets(), {}, time.perf_counter()

    def lap(step: str) -> None:
        nonlocal started
        seconds[step] = round(time.perf_counter() - started, 3)
        started = time.perf_counter()

    plan = build_plan(request, Connections(KafkaConnection(cluster)), secrets, ignore_progress)
    lap("plan")
    parse_plan(render_plan_file(plan)[0], "it")
    lap("file")
    seen = observe_operations(Connections(KafkaConnection(cluster)), plan.operations)
    assert not find_stale_live(plan.operations, seen)
    lap("check")
    store = MemoryStore()
    with store.lock("benchmark"):
        applier = Applier(
            store,
            Connections(KafkaConnection(cluster)),
            secrets,
            ignore_progress,
            "me",
            "benchmark",
            NO_POLICIES,
            NoWaiting(),
            Event(),
        )
        run = applier.apply(plan, RunOptions(workers=1))
    lap("apply")
    assert run.complete
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"operations": len(plan.operations), **seconds, "peak_mib": round(peak)}


def main(arguments: list[str]) -> None:
    """Run each count in a separate process and print one line per count."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(int(arguments[1]))))
        return
    rows = []
    for count in map(int, arguments or map(str, COUNTS)):
        command = [sys.executable, "-m", "benchmarks.batched_operations", "--one", str(count)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print("  ".join(f"{name} {value:,}" for name, value in rows[-1].items()), flush=True)
    steps = ("plan", "file", "check", "apply")
    first, last = (sum(row[step] for step in steps) / row["operations"] for row in (rows[0], rows[-1]))
    print(f"time per operation, largest relative to smallest count: {last / first:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
