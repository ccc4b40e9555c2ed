"""The measurements of both revisions, pair by pair, and their ratio with a confidence interval."""

import random
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.measure import Cost

LIMIT = 1.1
"""The target: the confidence interval of a ratio must not extend above this value."""
_RESAMPLES = 10_000

Pair = tuple[float, float]
"""A figure of the base revision, and the same figure of the new revision."""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one job.

    ratio: the median of the ratios of all pairs. low, high: the 95 % confidence interval of the median.
    unit: "CPU s", or "" if the job itself measures a ratio.
    memory_mb: the medians of the peaks, or None if the memory is not measured.
    requests: the number of requests by API for both revisions, or None if there is no cluster.
    """

    job: str
    unit: str
    pairs: int
    base: float
    new: float
    ratio: float
    low: float
    high: float
    memory_mb: Pair | None
    requests: tuple[Mapping[str, int], Mapping[str, int]] | None

    @property
    def holds(self) -> bool:
        """Whether the interval ends at or below `LIMIT`, and the new revision sends no more requests."""
        if self.requests is None:
            return self.high <= LIMIT
        base, new = self.requests
        return self.high <= LIMIT and sum(new.values()) <= sum(base.values())


@dataclass(slots=True)
class Comparison:
    """The collected figures, by job and by the name of the revision."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    _peaks: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    _requests: dict[str, dict[str, Mapping[str, int]]] = field(default_factory=dict)
    _units: dict[str, str] = field(default_factory=dict)

    def add_cost(self, job: str, revision: str, cost: Cost) -> None:
        """Record the cost of a process."""
        self.add_figure(job, revision, cost.cpu_s, "CPU s")
        self._peaks.setdefault(job, {}).setdefault(revision, []).append(cost.peak_mb)

    def add_figure(self, job: str, revision: str, value: float, unit: str) -> None:
        """Record a figure that a job measured itself."""
        print(f"{value:8.3f} {unit:5}  {revision:4}  {job}", file=sys.stderr, flush=True)
        self._units[job] = unit
        self.values.setdefault(job, {}).setdefault(revision, []).append(value)

    def add_requests(self, job: str, revision: str, counts: Mapping[str, int]) -> None:
        """Record the requests of one run of a job."""
        print(f"{sum(counts.values()):8} requests  {revision:4}  {job}", file=sys.stderr, flush=True)
        self._requests.setdefault(job, {})[revision] = counts

    def rows(self) -> Iterable[Row]:
        """Yield the figures of each job, in the order in which the jobs were first measured."""
        for job, values in self.values.items():
            pairs = list(zip(values["base"], values["new"], strict=True))
            ratios = [new / base for base, new in pairs]
            low, high = confidence_interval(ratios)
            peaks, requests = self._peaks.get(job), self._requests.get(job)
            yield Row(
                job,
                self._units[job],
                len(pairs),
                statistics.median(values["base"]),
                statistics.median(values["new"]),
                statistics.median(ratios),
                low,
                high,
                (statistics.median(peaks["base"]), statistics.median(peaks["new"])) if peaks else None,
                (requests["base"], requests["new"]) if requests else None,
            )


def confidence_interval(ratios: Sequence[float]) -> Pair:
    """Return the 95 % confidence interval of the median, by a deterministic bootstrap over the pairs."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    return medians[_RESAMPLES * 25 // 1000], medians[_RESAMPLES * 975 // 1000 - 1]


def render_table(rows: Iterable[Row]) -> str:
    """Render the comparison as a Markdown table."""
    lines = [
        "| job | pairs | base | new | ratio | 95 % interval | requests | peak MB | |",
        "|---|---:|---:|---:|---:|---|---|---|---|",
    ]
    for row in rows:
        medians = f"{row.base:.3f} {row.unit} | {row.new:.3f} {row.unit}"
        ratio = f"{row.ratio:.3f} | {row.low:.3f}–{row.high:.3f}"
        memory = "–" if row.memory_mb is None else f"{row.memory_mb[0]:.0f} → {row.memory_mb[1]:.0f}"
        verdict = "" if row.holds else "**missed**"
        lines.append(
            f"| {row.job} | {row.pairs} | {medians} | {ratio} | {_requests(row)} | {memory} | {verdict} |"
        )
    return "\n".join(lines)


def _requests(row: Row) -> str:
    if row.requests is None:
        return "–"
    base, new = row.requests
    if base == new:
        return str(sum(base.values()))
    names = sorted(name for name in {*base, *new} if base.get(name) != new.get(name))
    apart = ", ".join(f"{name} {base.get(name, 0)} → {new.get(name, 0)}" for name in names)
    return f"{sum(base.values())} → {sum(new.values())} ({apart})"
