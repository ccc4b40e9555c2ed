"""``python -m benchmarks.placement``: compare kdeclare's replica placement with Kafka's."""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.striped import Assignment, StripedPlacer
from kdeclare.providers.kafka.live import Broker
from kdeclare.providers.kafka.reassignment.placement import place_replicas
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest

_RACKS = 5
_DRAINED = 7


@dataclass(frozen=True, slots=True)
class Scenario:
    """A placement request and its input.

    before: the assignment that Kafka's placer made.
    sizes: the number of partitions by topic.
    least: the minimum number of replicas that any algorithm has to copy to a broker.
    factor: the requested replication factor.
    """

    name: str
    brokers: Sequence[Broker]
    before: Assignment
    wish: PlacementRequest
    sizes: Mapping[str, int]
    least: int
    factor: int

    @property
    def usable(self) -> list[Broker]:
        """The brokers that are permitted to hold replicas."""
        return [broker for broker in self.brokers if broker.id not in self.wish.excluded_brokers]


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one placer in one scenario.

    seconds: the median time of the placement alone.
    moved: the number of replicas on brokers that did not have the replica before. replicas, leaders: the
        maximum per broker minus the minimum per broker.
    topics: the same difference for the replicas of one topic; the largest of all topics.
    unspread: the number of partitions on fewer racks than possible.
    """

    partitions: int
    scenario: str
    by: str
    seconds: float
    moved: int
    least: int
    replicas: int
    leaders: int
    topics: int
    unspread: int


def cluster(count: int) -> list[Broker]:
    """Return brokers in five racks. The sizes of the racks differ by at most one broker."""
    return [Broker(n, f"host-{n}", 9092, f"rack-{n % _RACKS}") for n in range(count)]


def scenarios(partitions: int, each: int, kafka: StripedPlacer) -> list[Scenario]:
    """Return scenarios with ``partitions`` partitions, ``each`` of them per topic, on 30 or 33 brokers."""
    thirty, more = cluster(30), cluster(33)
    sizes = {f"topic-{n:05}": each for n in range(partitions // each)}
    three, _ = kafka.place(thirty, sizes, 3)
    two, _ = kafka.place(thirty, sizes, 2)
    nothing = dict.fromkeys(sizes, ())
    counts = Counter(r for topic in three.values() for replicas in topic for r in replicas)
    fewest, rest = divmod(sum(counts.values()), len(more))
    too_many = sum(max(0, counts[broker.id] - fewest - (rest > 0)) for broker in more)
    too_few = sum(max(0, fewest - counts[broker.id]) for broker in more)
    drain = PlacementRequest(excluded_brokers=frozenset({_DRAINED}))
    return [
        Scenario("fresh", thirty, nothing, PlacementRequest(each, 3), sizes, 3 * partitions, 3),
        Scenario("RF 2→3", thirty, two, PlacementRequest(replication_factor=3), sizes, partitions, 3),
        Scenario("RF 3→2", thirty, three, PlacementRequest(replication_factor=2), sizes, 0, 2),
        Scenario("drain", thirty, three, drain, sizes, counts[_DRAINED], 3),
        Scenario(
            "rebalance", more, three, PlacementRequest(rebalance=True), sizes, max(too_many, too_few), 3
        ),
    ]


def measured(partitions: int, each: int, rounds: int, kafka: StripedPlacer) -> list[Row]:
    """Run the placement algorithms of kdeclare and Kafka in all scenarios with ``partitions`` partitions."""
    rows = []
    for scenario in scenarios(partitions, each, kafka):
        rows.append(_row(partitions, scenario, "kdeclare", rounds, _ours))
        rows.append(_row(partitions, scenario, "Kafka", rounds, lambda s: _kafkas(s, kafka)))
    return rows


def _ours(scenario: Scenario) -> tuple[Assignment, float]:
    begun = time.perf_counter()
    placed = place_replicas(scenario.brokers, scenario.before, scenario.wish)
    return placed, time.perf_counter() - begun


def _kafkas(scenario: Scenario, kafka: StripedPlacer) -> tuple[Assignment, float]:
    return kafka.place(scenario.usable, scenario.sizes, scenario.factor)


def _row(
    partitions: int,
    scenario: Scenario,
    by: str,
    rounds: int,
    placer: Callable[[Scenario], tuple[Assignment, float]],
) -> Row:
    done = [placer(scenario) for _ in range(rounds)]
    placed = done[0][0]
    rack = {broker.id: broker.rack for broker in scenario.brokers}
    spread = min(scenario.factor, len(set(rack.values())))
    after = [replicas for topic in placed.values() for replicas in topic]
    ids = [broker.id for broker in scenario.usable]
    return Row(
        partitions,
        scenario.name,
        by,
        round(statistics.median(seconds for _, seconds in done), 3),
        _moved(scenario.before, placed),
        scenario.least,
        _gap(ids, (r for replicas in after for r in replicas)),
        _gap(ids, (replicas[0] for replicas in after)),
        max(_gap(ids, (r for replicas in topic for r in replicas)) for topic in placed.values()),
        sum(len({rack[r] for r in replicas}) < spread for replicas in after),
    )


def _moved(before: Assignment, after: Assignment) -> int:
    moved = 0
    for name, placed in after.items():
        for number, replicas in enumerate(placed):
            old = before[name][number] if number < len(before[name]) else ()
            moved += len(set(replicas).difference(old))
    return moved


def _gap(ids: Sequence[int], held: Iterable[int]) -> int:
    counts = Counter(held)
    numbers = [counts[broker] for broker in ids]
    return max(numbers) - min(numbers)


def table(rows: Iterable[Row]) -> str:
    """Render the figures as a Markdown table."""
    lines = [
        "| partitions | scenario | by | s | moved | least | replicas max−min | in a topic "
        "| leaders max−min | not spread |",
        "|---:|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row.partitions:,} | {row.scenario} | {row.by} | {row.seconds:.2f} | {row.moved:,} "
            f"| {row.least:,} | {row.replicas} | {row.topics} | {row.leaders} | {row.unspread} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.placement", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1000, 10_000], metavar="N")
    parser.add_argument("--each", type=int, default=10, metavar="N", help="partitions of each topic")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="number of rounds; figures are medians"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as folder:
        kafka = StripedPlacer.compiled(Path(folder))
        rows = [row for n in options.partitions for row in measured(n, options.each, options.rounds, kafka)]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, medians of {options.rounds}; load before {busy:.1f}\n\n{table(rows)}")
    if options.json is not None:
        figures = {"machine": machine, "rounds": options.rounds, "load_before": busy}
        figures["rows"] = [asdict(row) for row in rows]
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
