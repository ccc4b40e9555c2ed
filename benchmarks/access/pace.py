"""``python -m benchmarks.access.pace``: measure how much deletions of ACLs slow other clients down.

The deletions are measured for several values of `deletion_pace.TARGET_S`. Slots of three seconds without
deletions alternate with slots in which ACLs are deleted in the same way as by kdeclare, so that changes in
the load of the machine affect both in the same way. ``--command`` measures a whole ``kdeclare rollback``
instead, which is stopped (SIGSTOP) for three seconds after every ``--slot`` seconds.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.access import resources
from benchmarks.access.other_client import ALTER, PRODUCE, read_latencies, run_other_clients
from benchmarks.clusters import HEAP, Bench, secured_broker
from benchmarks.measure import environment, run
from kdeclare.providers.kafka.acl.binding import ALLOW, ANY_HOST, LITERAL, Binding
from kdeclare.providers.kafka.client import KafkaCluster, connect, read_properties
from kdeclare.providers.kafka.client.access import deletion_pace

_SLOT_S = 3.0
_PER_CALL = 50
IDLE, START, RUNNING = "no deletions", "start of the command", "deletions of the command"
_GRACE_S = 0.3
"""How long the controller may still handle a request after the command was stopped, in seconds."""


def list_bindings(count: int) -> list[Binding]:
    """Return the same bindings as `resources.list_bindings`, as `Binding` objects."""
    return [
        Binding(type_, name, LITERAL, principal, ANY_HOST, operation, ALLOW)
        for principal, type_, name, operation in resources.list_bindings(count)
    ]


def delete_for(cluster: KafkaCluster, bindings: list[Binding], seconds: float) -> int:
    """Delete bindings from the end of the list until the time is up. Return the number of deletions."""
    end, before = time.monotonic() + seconds, len(bindings)
    while bindings and time.monotonic() < end:
        results = cluster.delete_acls(bindings[-_PER_CALL:])
        assert set(results.values()) == {None}
        del bindings[-_PER_CALL:]
    return before - len(bindings)


def measure(bench: Bench, latencies: Path, count: int, targets: Sequence[float], rounds: int) -> None:
    """Create the bindings, delete them in slots, and print a table with a row for each target.

    targets: the values of `deletion_pace.TARGET_S`.
    """
    assert bench.client is not None
    # Each target has its own client, and so its own pace.
    clusters = {target: connect(bench.bootstrap, read_properties(bench.client)) for target in targets}
    bindings = list_bindings(count)
    assert set(clusters[targets[0]].create_acls(bindings).values()) == {None}
    slots: dict[float | str, list[tuple[float, float]]] = {IDLE: [], **{target: [] for target in targets}}
    deleted: dict[float | str, int] = dict.fromkeys(targets, 0)
    for _ in range(rounds):
        for target, cluster in clusters.items():
            begun = time.time()
            time.sleep(_SLOT_S)
            slots[IDLE].append((begun, time.time()))
            deletion_pace.TARGET_S = target
            begun = time.time()
            deleted[target] += delete_for(cluster, bindings, _SLOT_S)
            if bindings:
                slots[target].append((begun, time.time()))
    for cluster in clusters.values():
        cluster.close()
    _print_table(latencies, slots, deleted, count - len(bindings), count)


def measure_command(
    bench: Bench, folder: Path, latencies: Path, env: Mapping[str, str], count: int, slot_s: float
) -> None:
    """Create the bindings with ``kdeclare apply``, roll them back in slots, and print a table."""
    assert bench.client is not None
    project = folder / "project"
    resources.write_project(project, resources.ACL, count, bench.client, bench.bootstrap)
    run(["kdeclare", "apply", "--yes"], project, env)
    bench.settle()
    slots: dict[float | str, list[tuple[float, float]]] = {IDLE: [], START: [], RUNNING: []}
    begun = time.time()
    with subprocess.Popen(
        [sys.executable, "-m", "kdeclare", "rollback", "--yes"],
        cwd=project,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        time.sleep(_SLOT_S)
        slots[START].append((begun, time.time()))
        while True:
            begun = time.time()
            try:
                process.wait(slot_s)
                break
            except subprocess.TimeoutExpired:
                slots[RUNNING].append((begun, time.time()))
            process.send_signal(signal.SIGSTOP)
            time.sleep(_GRACE_S)
            begun = time.time()
            time.sleep(_SLOT_S)
            slots[IDLE].append((begun, time.time()))
            process.send_signal(signal.SIGCONT)
    slots[RUNNING].append((begun, time.time()))
    assert process.returncode == 0
    _print_table(latencies, slots, {RUNNING: count}, count, count)
    seconds = sum(end - begin for name in (START, RUNNING) for begin, end in slots[name])
    print(f"\nThe command ran for {seconds:.0f} s, without the slots in which it was stopped.")


def _print_table(
    latencies: Path,
    slots: Mapping[float | str, Sequence[tuple[float, float]]],
    deleted: Mapping[float | str, int],
    total: int,
    count: int,
) -> None:
    print(f"{total:,} of {count:,} bindings deleted; load {os.getloadavg()[0]:.1f}\n")
    print("| target ms | deletions per second | produce p50 / p99 ms | config change p50 / p99 ms |")
    print("|---|---:|---:|---:|")
    for name, periods in slots.items():
        if not periods:
            continue  # no bindings were left for this target
        seconds = sum(end - begin for begin, end in periods)
        rate = f"{deleted[name] / seconds:.0f}" if name in deleted else "–"
        found = read_latencies(latencies, periods)
        cells = " | ".join(f"{found[c].p50:.0f} / {found[c].p99:.0f}" for c in (PRODUCE, ALTER))
        label = f"{1000 * name:.0f}" if isinstance(name, float) else name
        print(f"| {label} | {rate} | {cells} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.access.pace", description=__doc__)
    parser.add_argument("--bindings", type=int, default=10_000, metavar="N")
    parser.add_argument("--targets", type=float, nargs="+", default=[0.006, 0.01, 0.015], metavar="S")
    parser.add_argument("--rounds", type=int, default=8, metavar="N")
    parser.add_argument("--command", action="store_true", help="measure a whole command instead")
    parser.add_argument(
        "--slot", type=float, default=_SLOT_S, metavar="S", help="between stops of the command"
    )
    options = parser.parse_args()
    os.environ.setdefault("KAFKA_HEAP_OPTS", HEAP)
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as folder, secured_broker() as bench:
        env = environment(Path(folder) / "cache")
        with run_other_clients(bench, Path(folder) / "latencies", env) as latencies:
            if options.command:
                measure_command(bench, Path(folder), latencies, env, options.bindings, options.slot)
            else:
                measure(bench, latencies, options.bindings, options.targets, options.rounds)


if __name__ == "__main__":
    main()
