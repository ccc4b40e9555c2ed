"""``kdeclare fleet snapshot``, ``kdeclare fleet diff`` and ``kdeclare fleet history``."""

from typing import Annotated

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.fleet_options import EngineName, FleetClusterOptions, FleetFile, SparkOptions
from kdeclare.cli.options.single_options import Format
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode

SNAPSHOT_EPILOG = build_epilog(
    "kdeclare fleet snapshot fleet.yaml --out snapshots",
    "kdeclare fleet snapshot fleet.yaml --out s3a://bucket/kafka --master spark://host:7077",
    codes=(0, 1, 64, 130),
)
DIFF_EPILOG = build_epilog(
    "kdeclare fleet diff --out snapshots                       the latest two snapshots",
    "kdeclare fleet diff 7d --out snapshots                    a week ago, and the latest one",
    "kdeclare fleet diff 20261114T040000Z-1f3a 20261121T040000Z-9c02 --out snapshots --cluster eu-1",
    codes=(0, 1, 2, 64, 130),
)
HISTORY_EPILOG = build_epilog(
    "kdeclare fleet history eu-1 orders --out snapshots",
    "kdeclare fleet history eu-1 BrokerConfig/cluster-default --out snapshots",
    "kdeclare fleet history fleet.yaml eu-1 orders --out snapshots --audits audits",
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


def diff(
    before: Annotated[
        str,
        typer.Argument(
            metavar="[BEFORE]",
            help="The earlier snapshot: its id, 'previous', a duration such as 7d, or a day such as "
            "2026-11-20 (UTC).",
        ),
    ] = "previous",
    after: Annotated[
        str, typer.Argument(metavar="[AFTER]", help="The later snapshot: its id, or 'latest'.")
    ] = "latest",
    *,
    cluster: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this cluster. Repeatable.")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if the snapshots differ.")
    ] = False,
    engine: EngineName = "auto",
    output: Format = "text",
    spark: SparkOptions,
    console: Console,
) -> ExitCode:
    """Show what differs between two snapshots of a fleet.

    Reads only the snapshots in DIR, and does not connect to any cluster. If a part of the fleet could not be
    read for one of the snapshots, the changes in this part are unknown, and the exit code is 1.
    """
    import os
    from dataclasses import replace

    from kdeclare.app.fleet.snapshot_diff import diff_snapshots

    options = replace(spark.results_options(engine), clusters=tuple(cluster or ()))
    compared = diff_snapshots(options, before, after, os.environ, console.progress)
    if console.is_json:
        from kdeclare.report.fleet.snapshot_diff_text import build_snapshot_diff_document

        console.write_document(build_snapshot_diff_document(compared.before, compared.after, compared.diff))
    else:
        from kdeclare.report.fleet.snapshot_diff_text import render_snapshot_diff_text

        console.out(render_snapshot_diff_text(compared.before, compared.after, compared.diff, console.style))
    if compared.diff.unknown:
        return ExitCode.ERROR
    return ExitCode.CHANGES if detailed_exitcode and compared.diff.changes else ExitCode.OK


def history(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[FLEET] CLUSTER TOPIC",
            help="Name of a cluster, and name of a topic (or KIND/NAME of another object). With the fleet "
            "file as the first argument, the output shows which changes were made by runs of kdeclare.",
        ),
    ],
    *,
    audits: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Also show the findings about the object in all audits in this folder, and how long each "
            "finding was open.",
        ),
    ] = None,
    engine: EngineName = "auto",
    output: Format = "text",
    spark: SparkOptions,
    console: Console,
) -> ExitCode:
    """Show how one topic changed from snapshot to snapshot.

    Reads the snapshots in DIR. To show an object that is not a topic, pass its KIND/NAME.
    """
    import os
    from dataclasses import replace

    from kdeclare.app.fleet.object_resources import build_subject, find_by_key
    from kdeclare.app.fleet.snapshot import build_unknown_object_error, parse_live_key, read_object_history

    if len(words) not in (2, 3):
        raise typer.BadParameter("requires a cluster and a topic.", param_hint="CLUSTER TOPIC")
    cluster, key = words[-2], parse_live_key(words[-1])
    options = spark.results_options(engine)
    versions = read_object_history(options, cluster, key, os.environ, console.progress)
    writes, resources = None, find_by_key(key)
    if versions and len(words) == 3:
        from pathlib import Path

        from kdeclare.app.fleet.run_writes import read_object_runs

        runs = read_object_runs(Path(words[0]), cluster, key, versions)
        writes, resources = runs.writes, runs.resources
    findings = None
    if audits is not None:
        from kdeclare.app.fleet.finding_history import read_finding_history

        audit_options = replace(options, out=audits)
        subject = build_subject(cluster, key, resources, versions)
        findings = read_finding_history(audit_options, subject, os.environ, console.progress)
    if not findings and all(version.body is None and version.error is None for version in versions):
        raise KdeclareError(build_unknown_object_error(cluster, key, len(versions)))
    if console.is_json:
        from kdeclare.report.fleet.snapshot_text import build_object_history_document

        console.write_document(build_object_history_document(cluster, key, versions, findings, writes))
    else:
        from kdeclare.report.fleet.snapshot_text import render_object_history_text

        text = render_object_history_text(cluster, key, versions, console.style, writes)
        if findings is not None:
            from kdeclare.report.fleet.finding_history_text import render_finding_history_text

            text += render_finding_history_text(findings, console.style, is_complete=resources.is_complete)
        console.out(text)
    return ExitCode.OK
