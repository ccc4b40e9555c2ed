"""Choose between the local engine and Spark for a fleet command."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from kdeclare.app.fleet.job import Engine, FleetOptions
from kdeclare.fleet.tables.storage import find_local_storage

MAX_LOCAL_ROWS = 100_000
"""The number of declared and live resources above which ``auto`` uses Spark.

The local engine needs up to 0.5 GB of memory for this many resources; see docs/scale.md.
"""

MAX_LOCAL_PLANNED = 50_000
"""The number of planned resources above which ``auto`` uses Spark. See docs/scale.md."""


def choose_engine(
    options: FleetOptions, environ: Mapping[str, str], snapshot_folder: str | None = None
) -> Engine:
    """Return the engine with which the command starts.

    With ``auto``, this is the local engine if all folders are local, the command line contains no option for
    Spark, and Spark's own settings do not select a master.

    snapshot_folder: the folder of the snapshot that the command also reads, or None.
    """
    if options.engine is not Engine.AUTO:
        return options.engine
    folders = (options.out, snapshot_folder or options.out)
    is_local = all(find_local_storage(folder) is not None for folder in folders)
    needs_spark = options.master or options.conf or options.shared_folders or has_spark_master(environ)
    return Engine.LOCAL if is_local and not needs_spark else Engine.SPARK


def has_spark_master(environ: Mapping[str, str]) -> bool:
    """Whether Spark's environment variables or settings file select a master or a Spark Connect server."""
    if environ.get("SPARK_REMOTE"):
        return True
    arguments = environ.get("PYSPARK_SUBMIT_ARGS", "")
    try:
        words = shlex.split(arguments)
    except ValueError:
        words = arguments.split()
    if any(re.match(r"--(master|remote)(=|$)|spark\.(master|remote)=", word) for word in words):
        return True
    folder = environ.get("SPARK_CONF_DIR") or (
        str(Path(environ["SPARK_HOME"], "conf")) if environ.get("SPARK_HOME") else None
    )
    if folder is None:
        return False
    try:
        text = Path(folder, "spark-defaults.conf").read_text(errors="replace")
    except OSError:
        return False
    return re.search(r"^\s*spark\.(master|remote)[\s=]", text, re.MULTILINE) is not None
