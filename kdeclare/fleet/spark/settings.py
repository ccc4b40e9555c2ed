"""The default settings of Spark sessions, and checks of the settings for remote masters."""

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
"""Matches the keys of Spark settings that contain secrets.

The regular expression is valid in both Python and Java.
"""

_PARTITIONS_PER_CORE = 2
"""The number of shuffle partitions per core. With more than one, skewed partitions slow down a job less.

With a million rows, higher values do not improve the run time.
"""

_HEAP_DIVISOR = 6
"""The divisor of the machine's memory for the size of the driver's heap.

Python workers need about as much memory as the heap.
"""

_REMOTE_SETTINGS = {
    # Spark would store larger task code in files on executors. This code contains the secrets of the fleet.
    "spark.broadcast.UDFCompressionThreshold": "1g",
}


def build_session_defaults(master: str) -> Mapping[str, str]:
    """Return kdeclare's default settings for Spark with this master, by key."""
    cores = find_local_cores(master)
    # The number of cores of a remote cluster is unknown, so the partition count keeps Spark's default. Spark
    # merges small partitions.
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
        # For joins with small partitions, a hash join is faster than a sort join (by a third, as measured).
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "192MB",
        # Spark reads cluster names from folder names. The cluster name `007` must not become the number 7.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parquet.compression.codec": "zstd",
    }


def find_local_cores(master: str) -> int | None:
    """Return the number of concurrent tasks of a local master, such as 4 for ``local[4]``.

    Return None for any other master.
    """
    if master == "local":
        return 1
    match = re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1])


def compute_driver_memory() -> str:
    """Return the size of the driver's heap for this machine, in the format of ``SPARK_DRIVER_MEMORY``.

    The size is between 1 GiB and 4 GiB.
    """
    machine_memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return f"{min(max(machine_memory_mib // _HEAP_DIVISOR, 1024), 4096)}m"


_AUTHENTICATION_SETTING = "spark.authenticate"
_ENCRYPTION_SETTINGS = (
    "spark.network.crypto.enabled",
    "spark.ssl.rpc.enabled",
    "spark.authenticate.enableSaslEncryption",
)
"""The Spark settings that encrypt network traffic between Spark's processes. One of them is sufficient."""


def has_local_tasks(spark: SparkSession) -> bool:
    """Whether tasks run on this machine (local master) instead of on remote executors."""
    return find_local_cores(spark.sparkContext.master or "") is not None


def reject_local_folders(settings: SparkConf, folders: Mapping[str, str]) -> None:
    """Raise KdeclareError if remote executors would write tables to their own disks.

    Spark reports no error if the driver cannot see the files that executors wrote. The tables would seem to
    be empty.

    folders: the location of each table, by the option that sets the location.
    """
    master = settings.get("spark.master") or ""
    local_folders = [
        f"{option} {folder}" for option, folder in folders.items() if find_local_storage(folder) is not None
    ]
    if not local_folders or find_local_cores(master) is not None:
        return
    locations_are = "this location is" if len(local_folders) == 1 else "these locations are"
    raise KdeclareError(
        error(
            "local-folder",
            "Local folder with remote executors",
            f"Tasks run on {master}, but {locations_are} local to this machine: {', '.join(local_folders)}. "
            "Each executor would write to its own disk, and this machine could not read these files.",
            hint="Pass a location that all executors can reach (s3a://…, hdfs://…), or pass --shared-folders "
            "if the folder is mounted at the same path on every executor.",
        )
    )


def reject_unsecured_network(settings: SparkConf) -> None:
    """Raise KdeclareError if secrets would be sent to executors without authentication or encryption."""
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
            f"Spark would send the credentials of the clusters to {master} without protection, because "
            f"{' and '.join(missing_settings)}.",
            hint=f"Set {_AUTHENTICATION_SETTING}=true and {_ENCRYPTION_SETTINGS[0]}=true "
            "(and spark.authenticate.secret if Spark does not generate one) in spark-defaults.conf of the "
            "master, the workers and this machine, or run locally with --master 'local[*]'.",
        )
    )


def _is_on(settings: SparkConf, key: str) -> bool:
    return (settings.get(key) or "").strip().lower() == "true"
