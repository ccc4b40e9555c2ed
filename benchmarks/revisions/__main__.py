"""``python -m benchmarks.revisions BASE``: compare the cost of kdeclare with an earlier commit."""

import argparse
import json
import os
import platform
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.clusters import HEAP
from benchmarks.revisions.comparison import LIMIT, Comparison, render_table
from benchmarks.revisions.jobs import JOBS, Sizes
from benchmarks.revisions.trees import describe, open_revisions


def main() -> None:
    """Measure and print. Exit with code 1 if a job may be over 10 % slower, or sends more requests."""
    options = _parse_options()
    sizes = Sizes(
        options.pairs,
        options.fleet_pairs or options.pairs,
        options.topics,
        options.many_topics,
        options.fleet_clusters,
        options.fleet_topics,
    )
    os.environ.setdefault("KAFKA_HEAP_OPTS", HEAP)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stop the brokers, too
    busy = os.getloadavg()[0]
    comparison = Comparison()
    with open_revisions(options.base) as revisions:
        for job in options.jobs:
            JOBS[job](revisions, sizes, comparison)
    rows = list(comparison.rows())
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load before {busy:.1f}"
    base, new = describe(options.base), describe("HEAD")
    print(f"{base} → {new}; {machine}; target: interval ends by {LIMIT}\n\n{render_table(rows)}")
    if options.json is not None:
        content = {"base": base, "new": new, "machine": machine, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(content | {"values": comparison.values}, indent=2) + "\n")
    sys.exit(0 if all(row.holds for row in rows) else 1)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revisions", description=__doc__)
    parser.add_argument("base", metavar="BASE", help="a commit of this repository")
    parser.add_argument("--pairs", type=int, default=15, metavar="N")
    parser.add_argument("--jobs", choices=JOBS, nargs="+", default=list(JOBS))
    parser.add_argument(
        "--topics",
        type=int,
        default=1000,
        metavar="N",
        help="topics of the job 'lives', which creates, alters and rolls back topics, and of 'creations'",
    )
    parser.add_argument(
        "--many-topics",
        type=int,
        default=5000,
        metavar="N",
        help="topics of the job 'plans', which makes plans without changes",
    )
    parser.add_argument(
        "--fleet-pairs",
        type=int,
        metavar="N",
        help="pairs of the fleet job, which takes minutes (default: as many as --pairs)",
    )
    parser.add_argument("--fleet-clusters", type=int, default=40, metavar="N")
    parser.add_argument("--fleet-topics", type=int, default=2000, metavar="N", help="topics per cluster")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
