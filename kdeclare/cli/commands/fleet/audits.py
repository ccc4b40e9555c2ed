"""``kdeclare fleet audit`` and ``kdeclare fleet report``."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.fleet_options import EngineName, FleetClusterOptions, FleetFile, SparkOptions
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.fleet.audit_summary import AuditSummary
    from kdeclare.fleet.finding_conditions import FindingCondition
    from kdeclare.fleet.findings import AuditRow


AUDIT_EPILOG = build_epilog(
    "kdeclare fleet audit fleet.yaml --out audits                  read and compare the clusters",
    "kdeclare fleet audit fleet.yaml --out audits --snapshot snapshots     use the latest snapshot instead",
    "kdeclare fleet audit fleet.yaml --out audits --fail-on changed,missing   for a nightly job",
    "kdeclare fleet audit fleet.yaml --out audits --fail-on 'severity>=high, age>7d'",
    codes=(0, 1, 2, 64, 130),
)
REPORT_EPILOG = build_epilog(
    "kdeclare fleet report --out audits                                  the findings of the latest audit",
    "kdeclare fleet report --out audits --since 7d                       what is new and fixed in a week",
    "kdeclare fleet report --out audits --where 'severity>=high, age>7d' --team checkout",
    "kdeclare fleet report --out audits --format jsonl | jq -r .message",
    codes=(0, 1, 64, 130),
)


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
            help="Exit with 2 if a finding meets one of these conditions: a kind of finding, such as "
            "missing; severity>=high; age>7d; or several of them joined by 'and', such as 'changed and "
            "age>7d'. Separate the conditions by commas.",
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
    notify: Annotated[
        bool,
        typer.Option(
            "--notify",
            help="After the audit, send the messages of 'spec.notifications', as kdeclare fleet notify does.",
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Compare all clusters, including those that have not changed since the latest audit.",
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

    conditions = _parse_conditions("--fail-on", fail_on)
    if snapshot is None and snapshot_id != "latest":
        raise typer.BadParameter("requires --snapshot DIR.", param_hint="--snapshot-id")
    audit_options = AuditOptions(
        None if snapshot is None else (snapshot, snapshot_id),
        since,
        not no_unmanaged_configs,
        by_team=by == "team",
        full=full,
    )
    options = clusters.options(fleet, engine)
    if notify:
        from kdeclare.app.fleet.notify import require_notifications

        require_notifications(fleet, os.environ)
    result = audit_fleet(options, audit_options, os.environ, console.progress)
    if console.is_json:
        console.write_document(result.summary)
    else:
        from kdeclare.report.fleet.audit_text import render_audit_text

        console.out(render_audit_text(result, console.style))
        console.note(f"Report: {clusters.out.rstrip('/')}/report.html")
    audit_exit = compute_audit_exit(result.summary, detailed_exitcode=detailed_exitcode, fail_on=conditions)
    if notify:
        from kdeclare.app.fleet.notify import NotifyOptions, notify_fleet
        from kdeclare.cli.commands.fleet.notifications import report_failed_messages, report_messages

        notify_options = NotifyOptions(audit=result.summary.audit_id)
        messages = notify_fleet(options, notify_options, os.environ, console.progress)
        report_messages(messages, console)
        return report_failed_messages(messages, console) or audit_exit
    return audit_exit


def report(
    *,
    audit: Annotated[str, typer.Option(metavar="ID|latest", help="The audit to show.")] = "latest",
    since: Annotated[
        str | None,
        typer.Option(
            metavar="ID|DURATION|DAY",
            help="Show what is new and what is fixed since this earlier audit: its id, a duration such as "
            "7d, or a day such as 2026-11-20 (UTC).",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION[,…]",
            help="Only findings that meet one of these conditions, for instance 'severity>=high, age>7d'.",
        ),
    ] = None,
    cluster: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only findings in this cluster. Repeatable.")
    ] = None,
    team: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only resources whose label 'team' has this value. Repeatable."),
    ] = None,
    engine: EngineName = "auto",
    output: Annotated[
        Literal["text", "json", "jsonl"],
        typer.Option(
            "--format",
            metavar="text|json|jsonl",
            help="Format of stdout: text for people, json for scripts, jsonl: one JSON object per finding.",
        ),
    ] = "text",
    spark: SparkOptions,
    console: Console,
) -> ExitCode:
    """Show the findings of a stored audit, or compare two audits.

    Reads only the audits in DIR, and does not connect to any cluster.
    """
    import os

    from kdeclare.app.fleet.stored_findings import read_stored_findings
    from kdeclare.report.fleet.findings_report import (
        build_findings_document,
        render_findings_text,
        render_json_lines,
    )

    conditions = _parse_conditions("--where", where)
    clusters, teams = frozenset(cluster or ()), frozenset(team or ())

    def is_selected(summary: "AuditSummary", row: "AuditRow") -> bool:
        is_in_scope = (not clusters or row.cluster in clusters) and (
            not teams or row.labels.get("team", "") in teams
        )
        return is_in_scope and (
            not conditions
            or any(c.is_met(row.finding, row.severity, row.first_seen, summary.taken_at) for c in conditions)
        )

    options = spark.results_options(engine)
    stored = read_stored_findings(options, audit, since, is_selected, os.environ, console.progress)
    if console.is_text:
        console.out(render_findings_text(stored.summary, stored.since, stored.compared, console.style))
        return ExitCode.OK
    document = build_findings_document(stored.summary, stored.since, stored.compared)
    if console.is_json:
        console.write_document(document)
    else:
        console.out(render_json_lines(document), pages=False)
    return ExitCode.OK


def _parse_conditions(option: str, text: str | None) -> "tuple[FindingCondition, ...]":
    from kdeclare.fleet.finding_conditions import parse_conditions

    try:
        return parse_conditions(text) if text is not None else ()
    except ValueError as reason:
        raise typer.BadParameter(str(reason), param_hint=option) from None
