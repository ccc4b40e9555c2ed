"""``python -m benchmarks.fleet``: diff a million topics with Spark, with a loop, and with DuckDB."""

import argparse
import json
import os
import platform
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.fleet.figures import Figure, cold, memory, prepared, table, warm

_PARTS = ("warm", "memory", "cold")


def main() -> None:
    """Measure and print. Exit with code 1 if a figure misses its target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="folder of the generated fleets"
    )
    parser.add_argument("--clusters", type=int, default=200, metavar="N")
    parser.add_argument("--topics", type=int, default=5000, metavar="N", help="topics per cluster")
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="number of rounds; figures are medians"
    )
    parser.add_argument(
        "--changed", type=float, default=0.03, metavar="SHARE", help="share of topics that differ"
    )
    parser.add_argument(
        "--unmanaged-keys",
        type=float,
        default=0.3,
        metavar="SHARE",
        help="share of live topics with an undeclared override",
    )
    parser.add_argument("--only", choices=_PARTS, nargs="+", default=_PARTS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument("--no-unmanaged-configs", action="store_true", help="see kdeclare fleet audit")
    options = parser.parse_args()
    all_keys = not options.no_unmanaged_configs
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ensures that no session remains
    busy = os.getloadavg()[0]
    data = prepared(options.data, options.clusters, options.topics, options.changed, options.unmanaged_keys)
    out = options.data / "findings"
    figures: list[Figure] = []
    if "warm" in options.only:
        figures += warm(data, out, options.rounds, unmanaged_keys=all_keys)
    if "memory" in options.only:
        figures += memory(data, out)
    if "cold" in options.only:
        figures += cold(data, out, unmanaged_keys=all_keys)
    topics = options.clusters * options.topics
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, medians of {options.rounds}"
    print(f"{topics:,} topics in {options.clusters} clusters; {machine}; load before {busy:.1f}\n")
    print(table(figures))
    if options.json is not None:
        content = {"machine": machine, "topics": topics, "load_before": busy}
        options.json.write_text(json.dumps(content | {"rows": [asdict(f) for f in figures]}, indent=2) + "\n")
    sys.exit(0 if all(figure.holds for figure in figures) else 1)


if __name__ == "__main__":
    main()
