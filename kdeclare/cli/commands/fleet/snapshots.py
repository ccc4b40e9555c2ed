"""``kdeclare fleet snapshot`` and ``kdeclare fleet history``."""

from typing import Annotated

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.fleet_options import EngineName, FleetClusterOptions, FleetFile, SparkOptions
from kdeclare.cli.options import Format
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode

SNAPSHOT_EPILOG = build_epilog(
    "kdeclare fleet snapshot fleet.yaml --out snapshots",
    "kdeclare fleet snapshot fleet.yaml --out s3a://bucket/kafka --master spark://host:7077",
    codes=(0, 1, 64, 130),
)
HISTORY_EPILOG = build_epilog(
    "kdeclare fleet history eu-1 orders --out snapshots",
    "kdeclare fleet history eu-1 BrokerConfig/cluster-default --out snapshots",
    codes=(0, 1, 64, 130),
)


def snapshot(
    fleet: FleetFile,
    *,
    engine: EngineName = "auto",
    output: Format = "text",
    clusters: FleetClusterOptions,
    console: Console,
) -> ExitCode:
    """Save the live state of a fleet as Parquet files.

    A snapshot has one row per resource. If a cluster cannot be reached, the snapshot contains the error, and
    the exit code is 1. If the command fails, no snapshot is written.
    """
    import os

    from kdeclare.app.fleet.snapshot import take_snapshot
    from kdeclare.report.fleet.fleet_runs import compute_snapshot_exit

    record = take_snapshot(clusters.options(fleet, engine), os.environ, console.progress)
    if console.is_json:
        console.write_document(record)
    else:
        from kdeclare.report.fleet.snapshot_text import render_snapshot_text

        console.out(render_snapshot_text(record, clusters.out, console.style))
    return compute_snapshot_exit(record)


def history(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[FLEET] CLUSTER TOPIC",
            help="Name of a cluster, and name of a topic (or KIND/NAME of another object). The fleet "
            "file can be the first argument, but is not needed.",
        ),
    ],
    *,
    engine: EngineName = "auto",
    output: Format = "text",
    spark: SparkOptions,
    console: Console,
) -> ExitCode:
    """Show how one topic changed from snapshot to snapshot.

    Reads the snapshots in DIR. To show an object that is not a topic, pass its KIND/NAME.
    """
    import os

    from kdeclare.app.fleet.snapshot import build_unknown_object_error, parse_live_key, read_object_history

    if len(words) not in (2, 3):
        raise typer.BadParameter("requires a cluster and a topic.", param_hint="CLUSTER TOPIC")
    cluster, key = words[-2], parse_live_key(words[-1])
    options = spark.results_options(engine)
    versions = read_object_history(options, cluster, key, os.environ, console.progress)
    if all(version.body is None and version.error is None for version in versions):
        raise KdeclareError(build_unknown_object_error(cluster, key, len(versions)))
    if console.is_json:
        from kdeclare.report.fleet.snapshot_text import build_object_history_document

        console.write_document(build_object_history_document(cluster, key, versions))
    else:
        from kdeclare.report.fleet.snapshot_text import render_object_history_text

        console.out(render_object_history_text(cluster, key, versions, console.style))
    return ExitCode.OK
