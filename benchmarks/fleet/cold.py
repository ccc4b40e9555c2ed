"""``python -m benchmarks.fleet.cold DATA OUT``: one comparison by Spark, from the start of a process."""

import sys
from pathlib import Path

from benchmarks.fleet import spark_way


def main() -> None:
    """Compare, and write the findings to a folder that is not there yet."""
    data, out = map(Path, sys.argv[1:])
    with spark_way.opened() as run:
        run(data, out)


if __name__ == "__main__":
    main()
