"""What a session is set to where nobody said otherwise."""

import os
import re
from collections.abc import Mapping

APP_NAME = "kdeclare"

SECRET = (
    r"(?i)secret|password|passphrase|token|credential|\bsas\b"
    r"|(access|account|private|api|encryption)[._-]?key"
)
"""Settings whose keys match hold what nobody else is to read; written so that Java takes it, too."""

_PER_CORE = 2
"""Partitions of a shuffle for each core: uneven ones even out, and a million rows need no more."""

_HEAP_SHARE = 6
"""The driver's heap is at most this part of the memory: Python workers need as much again beside it."""

_ELSEWHERE = {
    # Spark puts larger code of tasks into files of executors, and it holds the fleet's secrets.
    "spark.broadcast.UDFCompressionThreshold": "1g",
}


def session_defaults(master: str) -> Mapping[str, str]:
    """Spark's settings by key, for one master."""
    cores = local_cores(master)
    # How many cores a cluster gives is not known yet: Spark's own figure, and it joins small ones.
    of_master = {"spark.sql.shuffle.partitions": str(max(_PER_CORE * cores, 4))} if cores else _ELSEWHERE
    return of_master | {
        "spark.app.name": APP_NAME,
        "spark.ui.enabled": "false",
        "spark.redaction.regex": SECRET,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.worker.reuse": "true",
        # Where all parts of a join are small, a table of hashes is quicker than sorting; measured: a third.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "192MB",
        # A cluster is called `007` and not 7, also where a folder has its name.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parquet.compression.codec": "zstd",
    }


def local_cores(master: str) -> int | None:
    """How many tasks run at a time with a master in this process (``local[4]``); None with any other."""
    if master == "local":
        return 1
    found = re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master)
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1])


def driver_memory() -> str:
    """The driver's heap for a machine of this size: 1 GiB to 4 GiB, as ``SPARK_DRIVER_MEMORY`` has it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return f"{min(max(memory // _HEAP_SHARE, 1024), 4096)}m"
