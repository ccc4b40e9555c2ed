"""The measured figures, in the order of the table, and their targets."""

import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fleet.process import Cost, Way, opened
from benchmarks.fleet.sameness import Digest, digest
from benchmarks.measure import environment, run
from benchmarks.synthetic_fleet import Planted, write

SPARK, LOOP, DUCKDB = "spark", "loop", "duckdb"
_ALONE = "local-cluster[2,1,2048]"
"""A Spark master that runs executors in separate processes, to measure the driver's memory alone."""


@dataclass(frozen=True, slots=True)
class Data:
    """The folders of the fleets. ``large`` has ten times as many topics per cluster as ``small``."""

    small: Path
    large: Path
    skewed: Path
    planted: Planted


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. limit: the maximum value that meets the target; None if there is no target."""

    what: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the figure meets its target."""
        return self.limit is None or self.value <= self.limit


def prepared(folder: Path, clusters: int, topics: int, changed: float, unmanaged_keys: float) -> Data:
    """Generate the fleets that do not exist yet. For the parameters, see `synthetic_fleet.write`."""
    small, large, skewed = (folder / name for name in ("small", "large", "skewed"))
    write(small, clusters, topics // 10, changed, unmanaged_keys)
    planted = write(large, clusters, topics, changed, unmanaged_keys)
    write(skewed, clusters, topics, changed, unmanaged_keys, skew=0.3)
    return Data(small, large, skewed, planted)


def warm(data: Data, out: Path, rounds: int, *, unmanaged_keys: bool) -> Iterator[Figure]:
    """Yield the times of all methods and their ratios. Check that all methods produce the same findings."""
    with ExitStack() as stack:
        names = (SPARK, LOOP, DUCKDB)
        ways = {n: stack.enter_context(opened(n, unmanaged_keys=unmanaged_keys)) for n in names}
        for way in ways.values():
            way(data.small, out / "warming")
        taken: dict[tuple[str, str], list[float]] = {}
        for number in range(rounds):
            for name in ways:
                _run(taken, (name, "large"), ways[name], data.large, out / name, number)
            for fleet, where in (("small", data.small), ("skewed", data.skewed)):
                _run(taken, (SPARK, fleet), ways[SPARK], where, out / fleet, number)
    _check_same([digest(out / name) for name in names], data.planted if unmanaged_keys else None)
    medians = {key: statistics.median(values) for key, values in taken.items()}
    for name, limit in ((LOOP, 0.6), (DUCKDB, 2.5)):
        yield Figure(f"{name}, 1×", medians[name, "large"], "s")
        yield Figure(f"Spark / {name}", medians[SPARK, "large"] / medians[name, "large"], "", limit)
    yield Figure("Spark, 1×", medians[SPARK, "large"], "s")
    yield Figure("Spark, 1× / 0.1×", medians[SPARK, "large"] / medians[SPARK, "small"], "", 3.0)
    yield Figure(
        "Spark, 30 % in one cluster / even", medians[SPARK, "skewed"] / medians[SPARK, "large"], "", 1.25
    )


def memory(data: Data, out: Path, growth: float = 1.25) -> Iterator[Figure]:
    """Yield the driver's memory (Python and Java together), with a separate session for each fleet."""
    peaks = []
    for name, fleet in (("0.1×", data.small), ("1×", data.large)):
        with opened(SPARK, _ALONE, unmanaged_keys=True) as way:
            cost = way(fleet, out / "memory")
            _say(f"memory, {name}", cost)
            peaks.append(cost.own_mb + cost.jvm_mb)
        yield Figure(f"driver's memory, {name}", peaks[-1], "MB")
    yield Figure("driver's memory, 1× / 0.1×", peaks[1] / peaks[0], "", growth)


def cold(data: Data, out: Path, *, unmanaged_keys: bool) -> Iterator[Figure]:
    """Yield the time of an audit in a new process, from its start until all reports are written."""
    out.mkdir(exist_ok=True)
    target = out / "cold"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as cache:
        arguments = ["benchmarks.fleet.cold", str(data.large), str(target), *(["all"] * unmanaged_keys)]
        cost = run(arguments, out, environment(Path(cache)))
    yield Figure("Spark, 1×, from the start of the process to the reports", cost.wall_s, "s", 40.0)


def table(figures: Iterable[Figure]) -> str:
    """Render the figures as a Markdown table."""
    lines = ["| figure | value | target | |", "|---|---:|---:|---|"]
    for one in figures:
        value = f"{one.value:,.0f} {one.unit}" if one.unit == "MB" else f"{one.value:.2f} {one.unit}".rstrip()
        asked = "" if one.limit is None else f"≤ {one.limit:g} {one.unit}".rstrip()
        lines.append(f"| {one.what} | {value} | {asked} | {'' if one.holds else '**missed**'} |")
    return "\n".join(lines)


def _run(
    taken: dict[tuple[str, str], list[float]],
    key: tuple[str, str],
    way: Way,
    data: Path,
    out: Path,
    number: int,
) -> None:
    cost = way(data, out)
    _say(f"round {number + 1}: {' '.join(key)}", cost)
    taken.setdefault(key, []).append(cost.wall_s)


def _say(what: str, cost: Cost) -> None:
    memory = f"{cost.own_mb:6.0f} MB, Java {cost.jvm_mb:5.0f} MB, tasks {cost.rest_mb:5.0f} MB"
    print(f"{cost.wall_s:7.2f} s {memory}  {what}", file=sys.stderr, flush=True)


def _check_same(digests: Sequence[Digest], planted: Planted | None) -> None:
    wrong = planted is not None and dict(digests[0].by_kind) != dict(planted.findings)
    if wrong or len(set(map(str, digests))) > 1:
        raise RuntimeError(f"The findings differ: {digests}; expected {planted}")
