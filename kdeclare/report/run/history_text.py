"""The history of runs as text: a list of runs, the details of one run, and differences between plans."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_list, as_object, as_text
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import FieldOp
from kdeclare.report.elements.diagnostics_text import format_subject, render_diagnostics
from kdeclare.report.elements.terminal import (
    ELISION_NOTE,
    PLAIN,
    Cell,
    Column,
    Elision,
    Style,
    StyledCell,
    elide,
    is_table_elided,
    measure_width,
    render_table,
)
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    format_value,
    join_nonempty,
    sanitize_for_terminal,
    strip_configs_prefix,
)
from kdeclare.report.outcome import format_planned_counts, format_target_compact
from kdeclare.report.plan.plan_text import render_changes
from kdeclare.report.run.effects import render_effects_text
from kdeclare.report.run.run_text import OperationOutcome, format_done_counts, render_outcomes
from kdeclare.report.run.views import ABANDONED, UNREADABLE, RunDetail, RunStep, RunSummary

_MAX_OVERRIDES = 20
_COLUMNS = (
    *map(Column, ("RUN", "STARTED", "TOOK", "OUTCOME", "DONE")),
    Column("CHANGES", elision=Elision.END),
    *map(Column, ("BY", "WHAT")),
)
_NARROW_COLUMNS = (0, 2, 3, 4, 5)
"""The indexes of the table columns that are shown on a narrow terminal."""
_DETAIL_INDENT = "    "


def render_history_text(
    runs: Sequence[RunSummary], style: Style = PLAIN, width: int | None = None, *, older_count: int = 0
) -> str:
    """Render a table of runs with one line per run.

    width: the width of the terminal; None for no limit. If the lines do not fit, the user and the command are
        on a second line. The start time is then omitted, because the run id contains it.
    older_count: the number of older runs that are not shown.
    """
    if not runs:
        return "No runs yet.\n"
    rows = [_build_history_row(run, style) for run in runs]
    older_note = (
        f"\n{format_count(older_count, 'older run')} not shown. Pass --limit 0 to see all.\n"
        if older_count
        else ""
    )
    return _render_history_table(runs, rows, style, width) + style.dim(older_note)


def _render_history_table(
    runs: Sequence[RunSummary], rows: Sequence[tuple[Cell, ...]], style: Style, width: int | None
) -> str:
    if not is_table_elided(_COLUMNS, rows, width):
        return "".join(f"{line}\n" for line in render_table(_COLUMNS, rows, width, style))
    narrow = [tuple(row[i] for i in _NARROW_COLUMNS) for row in rows]
    header, *lines = render_table([_COLUMNS[i] for i in _NARROW_COLUMNS], narrow, width, style)
    detail_lines = [
        f"{sanitize_for_terminal(run.user)}: {sanitize_for_terminal(run.command)}" if run.user else "-"
        for run in runs
    ]
    max_width = (width or 0) - len(_DETAIL_INDENT)
    lines_out = [header]
    for run, line, text in zip(runs, lines, detail_lines, strict=True):
        run_details = [text, *_list_remarks(run)]
        lines_out += [
            line,
            *(f"{_DETAIL_INDENT}{elide(part, max_width, Elision.END)}" for part in run_details),
        ]
    if any(measure_width(text) > max_width for text in detail_lines) or is_table_elided(
        [_COLUMNS[i] for i in _NARROW_COLUMNS], narrow, width
    ):
        lines_out += ["", style.dim(ELISION_NOTE)]
    return "".join(f"{line}\n" for line in lines_out)


def render_run_detail_text(detail: RunDetail, style: Style = PLAIN, with_steps: bool = False) -> str:
    """Render the details of a run: user, time, changes, and unsuccessful operations.

    with_steps: whether to show every operation with its start time.
    """
    run = detail.run
    duration_note = "" if run.duration_s is None else f", took {format_duration(run.duration_s)}"
    header = [
        style.bold(
            f"Run {sanitize_for_terminal(run.run_id)} on {format_target_compact(detail.plan)}: "
            f"{sanitize_for_terminal(run.gist or run.outcome)}."
        ),
        f"  started   {format_time(run.started)}{duration_note}",
        f"  by        {sanitize_for_terminal(run.user)}",
        f"  command   {sanitize_for_terminal(run.command)}",
        f"  plan      {sanitize_for_terminal(run.plan_id[:12])}  "
        f"{format_planned_counts(detail.plan)}".rstrip(),
        f"  done      {run.done:,} of {format_count(run.operations, 'operation')}",
    ]
    if run.adopted and run.ended:
        header.append(f"  adopted   {format_count(run.adopted, 'resource')} without a change")
    if run.undoes:
        header.append(f"  undoes    {sanitize_for_terminal(run.undoes)}")
    if run.outcome == ABANDONED:
        header.append(f"  {_format_abandonment(run)}")
    if run.undone_by:
        header.append(f"  undone by {sanitize_for_terminal(run.undone_by)}")
    done_counts = format_done_counts(s.verb for s in detail.steps if s.status is Status.DONE)
    blocks = [
        "".join(f"{line}\n" for line in header),
        render_changes(detail.plan, style),
        f"{done_counts}.\n" if done_counts else "",
        _render_overrides(detail, style),
        _render_steps(detail, style) if with_steps else "",
        _render_problems(detail, style),
        render_effects_text(detail.effects, style),
        render_diagnostics(detail.diagnostics, style),
    ]
    return "\n".join(block for block in blocks if block)


def render_history_diff_text(diff: "HistoryDiff", style: Style = PLAIN) -> str:
    """Render the differences between two plans."""
    differences, first, second = (
        diff.differences,
        sanitize_for_terminal(diff.a),
        sanitize_for_terminal(diff.b),
    )
    if not differences:
        return f"No differences between {first} and {second}.\n"
    resource_count = format_count(len({item.resource for item in differences} - {"plan"}), "resource")
    verb = "differs" if resource_count == "1 resource" else "differ"
    lines = [style.bold(f"{resource_count} {verb} between {first} and {second}."), ""]
    width = max(len(first), len(second))
    resource = None
    for item in differences:
        if item.resource != resource:
            resource = item.resource
            lines.append(f"  {style.bold(sanitize_for_terminal(resource))}")
        if item.path:
            lines.append(f"      {sanitize_for_terminal(strip_configs_prefix(item.path))}")
        lines.append(f"        {style.red(f'{first:<{width}}')}  {_format_plan_value(item.a, item.path)}")
        lines.append(f"        {style.green(f'{second:<{width}}')}  {_format_plan_value(item.b, item.path)}")
    return "".join(f"{line}\n" for line in lines)


def _format_plan_value(value: JsonValue, path: str) -> str:
    """Format one side of a difference between two plans.

    value: the change to a field, a property of a change or of the plan, or a whole change; None if the plan
        has no value.
    path: the path of the difference; empty for a whole change.
    """
    if value is None:
        return "-" if path else "(no change)"
    if not path:
        change = as_object(value)
        fields = format_count(len(as_list(change["fields"])), "field")
        return (
            f"{sanitize_for_terminal(as_text(change['action']))}, "
            f"{sanitize_for_terminal(as_text(change['reason']))}, {fields}"
        )
    if isinstance(value, Mapping):
        op = "" if value["op"] == FieldOp.CHANGE else f"{sanitize_for_terminal(as_text(value['op']))} "
        return f"{op}{format_value(value['before'], path)} → {format_value(value['after'], path)}"
    return format_value(value)


def format_time(time: datetime | None) -> str:
    """Format a time in UTC to the second."""
    return "unknown time" if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _build_history_row(run: RunSummary, style: Style) -> tuple[Cell, ...]:
    run_duration = "-" if run.duration_s is None else format_duration(run.duration_s)
    progress = f"{run.done:,}/{run.operations:,}" if run.operations else "-"
    command = " ".join(
        [sanitize_for_terminal(run.command), *(f"({remark})" for remark in _list_remarks(run))]
    )
    outcome = sanitize_for_terminal(run.outcome)
    return (
        sanitize_for_terminal(run.run_id),
        format_time(run.started),
        run_duration,
        outcome if run.outcome == "done" else StyledCell(outcome, _get_outcome_color(run, style)),
        progress,
        _format_change_counts(run),
        sanitize_for_terminal(run.user),
        command,
    )


def _list_remarks(run: RunSummary) -> list[str]:
    """Return short notes about a run, such as ``undoes RUN_ID`` or ``2 denials overridden``."""
    remarks = (
        (run.outcome == ABANDONED, _format_abandonment(run)),
        (run.undoes, f"undoes {sanitize_for_terminal(run.undoes or '')}"),
        (run.undone_by, f"undone by {sanitize_for_terminal(run.undone_by or '')}"),
        (run.overridden, f"{format_count(run.overridden, 'denial')} overridden"),
        (run.problem, sanitize_for_terminal(run.problem)),
    )
    return [text for holds, text in remarks if holds]


def _format_abandonment(run: RunSummary) -> str:
    """Return who abandoned a run and when, such as ``abandoned by ann@host at 2026-11-28 10:00:00Z``."""
    who = f" by {sanitize_for_terminal(run.abandoned_by)}" if run.abandoned_by else ""
    return f"abandoned{who}{f' at {format_time(run.abandoned_at)}' if run.abandoned_at else ''}"


def _format_change_counts(run: RunSummary) -> str:
    """Format the number of changes of a run, such as ``+5 ~2 -1``.

    Resources that are only adopted or released are counted in words.
    """
    summary = run.summary
    signs = (("+", summary.create), ("~", summary.update), ("-", summary.delete))
    labels = ((run.adopted, "adopted"), (summary.forget, "released"))
    signed_counts = " ".join(f"{sign}{count:,}" for sign, count in signs if count)
    return join_nonempty([signed_counts, *(f"{count:,} {word}" if count else "" for count, word in labels)])


def _get_outcome_color(run: RunSummary, style: Style) -> Callable[[str], str]:
    return style.red if run.outcome in ("error", UNREADABLE) else style.yellow


def _render_overrides(detail: RunDetail, style: Style) -> str:
    """Render up to ``_MAX_OVERRIDES`` overridden denials with their reasons, and the number of the others."""
    if not detail.overrides:
        return ""
    principals = {item.principal for item in detail.overrides}
    principal = detail.overrides[0].principal
    identity_note = (
        f"authenticated as {sanitize_for_terminal(principal)}"
        if principal
        else "not authenticated by the brokers"
    )
    title = f"Overridden by {sanitize_for_terminal(detail.run.user)}"
    lines = [style.bold(f"{title} ({identity_note}):" if len(principals) == 1 else f"{title}:")]
    for item in detail.overrides[:_MAX_OVERRIDES]:
        subject_note = (
            f", {sanitize_for_terminal(format_subject(item.topic))}" if item.topic is not None else ""
        )
        line = (
            f"  policy {sanitize_for_terminal(item.policy)} on "
            f"{sanitize_for_terminal(item.resource)}{subject_note}"
        )
        if len(principals) > 1:  # the principal can differ between systems
            line += (
                f" as {sanitize_for_terminal(item.principal)}"
                if item.principal
                else " without authentication"
            )
        lines.append(f"{line}: {sanitize_for_terminal(item.reason)}")
    if len(detail.overrides) > _MAX_OVERRIDES:
        lines.append(style.dim(f"  … and {len(detail.overrides) - _MAX_OVERRIDES:,} more"))
    return "".join(f"{line}\n" for line in lines)


def _render_steps(detail: RunDetail, style: Style) -> str:
    lines = [style.bold("Steps:")]
    for step in detail.steps:
        known_status = step.known_status
        status = "not started" if known_status is Status.INTERRUPTED else known_status.value
        begun_at = format_time(step.begun) if step.begun else "-"
        lines.append(
            f"  {begun_at:<20}  {status:<11}  {sanitize_for_terminal(step.verb)} "
            f"{sanitize_for_terminal(step.resource)}"
        )
    return "".join(f"{line}\n" for line in lines)


def _render_problems(detail: RunDetail, style: Style) -> str:
    names_by_id = {s.id: sanitize_for_terminal(f"{s.verb} {s.resource}") for s in detail.steps}
    outcomes = [_build_operation_outcome(step, names_by_id) for step in detail.steps]
    return render_outcomes(outcomes, style)


def _build_operation_outcome(step: RunStep, names_by_id: Mapping[str, str]) -> OperationOutcome:
    cause = names_by_id.get(step.cause, sanitize_for_terminal(step.cause)) if step.cause else ""
    return OperationOutcome(names_by_id[step.id], step.known_status, step.error, step.message, cause)


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One difference between two plans.

    resource: the id of the resource, or ``plan`` for a property of the whole plan.

    path: one of the following.

    - a field, such as ``configs.retention.ms``; a and b are {op, before, after}
    - a property of the change, such as ``action`` or ``reason``
    - empty, if only one of the plans changes the resource; a or b is {action, reason, risk, fields}, where
      ``fields`` lists the paths of the changed fields

    a, b: the values in the first and in the second plan; None if the plan has no value.
    """

    schema_name = "DifferenceDocument"

    resource: str
    path: str
    a: JsonValue
    b: JsonValue


