"""What a session is set to where nobody said otherwise, and what must not be left open where it is remote."""

import os
import re
from collections.abc import Mapping

from pyspark import SparkConf
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.storage import find_local_storage

APP_NAME = "kdeclare"

SECRET_KEY_PATTERN = (
    r"(?i)secret|password|passphrase|token|credential|\bsas\b"
    r"|(access|account|private|api|encryption)[._-]?key"
)
"""Settings whose keys match hold what nobody else is to read; written so that Java takes it, too."""

_PARTITIONS_PER_CORE = 2
"""Partitions of a shuffle for each core: uneven ones even out, and a million rows need no more."""

_HEAP_DIVISOR = 6
"""The driver's heap is at most this part of the memory: Python workers need as much again beside it."""

_REMOTE_SETTINGS = {
    # Spark puts larger code of tasks into files of executors, and it holds the fleet's secrets.
    "spark.broadcast.UDFCompressionThreshold": "1g",
}


def build_session_defaults(master: str) -> Mapping[str, str]:
    """Spark's settings by key, for one master."""
    cores = find_local_cores(master)
    # How many cores a cluster gives is not known yet: Spark's own figure, and it joins small ones.
    master_settings = (
        {"spark.sql.shuffle.partitions": str(max(_PARTITIONS_PER_CORE * cores, 4))}
        if cores
        else _REMOTE_SETTINGS
    )
    return master_settings | {
        "spark.app.name": APP_NAME,
        "spark.ui.enabled": "false",
        "spark.redaction.regex": SECRET_KEY_PATTERN,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.worker.reuse": "true",
        # Where all parts of a join are small, a table of hashes is quicker than sorting; measured: a third.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "192MB",
        # A cluster is called `007` and not 7, also where a folder has its name.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parquet.compression.codec": "zstd",
    }


def find_local_cores(master: str) -> int | None:
    """How many tasks run at a time with a master in this process (``local[4]``); None with any other."""
    if master == "local":
        return 1
    match = re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1])


def compute_driver_memory() -> str:
    """The driver's heap for a machine of this size: 1 GiB to 4 GiB, as ``SPARK_DRIVER_MEMORY`` has it."""
    machine_memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return f"{min(max(machine_memory_mib // _HEAP_DIVISOR, 1024), 4096)}m"


_AUTHENTICATION_SETTING = "spark.authenticate"
_ENCRYPTION_SETTINGS = (
    "spark.network.crypto.enabled",
    "spark.ssl.rpc.enabled",
    "spark.authenticate.enableSaslEncryption",
)
"""Each of them encrypts all that Spark's processes send each other."""


def has_local_tasks(spark: SparkSession) -> bool:
    """Whether tasks run in this process's own JVM, with the disk and the network of this machine."""
    return find_local_cores(spark.sparkContext.master or "") is not None


def reject_local_folders(settings: SparkConf, folders: Mapping[str, str]) -> None:
    """Raise KdeclareError where executors on other machines would write to disks of their own.

    Spark commits without an error what executors wrote where the driver cannot see it: tables are empty then.
    folders: the locations of tables, by the option that names them.
    """
    master = settings.get("spark.master") or ""
    local_folders = [
        f"{option} {folder}" for option, folder in folders.items() if find_local_storage(folder) is not None
    ]
    if not local_folders or find_local_cores(master) is not None:
        return
    raise KdeclareError(
        error(
            "local-folder",
            "Executors may not see a local folder",
            f"Tasks run on {master}, and this folder is on the disk of this "
            f"machine: {', '.join(local_folders)}. "
            "What executors write to their own disks would be missing from the result.",
            hint="Give a location that all of them reach (s3a://…, hdfs://…), or pass --shared-folders if "
            "the folder is mounted on every executor at the same path.",
        )
    )


def reject_unsecured_network(settings: SparkConf) -> None:
    """Raise KdeclareError where secrets would travel to tasks that anybody can read or pretend to be.

    Tasks in this process are exempt.
    """
    master = settings.get("spark.master") or ""
    if find_local_cores(master) is not None:
        return
    missing_settings = []
    if not _is_on(settings, _AUTHENTICATION_SETTING):
        missing_settings.append(f"{_AUTHENTICATION_SETTING} is not true")
    if not any(_is_on(settings, key) for key in _ENCRYPTION_SETTINGS):
        missing_settings.append(f"none of {', '.join(_ENCRYPTION_SETTINGS)} is true")
    if not missing_settings:
        return
    raise KdeclareError(
        error(
            "spark-not-secured",
            "Spark does not protect credentials",
            f"Tasks on {master} need the credentials of the clusters, and {', and '.join(missing_settings)}.",
            hint=f"Set {_AUTHENTICATION_SETTING}=true and {_ENCRYPTION_SETTINGS[0]}=true "
            f"(with spark.authenticate.secret where "
            "Spark does not make one) in spark-defaults.conf of the master, the workers and this machine, or "
            "run here with --master 'local[*]'.",
        )
    )


def _is_on(settings: SparkConf, key: str) -> bool:
    return (settings.get(key) or "").strip().lower() == "true"
