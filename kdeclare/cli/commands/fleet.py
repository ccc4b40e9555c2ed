"""``kdeclare fleet``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import build_declined_error, prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.fleet_options import EngineName, FleetClusterOptions, FleetFile, SparkOptions
from kdeclare.cli.options import (
    FollowTimeout,
    Format,
    PlanningOptions,
    RequireSignature,
    Sign,
    Yes,
    parse_pairs,
    validate_duration,
)
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.fleet.finding_conditions import FindingCondition
    from kdeclare.fleet.overview import AppliedCluster, FleetPlan
    from kdeclare.manifests.fleet import Rollout


_SNAPSHOT_EPILOG = build_epilog(
    "kdeclare fleet snapshot fleet.yaml --out snapshots",
    "kdeclare fleet snapshot fleet.yaml --out s3a://bucket/kafka --master spark://host:7077",
    codes=(0, 1, 64, 130),
)
_AUDIT_EPILOG = build_epilog(
    "kdeclare fleet audit fleet.yaml --out audits                  read and compare the clusters",
    "kdeclare fleet audit fleet.yaml --out audits --snapshot snapshots     use the latest snapshot instead",
    "kdeclare fleet audit fleet.yaml --out audits --fail-on changed,missing   for a nightly job",
    "kdeclare fleet audit fleet.yaml --out audits --fail-on 'severity>=high, age>7d'",
    codes=(0, 1, 2, 64, 130),
)
_PLAN_EPILOG = build_epilog(
    "kdeclare fleet plan fleet.yaml --out plans && kdeclare fleet apply fleet.yaml --out plans",
    codes=(0, 1, 2, 3, 64, 130),
)
_APPLY_EPILOG = build_epilog(
    "kdeclare fleet apply fleet.yaml --out plans --canary tier=canary --batch-size 5 --max-failures 1",
    codes=(0, 1, 3, 4, 5, 6, 64, 130),
)
_HISTORY_EPILOG = build_epilog(
    "kdeclare fleet history eu-1 orders --out snapshots",
    "kdeclare fleet history eu-1 BrokerConfig/cluster-default --out snapshots",
    codes=(0, 1, 64, 130),
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "snapshot", epilog=_SNAPSHOT_EPILOG)(snapshot)
    command(group, "audit", epilog=_AUDIT_EPILOG)(audit)
    command(group, "plan", epilog=_PLAN_EPILOG)(plan)
    command(group, "apply", epilog=_APPLY_EPILOG)(apply)
    command(group, "history", epilog=_HISTORY_EPILOG)(history)
    app.add_typer(group, name="fleet", help="Snapshot, audit, plan and apply many clusters.")


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


def audit(
    fleet: FleetFile,
    *,
    snapshot: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Use a snapshot in this folder instead of connecting to the clusters."
        ),
    ] = None,
    snapshot_id: Annotated[str, typer.Option(metavar="ID", help="Id of the snapshot to use.")] = "latest",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="ID|latest", help="Compare with this earlier audit in DIR (default: the latest, if any)."
        ),
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if an apply would change something.")
    ] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION[,…]",
            help="Exit with 2 if a finding meets one of these conditions: a kind, severity>=high, age>7d, or "
            "several joined by 'and', for instance 'missing, changed and age>7d'.",
        ),
    ] = None,
    by: Annotated[
        Literal["team"] | None,
        typer.Option(
            help="Also write a report for each team (label 'team') to teams/ in DIR: one page and one "
            "Markdown file."
        ),
    ] = None,
    no_unmanaged_configs: Annotated[
        bool,
        typer.Option(
            "--no-unmanaged-configs",
            help="Do not report undeclared config keys. This is much faster if many topics have such keys.",
        ),
    ] = False,
    engine: EngineName = "auto",
    output: Format = "text",
    clusters: FleetClusterOptions,
    console: Console,
) -> ExitCode:
    """Find drift in a fleet, with its age and owner.

    Changes nothing in the clusters. Writes findings/ and summary/ (Parquet), summary.json, report.md,
    report.html and metrics.prom (OpenMetrics).
    """
    import os

    from kdeclare.app.fleet.audit import AuditOptions, audit_fleet
    from kdeclare.report.fleet.fleet_runs import compute_audit_exit

    conditions = _parse_fail_on(fail_on)
    if snapshot is None and snapshot_id != "latest":
        raise typer.BadParameter("requires --snapshot DIR.", param_hint="--snapshot-id")
    audit_options = AuditOptions(
        None if snapshot is None else (snapshot, snapshot_id),
        since,
        not no_unmanaged_configs,
        by_team=by == "team",
    )
    result = audit_fleet(clusters.options(fleet, engine), audit_options, os.environ, console.progress)
    if console.is_json:
        console.write_document(result.summary)
    else:
        from kdeclare.report.fleet.audit_text import render_audit_text

        console.out(render_audit_text(result, console.style))
        console.note(f"Report: {clusters.out.rstrip('/')}/report.html")
    return compute_audit_exit(result.summary, detailed_exitcode=detailed_exitcode, fail_on=conditions)


def plan(
    fleet: FleetFile,
    *,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")
    ] = False,
    sign: Sign = None,
    engine: EngineName = "auto",
    output: Format = "text",
    planning: PlanningOptions,
    clusters: FleetClusterOptions,
    console: Console,
) -> ExitCode:
    """Plan every cluster of a fleet and save the plans.

    Plans each cluster in the same way as kdeclare plan, and saves the plans in DIR.
    """
    import os

    from kdeclare.app.fleet.saved_plans import plan_fleet
    from kdeclare.app.signatures import load_signer
    from kdeclare.report.fleet.fleet_runs import compute_plans_exit

    signer = None if sign is None else load_signer(sign, os.environ)
    scope = planning.scope()
    recorded_command = redact_spark_settings(console.command)
    result = plan_fleet(
        clusters.options(fleet, engine), scope, os.environ, console.progress, recorded_command, signer
    )
    if console.is_json:
        console.write_document(result)
    else:
        from kdeclare.report.fleet.fleet_runs import render_fleet_plan_text

        console.out(render_fleet_plan_text(result, clusters.out, console.style))
    return compute_plans_exit(result, detailed_exitcode=detailed_exitcode)


def apply(
    fleet: FleetFile,
    *,
    canary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Label of the clusters in the first wave (default: from the fleet file). Repeatable.",
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of clusters in each wave after the canaries (default: from the fleet file).",
        ),
    ] = None,
    max_failures: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Apply no further plans after more than N clusters have failed (default: from the fleet "
            "file). A canary that is not applied completely always stops the rollout.",
        ),
    ] = None,
    yes: Yes = False,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast", help="After a failure in a cluster, start no further operations in that cluster."
        ),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for reassignments to finish.")
    ] = False,
    move_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1,
            callback=validate_duration,
            help="How long to wait for reassignments to finish.",
        ),
    ] = 3600.0,
    follow_timeout: FollowTimeout = 30.0,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Also apply adoptions that were planned with fleet plan --adopt.")
    ] = False,
    max_deletes: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Refuse to start if the plans delete more than N resources together. The limit of each plan "
            "is the --max-deletes of fleet plan.",
        ),
    ] = 50,
    require_signature: RequireSignature = False,
    output: Format = "text",
    clusters: FleetClusterOptions,
    console: Console,
) -> ExitCode:
    """Apply the saved plans of a fleet in waves.

    Applies the plans that fleet plan saved in DIR: first to the canaries, then to batches of clusters. Shows
    the waves and asks for confirmation first. Repeat the command to continue an unfinished rollout.
    """
    import os

    from kdeclare.app.fleet.apply import FleetApplyOptions, apply_fleet
    from kdeclare.cli.run_output import announce_stop, build_interrupted_error
    from kdeclare.engine.executor.progress_tracker import RunOptions
    from kdeclare.report.fleet.fleet_runs import compute_apply_exit

    has_started = False

    def confirm(fleet_plan: "FleetPlan", waves: tuple[tuple[str, ...], ...]) -> bool:
        nonlocal has_started
        from kdeclare.report.fleet.fleet_runs import render_waves_text

        must_ask = bool(waves) and not yes
        if must_ask or not console.is_json:
            show = console.say if console.is_json else console.out
            show(render_waves_text(fleet_plan, waves, console.style))
        has_started = not must_ask or prompt_for_yes(console, "Apply these plans?")
        return has_started

    def report_cluster(cluster: "AppliedCluster", done: int, total: int) -> None:
        console.note(f"{done}/{total} {cluster.name}: {cluster.status}")
        console.progress("Applying", done, total)

    run_options = RunOptions(
        fail_fast, not no_wait, move_timeout_s=move_timeout, follow_timeout_s=follow_timeout
    )
    wave_options = _WaveOptions(parse_pairs("--canary", canary), batch_size, max_failures)
    apply_options = FleetApplyOptions(
        redact_spark_settings(console.command),
        confirm,
        report_cluster,
        run_options,
        wave_options.over,
        announce_stop,
        adopt,
        require_signature,
        max_deletes,
    )
    try:
        result = apply_fleet(clusters.options(fleet), apply_options, os.environ)
    except KeyboardInterrupt:
        raise build_interrupted_error(has_started=has_started) from None
    if result is None:
        if console.is_json:
            return console.fail([build_declined_error()], ExitCode.ERROR)
        console.say("Nothing was changed.")
        return ExitCode.ERROR
    if console.is_json:
        console.write_document(result)
    else:
        from kdeclare.report.fleet.fleet_runs import NextCommands, render_fleet_apply_text

        plan_line = ["kdeclare", "fleet", "plan", str(fleet), "--out", clusters.out, *(["--adopt"] * adopt)]
        commands = NextCommands(apply_options.command, shlex.join(plan_line))
        console.out(render_fleet_apply_text(result, commands, console.style))
    return compute_apply_exit(result)


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

    from kdeclare.app.fleet.job import Engine, FleetOptions
    from kdeclare.app.fleet.snapshot import build_unknown_object_error, parse_live_key, read_object_history

    if len(words) not in (2, 3):
        raise typer.BadParameter("requires a cluster and a topic.", param_hint="CLUSTER TOPIC")
    cluster, key = words[-2], parse_live_key(words[-1])
    options = FleetOptions(
        Path(),
        spark.out,
        master=spark.master,
        conf=parse_pairs("--conf", spark.conf),
        shared_folders=spark.shared_folders,
        engine=Engine(engine),
    )
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


def redact_spark_settings(command: str) -> str:
    """Redact all Spark settings in a command line, because they can contain keys of an object store."""
    words = shlex.split(command)
    for number, word in enumerate(words):
        if word.startswith("--conf="):
            words[number] = f"--conf={word.removeprefix('--conf=').partition('=')[0]}=…"
        elif number and words[number - 1] == "--conf":
            words[number] = f"{word.partition('=')[0]}=…"
    return shlex.join(words)


@dataclass(frozen=True, slots=True)
class _WaveOptions:
    """The rollout options given on the command line. Other rollout options come from the fleet file."""

    canary: dict[str, str]
    batch_size: int | None
    max_failures: int | None

    def over(self, stated: "Rollout") -> "Rollout":
        """Override ``stated``, the rollout of the fleet file, with the options given on the command line."""
        from kdeclare.manifests.fleet import Rollout

        return Rollout(
            self.canary or stated.canary,
            self.batch_size or stated.batch_size,
            stated.max_failures if self.max_failures is None else self.max_failures,
        )


def _parse_fail_on(text: str | None) -> "tuple[FindingCondition, ...]":
    from kdeclare.fleet.finding_conditions import parse_conditions

    try:
        return parse_conditions(text) if text is not None else ()
    except ValueError as reason:
        raise typer.BadParameter(str(reason), param_hint="--fail-on") from None
