"""The benchmark jobs. Both revisions run each job, and take turns at running it first.

The first round counts requests through a proxy. Its time is not measured, because Python compiles new modules
and brokers are slow at first.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.clusters import Bench, cluster
from benchmarks.measure import Cost
from benchmarks.revisions.comparison import Comparison
from benchmarks.revisions.counting_proxy import CountingProxy, count_requests
from benchmarks.revisions.trees import Revision
from benchmarks.topics import HOUR_MS, write_manifests, write_project, write_project_file

_NO_IMPACT = "--no-impact"
_PROJECT = "life"
_FEW = tuple(f"starting-{n}" for n in range(20))


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the jobs. The fleet job takes minutes per pair, so it has a separate number of pairs."""

    pairs: int
    fleet_pairs: int
    topics: int
    many_topics: int
    fleet_clusters: int
    fleet_topics: int


@dataclass(frozen=True, slots=True)
class Rounds:
    """Both revisions, the broker, and the figures."""

    revisions: tuple[Revision, Revision]
    sizes: Sizes
    comparison: Comparison
    bench: Bench
    proxy: CountingProxy
    _counting: list[bool] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        """The address of the proxy while requests are counted; otherwise, the address of the broker."""
        return self.proxy.bootstrap if self._counting else self.bench.bootstrap

    def run(self, pairs: int, work: Callable[[Sequence[Revision]], None]) -> None:
        """Run the work with both revisions: once to count requests, then ``pairs`` times to measure."""
        self._counting.append(True)
        work(self.revisions)
        self._counting.clear()
        for number in range(pairs):
            work(self.revisions if number % 2 == 0 else self.revisions[::-1])

    def command(
        self, job: str, revision: Revision, arguments: Sequence[str], folder: Path, *, asks: bool = True
    ) -> Cost:
        """Measure a command of kdeclare. asks: whether the command sends requests to the broker."""
        if asks:
            self.bench.settle()
        self.proxy.take_counts()
        cost = revision.run(["kdeclare", *arguments], folder)
        if not self._counting:
            self.comparison.add_cost(job, revision.name, cost)
        elif asks:
            self.comparison.add_requests(job, revision.name, self.proxy.take_counts())
        return cost


@contextmanager
def open_rounds(
    revisions: tuple[Revision, Revision], sizes: Sizes, comparison: Comparison
) -> Iterator[Rounds]:
    """Start a temporary broker."""
    with cluster(brokers=1) as bench, count_requests(int(bench.bootstrap.rpartition(":")[2])) as proxy:
        yield Rounds(revisions, sizes, comparison, bench, proxy)


def compare_starts(revisions: tuple[Revision, Revision], sizes: Sizes, comparison: Comparison) -> None:
    """Measure ``--help`` and ``topic list``."""
    with open_rounds(revisions, sizes, comparison) as rounds:
        create = ["topic", "create", *_FEW, "--yes", "--bootstrap-server", rounds.bootstrap]
        revisions[0].run(["kdeclare", *create], revisions[0].folder)

        def work(order: Sequence[Revision]) -> None:
            for revision in order:
                rounds.command("--help", revision, ["--help"], revision.folder, asks=False)
            for revision in order:
                listing = ["topic", "list", "--bootstrap-server", rounds.bootstrap]
                rounds.command("topic list", revision, listing, revision.folder)

        rounds.run(sizes.pairs, work)


def compare_creations(revisions: tuple[Revision, Revision], sizes: Sizes, comparison: Comparison) -> None:
    """Measure only the creations of `compare_lives`, so that many pairs take a short time."""

    def work(order: Sequence[Revision]) -> None:
        for revision in order:
            project = _write_project(rounds, revision, sizes.topics)
            rounds.command(f"create {sizes.topics:,}", revision, ["apply", "--yes"], project)
        for revision in order:
            revision.run(["kdeclare", "rollback", "--yes"], revision.folder / _PROJECT)

    with open_rounds(revisions, sizes, comparison) as rounds:
        rounds.run(sizes.pairs, work)


def compare_lives(revisions: tuple[Revision, Revision], sizes: Sizes, comparison: Comparison) -> None:
    """Measure creating and altering a thousand topics, a plan without changes, and rollbacks."""
    with open_rounds(revisions, sizes, comparison) as rounds:
        rounds.run(sizes.pairs, lambda order: _live(rounds, order, sizes.topics))


