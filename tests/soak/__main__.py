"""Run a soak; see the package."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import run_soak
from tests.soak.stores import STORES


def main() -> int:
    """Run a soak, print its report, and return 1 if there are violations."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1_000_000))
    parser.add_argument("--store", choices=STORES, help="default: chosen by the seed")
    parser.add_argument("--folder", type=Path, help="for all files, which are kept; default: a temporary one")
    parser.add_argument("--most-violations", type=int, default=0, help="end the soak after more than these")
    options = parser.parse_args()
    store = options.store or STORES[options.seed % len(STORES)]
    print(f"seed {options.seed}, store {store}", flush=True)

    def run(folder: Path) -> int:
        report = run_soak(
            folder,
            options.minutes * 60,
            options.seed,
            store,
            lambda text: print(text, flush=True),
            options.most_violations,
        )
        print(report, flush=True)
        return 1 if report.violations else 0

    if options.folder is not None:
        options.folder.mkdir(parents=True)
        return run(options.folder)
    with tempfile.TemporaryDirectory(prefix="kdeclare-soak-") as folder:
        return run(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