@dataclass(frozen=True, slots=True)
class HistoryDiff:
    """The differences between the plans ``a`` and ``b``."""

    a: str
    b: str
    differences: tuple[PlanDifference, ...]


def compare_plans(
    first_document: Mapping[str, JsonValue],
    second_document: Mapping[str, JsonValue],
    first_name: str,
    second_name: str,
) -> HistoryDiff:
    """Return the differences between two plan documents, sorted by resource and path.

    Source positions and the order of changes are ignored.
    """
    from deepdiff import DeepDiff  # imported here because the import takes 0.3 s

    first_subject, second_subject = (
        _build_comparison_subject(first_document),
        _build_comparison_subject(second_document),
    )
    for equal_id in [
        id_ for id_, body in first_subject.items() if id_ in second_subject and second_subject[id_] == body
    ]:
        # deepdiff is slow for thousands of equal changes.
        del first_subject[equal_id], second_subject[equal_id]
    differences_by_place = {}
    for items in DeepDiff(first_subject, second_subject, view="tree", threshold_to_diff_deeper=0).values():
        for item in items:
            resource, *path_steps = item.path(output_format="list")
            path = str(path_steps[0]) if path_steps else ""
            differences_by_place[resource, path] = _build_difference(
                first_subject, second_subject, resource, path
            )
    ordered = sorted(differences_by_place.values(), key=lambda d: (d.resource != "plan", d.resource, d.path))
    return HistoryDiff(first_name, second_name, tuple(ordered))