def _live(rounds: Rounds, order: Sequence[Revision], count: int) -> None:
    projects = {revision.name: _write_project(rounds, revision, count) for revision in order}

    def step(job: str, arguments: Callable[[Path], Sequence[str]]) -> None:
        for revision in order:
            project = projects[revision.name]
            rounds.command(f"{job} {count:,}", revision, arguments(project), project)

    step("create", lambda _: ["apply", "--yes"])
    created = {name: _first_run(project) for name, project in projects.items()}
    step("no-op plan of", lambda _: ["plan", "--detailed-exitcode"])
    for name, project in projects.items():
        write_manifests(project, f"life-{name}", count, 2 * HOUR_MS, replicas=1)
    step("alter", lambda _: ["apply", "--yes"])
    step("roll back the alteration of", lambda _: ["rollback", "--yes"])
    # Today, a rollback also reads its impact on records and consumers. Without it, the figure shows only the
    # cost of the rollback itself.
    options = {revision.name: _list_options_without_impact(revision) for revision in order}
    for revision in order:
        revision.run(["kdeclare", "apply", "--yes"], projects[revision.name])
    step(
        "roll back, without the impact, the alteration of",
        lambda project: ["rollback", "--yes", *options[project.parent.name]],
    )
    step("roll back the creation of", lambda project: ["rollback", created[project.parent.name], "--yes"])


def _write_project(rounds: Rounds, revision: Revision, count: int) -> Path:
    project = revision.folder / _PROJECT
    shutil.rmtree(project, ignore_errors=True)
    write_project(project, f"life-{revision.name}", count, rounds.bootstrap, replicas=1)
    return project


def _list_options_without_impact(revision: Revision) -> list[str]:
    """Return the options of a rollback that does not read its impact; empty if no rollback reads it."""
    help_text = revision.run(["kdeclare", "rollback", "--help"], revision.folder).output
    return [_NO_IMPACT] if _NO_IMPACT in help_text else []


def _first_run(project: Path) -> str:
    return min(project.glob("state/*/*/runs/*")).name


def compare_plans(revisions: tuple[Revision, Revision], sizes: Sizes, comparison: Comparison) -> None:
    """Measure a plan without changes for many topics."""
    count = sizes.many_topics
    with open_rounds(revisions, sizes, comparison) as rounds:
        for revision in revisions:
            project = revision.folder / "many"
            write_project(project, f"many-{revision.name}", count, rounds.bootstrap, replicas=1)
            revision.run(["kdeclare", "apply", "--yes"], project)

        def work(order: Sequence[Revision]) -> None:
            for revision in order:
                project = revision.folder / "many"
                write_project_file(project, rounds.bootstrap)
                rounds.command(f"no-op plan of {count:,}", revision, ["plan", "--detailed-exitcode"], project)

        rounds.run(sizes.pairs, work)


def compare_policies(revisions: tuple[Revision, Revision], sizes: Sizes, comparison: Comparison) -> None:
    """Run ``benchmarks.policies`` of each revision, and record the figures."""
    names: dict[int, str] = {}
    for number, revision in _by_turns(revisions, sizes.pairs):
        cost = revision.run(["benchmarks.policies", "--rounds", "3"], revision.folder)
        for row, line in enumerate(cost.output.splitlines()[2:]):
            by, _, each = (cell.strip() for cell in line.split("|")[3:6])
            if number == 0:
                names.setdefault(row, by)  # the new revision runs first; the names of the base can differ
            else:
                comparison.add_figure(f"policies, {names[row]}", revision.name, float(each), "µs")


def compare_fleets(revisions: tuple[Revision, Revision], sizes: Sizes, comparison: Comparison) -> None:
    """Run ``benchmarks.fleet`` of each revision, and record the figures and the total cost."""
    size = [f"--clusters={sizes.fleet_clusters}", f"--topics={sizes.fleet_topics}"]
    names: dict[int, str] = {}
    for number, revision in _by_turns(revisions, sizes.fleet_pairs):
        figures = revision.folder / "figures.json"
        data = [f"--data={revision.folder / 'fleet'}", *size]  # revisions can have different formats
        arguments = ["benchmarks.fleet", *data, "--rounds=1", "--only=warm", f"--json={figures}"]
        cost = revision.run(arguments, revision.folder, expected=(0, 1))  # 1: a target was missed
        for row, figure in enumerate(json.loads(figures.read_text())["rows"]):
            if number == 0:
                names.setdefault(row, figure["what"])
            else:
                comparison.add_figure(f"fleet, {names[row]}", revision.name, figure["value"], figure["unit"])
        if number:
            comparison.add_cost("fleet, total", revision.name, cost)


def _by_turns(revisions: tuple[Revision, Revision], pairs: int) -> Iterator[tuple[int, Revision]]:
    """Yield each revision with the number of its pair. Pair 0 is not measured."""
    for number in range(pairs + 1):
        for revision in revisions if number % 2 else revisions[::-1]:
            yield number, revision


JOBS: Mapping[str, Callable[[tuple[Revision, Revision], Sizes, Comparison], None]] = {
    "starts": compare_starts,
    "creations": compare_creations,
    "lives": compare_lives,
    "plans": compare_plans,
    "policies": compare_policies,
    "fleets": compare_fleets,
}
