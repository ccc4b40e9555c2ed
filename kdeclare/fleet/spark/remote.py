"""What has to hold before tasks run outside of this process."""

from collections.abc import Mapping

from pyspark import SparkConf
from pyspark.sql import SparkSession

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.fleet.local_storage import folder_here
from kdeclare.fleet.spark.defaults import local_cores

_AUTHENTICATED = "spark.authenticate"
_ENCRYPTED = (
    "spark.network.crypto.enabled",
    "spark.ssl.rpc.enabled",
    "spark.authenticate.enableSaslEncryption",
)
"""Each of them encrypts all that Spark's processes send each other."""


def runs_tasks_here(spark: SparkSession) -> bool:
    """Whether tasks run in this process's own JVM, with the disk and the network of this machine."""
    return local_cores(spark.sparkContext.master or "") is not None


def refuse_local_folders(settings: SparkConf, folders: Mapping[str, str]) -> None:
    """Raise KdeclareError where executors on other machines would write to disks of their own.

    Spark commits without an error what executors wrote where the driver cannot see it: tables are empty then.
    folders: the locations of tables, by the option that names them.
    """
    master = settings.get("spark.master") or ""
    local = [f"{option} {folder}" for option, folder in folders.items() if folder_here(folder) is not None]
    if not local or local_cores(master) is not None:
        return
    raise KdeclareError(
        error(
            "local-folder",
            "Executors may not see a local folder",
            f"Tasks run on {master}, and this folder is on the disk of this machine: {', '.join(local)}. "
            "What executors write to their own disks would be missing from the result.",
            hint="Give a location that all of them reach (s3a://…, hdfs://…), or pass --shared-folders if "
            "the folder is mounted on every executor at the same path.",
        )
    )


def refuse_open_network(settings: SparkConf) -> None:
    """Raise KdeclareError where secrets would travel to tasks that anybody can read or pretend to be.

    Tasks in this process are exempt.
    """
    master = settings.get("spark.master") or ""
    if local_cores(master) is not None:
        return
    missing = []
    if not _is_on(settings, _AUTHENTICATED):
        missing.append(f"{_AUTHENTICATED} is not true")
    if not any(_is_on(settings, key) for key in _ENCRYPTED):
        missing.append(f"none of {', '.join(_ENCRYPTED)} is true")
    if not missing:
        return
    raise KdeclareError(
        error(
            "spark-not-secured",
            "Spark does not protect credentials",
            f"Tasks on {master} need the credentials of the clusters, and {', and '.join(missing)}.",
            hint=f"Set {_AUTHENTICATED}=true and {_ENCRYPTED[0]}=true (with spark.authenticate.secret where "
            "Spark does not make one) in spark-defaults.conf of the master, the workers and this machine, or "
            "run here with --master 'local[*]'.",
        )
    )


def _is_on(settings: SparkConf, key: str) -> bool:
    return (settings.get(key) or "").strip().lower() == "true"