def _build_difference(
    first_subject: Mapping[str, JsonObject],
    second_subject: Mapping[str, JsonObject],
    resource: str,
    path: str,
) -> PlanDifference:
    first_body, second_body = first_subject.get(resource), second_subject.get(resource)
    if path:
        return PlanDifference(
            resource, path, first_body and first_body.get(path), second_body and second_body.get(path)
        )
    return PlanDifference(resource, "", _summarize_change(first_body), _summarize_change(second_body))


def _summarize_change(body: JsonObject | None) -> JsonObject | None:
    if body is None:
        return None
    shown_keys = {key: body[key] for key in ("action", "reason", "risk")}
    return {**shown_keys, "fields": [key for key, value in body.items() if isinstance(value, Mapping)]}


def _build_comparison_subject(document: JsonObject) -> dict[str, JsonObject]:
    """Return the properties of a plan document that are compared with those of another plan.

    In the result, ``plan`` maps to the properties of the whole plan, and the id of each resource maps to the
    properties and fields of the resource's change.
    """
    plan_fields = {key: document[key] for key in ("project", "env", "undoes")}
    subject: dict[str, JsonObject] = {
        "plan": {**plan_fields, "cluster": as_object(document["cluster"])["id"]}
    }
    for change in map(as_object, as_list(document["changes"])):
        body = {key: change[key] for key in ("action", "reason", "risk")}
        body["blocked"] = change.get("blocked")
        for field in map(as_object, as_list(change["fields"])):
            body[as_text(field["path"])] = {key: field[key] for key in ("op", "before", "after")}
        subject[as_text(change["id"])] = body
    return subject
