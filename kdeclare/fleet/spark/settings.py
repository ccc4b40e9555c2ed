"""Defaults for Spark sessions, and checks of the settings for remote masters."""

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
"""Matches the keys of settings that contain secrets; the pattern is also valid in Java."""

_PARTITIONS_PER_CORE = 2
"""Shuffle partitions per core. Several even out skew; for a million rows, more than two do not help."""

_HEAP_DIVISOR = 6
"""The driver's heap gets this fraction of the memory, because Python workers need as much in addition."""

_REMOTE_SETTINGS = {
    # Spark stores larger task code in files on executors, and this code contains the fleet's secrets.
    "spark.broadcast.UDFCompressionThreshold": "1g",
}


def build_session_defaults(master: str) -> Mapping[str, str]:
    """Return Spark's default settings by key, for one master."""
    cores = find_local_cores(master)
    # The cores of a remote cluster are unknown here; Spark's default applies, and it merges small partitions.
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
        # For joins with small partitions, a hash join is faster than a sort join; measured: by a third.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "192MB",
        # The cluster `007` must not become 7 when its name is read from the name of a folder.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parquet.compression.codec": "zstd",
    }


def find_local_cores(master: str) -> int | None:
    """Return how many tasks run concurrently with a local master (``local[4]``); None for other masters."""
    if master == "local":
        return 1
    match = re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match[1] == "*" else int(match[1])


def compute_driver_memory() -> str:
    """Return the driver's heap for this machine, 1 GiB to 4 GiB, in the format of ``SPARK_DRIVER_MEMORY``."""
    machine_memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return f"{min(max(machine_memory_mib // _HEAP_DIVISOR, 1024), 4096)}m"


_AUTHENTICATION_SETTING = "spark.authenticate"
_ENCRYPTION_SETTINGS = (
    "spark.network.crypto.enabled",
    "spark.ssl.rpc.enabled",
    "spark.authenticate.enableSaslEncryption",
)
"""Each of these settings encrypts everything that Spark's processes send to each other."""


def has_local_tasks(spark: SparkSession) -> bool:
    """Whether tasks run in the JVM of this process, with the disk and the network of this machine."""
    return find_local_cores(spark.sparkContext.master or "") is not None


def reject_local_folders(settings: SparkConf, folders: Mapping[str, str]) -> None:
    """Raise KdeclareError if executors on other machines would write to their own disks.

    If the driver cannot see the files that executors wrote, Spark commits without an error, and tables are
    empty. folders: the locations of tables, by the option that sets them.
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
            "Files that executors write to their own disks would be missing from the result.",
            hint="Pass a location that all executors can reach (s3a://…, hdfs://…), or pass --shared-folders "
            "if the folder is mounted at the same path on every executor.",
        )
    )


def reject_unsecured_network(settings: SparkConf) -> None:
    """Raise KdeclareError if secrets would be sent to tasks without authentication or encryption.

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
            f"Tasks on {master} need the credentials of the clusters, but {' and '.join(missing_settings)}.",
            hint=f"Set {_AUTHENTICATION_SETTING}=true and {_ENCRYPTION_SETTINGS[0]}=true "
            "(and spark.authenticate.secret if Spark does not generate one) in spark-defaults.conf of the "
            "master, the workers and this machine, or run locally with --master 'local[*]'.",
        )
    )


def _is_on(settings: SparkConf, key: str) -> bool:
    return (settings.get(key) or "").strip().lower() == "true"
