"""``python -m benchmarks.synthetic_fleet OUT``: generate both tables of a synthetic fleet as Parquet.

The rows are encoded like those of real topics. The same arguments give the same rows. The findings are known:
they are counted during the generation, and written to OUT/planted.json.
"""

import argparse
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from benchmarks.synthetic.cases import Odds, counted, drawn
from benchmarks.synthetic.tables import Place, declared_table, live_table
from benchmarks.synthetic.templates import templates

_PLANTED = "planted.json"
_FORMAT = 3
"""The version of the rows. Folders with a different version are generated again."""
_FEW = 20_000
"""Up to this number of topics, one process is faster than several, which would each create the templates."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The size of a fleet. topics: the average per cluster. skew: the first cluster's share of all topics."""

    clusters: int = 200
    topics: int = 5000
    changed: float = 0.03
    unmanaged_keys: float = 0.3
    skew: float | None = None
    seed: int = 1

    @property
    def sizes(self) -> Sequence[int]:
        """The number of topics of each cluster."""
        if self.skew is None or self.clusters == 1:
            return [self.topics] * self.clusters
        every = self.clusters * self.topics
        first = round(every * self.skew)
        each, over = divmod(every - first, self.clusters - 1)
        return [first, *(each + (n < over) for n in range(self.clusters - 1))]


@dataclass(frozen=True, slots=True)
class Planted:
    """The number of rows in each table, and the number of findings by kind."""

    declared: int
    live: int
    findings: Mapping[str, int]


def write(
    folder: Path,
    clusters: int = 200,
    topics: int = 5000,
    changed: float = 0.03,
    unmanaged_keys: float = 0.3,
    skew: float | None = None,
    seed: int = 1,
) -> Planted:
    """Write the tables ``declared`` and ``live`` to a folder, with one file per cluster and table.

    changed: the share of topics that differ. unmanaged_keys: the share of live topics with an undeclared
    override. Does nothing if the folder already contains exactly this fleet.
    """
    wanted = Wanted(clusters, topics, changed, unmanaged_keys, skew, seed)
    there = _there(folder, wanted)
    if there is not None:
        return there
    for name in ("declared", "live"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for old in (folder / name).glob("*.parquet"):
            old.unlink()
    # Start with the largest cluster, so that the other processes do not wait for it at the end.
    order = sorted(range(clusters), key=lambda n: -wanted.sizes[n])
    with _mapping(clusters * topics) as mapped:
        parts = list(mapped(_write_cluster, repeat(folder), repeat(wanted), order))
    findings: Counter[str] = Counter()
    for part in parts:
        findings.update(part.findings)
    planted = Planted(sum(p.declared for p in parts), sum(p.live for p in parts), dict(findings))
    content = {"format": _FORMAT, "wanted": asdict(wanted), "planted": asdict(planted)}
    (folder / _PLANTED).write_text(json.dumps(content, indent=2) + "\n")
    return planted


@contextmanager
def _mapping(topics: int) -> Iterator[Callable[..., Iterable[Planted]]]:
    if topics <= _FEW:
        yield map
        return
    # Arrow starts threads, and a process with threads must not be forked.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool.map


def _there(folder: Path, wanted: Wanted) -> Planted | None:
    file = folder / _PLANTED
    if file.exists():
        content = json.loads(file.read_text())
        if content["format"] == _FORMAT and content["wanted"] == asdict(wanted):
            return Planted(**content["planted"])
        file.unlink()
    return None


def _write_cluster(folder: Path, wanted: Wanted, number: int) -> Planted:
    place = Place(number)
    made = templates(wanted.seed)
    rng = Random(f"{wanted.seed} {place.name}")
    odds = Odds(wanted.changed, wanted.unmanaged_keys)
    topics = list(drawn(rng, wanted.sizes[number], len(made.shapes), made.extras, odds))
    declared = declared_table(place, topics, made)
    live = live_table(place, topics, made, rng)
    for table, rows in (("declared", declared), ("live", live)):
        pq.write_table(rows, folder / table / f"{place.name}.parquet", compression="zstd")
    return Planted(declared.num_rows, live.num_rows, counted(topics))


def main() -> None:
    """Write the fleet, and print the planted findings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthetic_fleet", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--clusters", type=int, default=200, metavar="N")
    parser.add_argument("--topics", type=int, default=5000, metavar="N", help="topics per cluster")
    parser.add_argument(
        "--changed", type=float, default=0.03, metavar="SHARE", help="share of topics that differ"
    )
    parser.add_argument("--unmanaged-keys", type=float, default=0.3, metavar="SHARE")
    parser.add_argument(
        "--skew", type=float, metavar="SHARE", help="share of all topics in the first cluster"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    given = vars(parser.parse_args())
    begun = time.perf_counter()
    planted = write(given.pop("out"), **given)
    print(
        f"{planted.declared:,} declared and {planted.live:,} live rows, {time.perf_counter() - begun:.0f} s"
    )
    for kind, count in sorted(planted.findings.items()):
        print(f"{count:12,} {kind}")


if __name__ == "__main__":
    main()
