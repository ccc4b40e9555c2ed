"""What has to hold before tasks run outside of this process."""

from collections.abc import Mapping

from pyspark import SparkConf
from pyspark.sql import SparkSession

from kdeclare.fleet.local_storage import folder_here
from kdeclare.fleet.spark.defaults import local_cores
from kdeclare.model.diagnostics import KdeclareError, error


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
