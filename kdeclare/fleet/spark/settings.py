"""The default settings of Spark sessions, and checks of the settings for remote masters."""

import os
import re
from collections.abc import Mapping

from pyspark import SparkConf
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.spark.spark_errors import mask_uri_passwords
from kdeclare.fleet.tables.storage import find_local_storage

APP_NAME = "kdeclare"

SECRET_KEY_PATTERN = (
    r"(?i)secret|password|passphrase|token|credential|\bsas\b"
    r"|(access|account|private|api|encryption)[._-]?key"
)
"""Matches the keys of Spark settings that contain secrets.

The regular expression is valid in both Python and Java.
"""

REMOTE_SETTING = "spark.remote"
"""The Spark setting with the address of a Spark Connect server."""

_PARTITIONS_PER_CORE = 2
"""The number of shuffle partitions per core. If it is above 1, skewed partitions slow down a job less.

With a million rows, higher values do not improve the run time.
"""

_HEAP_DIVISOR = 6
"""The size of the driver's heap is the memory of the machine divided by this number.

Python workers need about as much memory as the heap.
"""

SESSION_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # For joins with small partitions, a hash join is faster than a sort join (by a third, as measured).
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "192MB",
    # Spark reads cluster names from folder names. The cluster name `007` must not become the number 7.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.compression.codec": "zstd",
}
"""kdeclare's default session settings, by key. They can also be set for Spark Connect sessions."""

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
    return (
        master_settings
        | SESSION_DEFAULTS
        | {
            "spark.app.name": APP_NAME,
            "spark.ui.enabled": "false",
            "spark.redaction.regex": SECRET_KEY_PATTERN,
            "spark.python.worker.reuse": "true",
            # In object stores, a rename copies the file. Version 1 renames each file twice, version 2 once.
            # Version 2 can leave partial files. They do no harm: kdeclare counts the rows that it reads.
            "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        }
    )


FIXED_SETTINGS = {
    # Spark's default is INT96, which has no time zone, and which other readers do not expect.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""The settings that users cannot change, because readers of kdeclare's files rely on them."""


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


NETWORK_SETTINGS = (_AUTHENTICATION_SETTING, *_ENCRYPTION_SETTINGS)
"""The Spark settings that `reject_unsecured_network` checks, in addition to the master."""


def is_connect_session(spark: SparkSession) -> bool:
    """Whether the session is on a Spark Connect server, so that this process has no JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def has_local_tasks(spark: SparkSession) -> bool:
    """Whether tasks run on this machine (local master) instead of on remote executors.

    A Spark Connect server counts as remote, even if its address is on this machine: it can run in a container
    or behind a tunnel.
    """
    return not is_connect_session(spark) and find_local_cores(spark.sparkContext.master or "") is not None


def reject_local_folders(settings: SparkConf, folders: Mapping[str, str]) -> None:
    """Raise KdeclareError if remote executors would write tables to their own disks.

    Spark reports no error if the driver cannot see the files that executors wrote. The tables would seem to
    be empty. Executors of a Spark Connect server are always remote, see `has_local_tasks`.

    folders: the location of each table, by the option that sets the location.
    """
    remote = settings.get(REMOTE_SETTING) or ""
    master = remote or settings.get("spark.master") or ""
    local_folders = [
        f"{option} {folder}" for option, folder in folders.items() if find_local_storage(folder) is not None
    ]
    if not local_folders or find_local_cores(master) is not None:
        return
    use_location = "Pass a location that all executors can reach (s3a://…, hdfs://…), or pass"
    locations_are = "this location is" if len(local_folders) == 1 else "these locations are"
    raise KdeclareError(
        error(
            "local-folder",
            "Local folder with remote executors",
            f"Tasks run on {master}, but {locations_are} local to this machine: {', '.join(local_folders)}. "
            "Each executor would write to its own disk, and this machine could not read these files.",
            hint=f"{'Pass' if remote else use_location} --shared-folders if the folder is mounted at the "
            "same path on every executor.",
        )
    )


def reject_remote_folders(settings: SparkConf, folders: Mapping[str, str]) -> None:
    """Raise KdeclareError if a Spark Connect session would have to use a location that is not local.

    Only Spark's JVM can list, rename and delete files in remote locations, and Spark Connect has no functions
    for this.

    folders: see `reject_local_folders`.
    """
    remote = settings.get(REMOTE_SETTING)
    locations = [
        f"{option} {mask_uri_passwords(folder)}"
        for option, folder in folders.items()
        if find_local_storage(folder) is None
    ]
    if not remote or not locations:
        return
    raise KdeclareError(
        error(
            "connect-location",
            "Location not supported with Spark Connect",
            f"kdeclare cannot publish tables through {remote} in {', '.join(locations)}: Spark Connect gives "
            "clients no access to Hadoop's file systems.",
            hint="Pass a local folder that is mounted at the same path on every executor, with "
            "--shared-folders, or pass another master (spark://…, yarn or k8s://…).",
        )
    )


def reject_unprotected_server(url: str, *, is_protected: bool) -> None:
    """Raise KdeclareError if the connection to a Spark Connect server would not be encrypted.

    is_protected: whether the connection uses TLS or does not leave this machine.
    """
    if is_protected:
        return
    raise KdeclareError(
        error(
            "spark-not-secured",
            "Spark does not protect credentials",
            f"kdeclare would send code, and the credentials of the clusters, to {url} without encryption.",
            hint=f"Add the parameter use_ssl: {url}/;use_ssl=true. Without TLS, kdeclare only connects to "
            "servers on this machine (sc://localhost).",
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
    remote = settings.get(REMOTE_SETTING)
    executors = master if not remote else f"the executors of {remote} ({master})"
    raise KdeclareError(
        error(
            "spark-not-secured",
            "Spark does not protect credentials",
            f"Spark would send the credentials of the clusters to {executors} without protection, because "
            f"{' and '.join(missing_settings)}.",
            hint=f"Set {_AUTHENTICATION_SETTING}=true and {_ENCRYPTION_SETTINGS[0]}=true "
            "(and spark.authenticate.secret if Spark does not generate one) in spark-defaults.conf of the "
            "master, the workers and this machine, or run locally with --master 'local[*]'.",
        )
    )


def _is_on(settings: SparkConf, key: str) -> bool:
    return (settings.get(key) or "").strip().lower() == "true"
