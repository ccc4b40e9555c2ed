"""Render what other clients changed since the last apply, as text, Markdown and JSON."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import Diagnostics, OneOf, publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.plans.drift import DriftedField, DriftKind, DriftResult, ResourceDrift
from kdeclare.report.elements.diagnostics_text import render_diagnostics
from kdeclare.report.elements.markdown_escape import escape_code, escape_prose
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import (
    format_count,
    format_value,
    join_nonempty,
    sanitize_for_terminal,
    strip_configs_prefix,
)
from kdeclare.report.plan.markdown_items import render_diagnostic_item
from kdeclare.report.plan.plan_markdown import MAX_COMMENT_LENGTH, take_fitting

_TITLES = {
    DriftKind.CHANGED: "changed outside kdeclare",
    DriftKind.MISSING: "missing from the cluster",
    DriftKind.RECREATED: "deleted and created again outside kdeclare",
}
_ICONS = {DriftKind.CHANGED: "~", DriftKind.MISSING: "-", DriftKind.RECREATED: "±"}
_LEGEND = "Values: last applied → current."
_HINT = (
    "Run kdeclare plan to see what apply would change back. To keep the current values, change the manifests."
)


@dataclass(frozen=True, slots=True)
class DriftView:
    """What other clients changed since the last apply. Changes required by the manifests are not included."""

    schema_name = "DriftDocument"

    project: str
    env: str
    cluster: Annotated[str, Field(description="The name of the cluster.")]
    outcome: Annotated[str, OneOf("no-drift", "drift", "denied", "error")] = field(
        init=False, default="no-drift"
    )
    headline: str = field(init=False, default="")
    exit_code: Annotated[int, Field(description="The exit code of the command.")] = field(
        init=False, default=0
    )
    resources: tuple[ResourceDrift, ...]
    compared: Annotated[int, Field(description="The number of owned resources that were compared.")]
    diagnostics: Diagnostics
    is_detailed: Annotated[bool, Field(exclude=True)] = False

    def __post_init__(self) -> None:
        outcome, exit_code = _find_outcome(self)
        object.__setattr__(self, "outcome", outcome)
        object.__setattr__(self, "headline", _format_headline(self))
        object.__setattr__(self, "exit_code", int(exit_code))


def build_drift_view(
    result: DriftResult, project: str, env: str, cluster: str, *, detailed_exitcode: bool
) -> DriftView:
    """Summarize the drift of a project in one environment."""
    return DriftView(
        project, env, cluster, result.resources, result.compared, result.diagnostics, detailed_exitcode
    )


def build_drift_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of the document about drift, by document name; see `publish_schemas`."""
    return publish_schemas({"drift": DriftView})


def _find_outcome(view: DriftView) -> tuple[str, ExitCode]:
    if any(d.is_error for d in view.diagnostics):
        return "error", ExitCode.ERROR
    if any(d.is_blocking for d in view.diagnostics):
        return "denied", ExitCode.DENIED
    if view.resources:
        return "drift", ExitCode.CHANGES if view.is_detailed else ExitCode.OK
    return "no-drift", ExitCode.OK


def _format_headline(view: DriftView) -> str:
    cluster_note = f" on {view.cluster}" if view.cluster not in ("", view.env) else ""
    target = sanitize_for_terminal(f"{view.project}/{view.env}{cluster_note}")
    unread_count = len({d.resource for d in view.diagnostics if d.is_blocking})
    unread = f"{unread_count:,} not compared" if unread_count else ""
    if not view.resources and not unread:
        count = format_count(view.compared, "applied resource is", "applied resources are")
        return f"No drift. {target}: {count} unchanged."
    counts = Counter(item.drift for item in view.resources)
    texts = [f"{counts[kind]:,} {kind.value}" for kind in DriftKind if counts[kind]]
    return f"Drift in {target}: {join_nonempty([*texts, unread])}."


def render_drift_text(view: DriftView, style: Style = PLAIN) -> str:
    """Render the drift as text: the headline, one paragraph per resource, and the problems."""
    blocks = [f"{style.bold(view.headline)}\n", *(_render_resource(item, style) for item in view.resources)]
    if any(item.fields for item in view.resources):
        blocks.append(f"{style.dim(_LEGEND)}\n")
    if view.resources:
        blocks.append(f"{style.cyan('hint:')} {_HINT}\n")
    blocks.append(render_diagnostics(view.diagnostics, style))
    return "\n".join(block for block in blocks if block)


def _render_resource(item: ResourceDrift, style: Style) -> str:
    paint = style.yellow if item.drift is DriftKind.CHANGED else style.red
    position = style.dim(f"  ({sanitize_for_terminal(item.source)})") if item.source else ""
    name = style.bold(sanitize_for_terminal(item.id))
    lines = [f"  {paint(_ICONS[item.drift])} {name}  {paint(_TITLES[item.drift])}{position}"]
    names = [_format_name(each) for each in item.fields]
    width = max(map(len, names), default=0)
    for name_, each in zip(names, item.fields, strict=True):
        applied, live = (format_value(value, each.path) for value in (each.applied, each.live))
        lines.append(f"      {name_:<{width}}  {applied} {style.dim('→')} {live}")
    return "".join(f"{line}\n" for line in lines)


def _format_name(drifted: DriftedField) -> str:
    return sanitize_for_terminal(strip_configs_prefix(drifted.path))


def render_drift_markdown(view: DriftView) -> str:
    """Render the drift for a comment on a pull request or an issue. If rows do not fit, show their number."""
    header = f"## {escape_prose(view.headline)}\n"
    problems = "".join(take_fitting(map(render_diagnostic_item, view.diagnostics), MAX_COMMENT_LENGTH // 3))
    problems = f"### Warnings\n\n{problems}" if problems else ""
    table = ""
    if view.resources:
        remaining = MAX_COMMENT_LENGTH - len(header) - len(problems) - 400
        table = _render_table(view, remaining) + f"\n{escape_prose(_HINT)}\n"
    return "\n".join(block for block in (header, table, problems) if block)


def _render_table(view: DriftView, max_length: int) -> str:
    head = "| Resource | Drift | Field | Last applied | Current |\n|---|---|---|---|---|\n"
    rows = list(take_fitting(_iterate_rows(view), max_length - len(head)))
    total = sum(max(1, len(item.fields)) for item in view.resources)
    note = f"\n… and {format_count(total - len(rows), 'more row')} (omitted)\n" if len(rows) < total else ""
    return "".join([head, *rows, note])


def _iterate_rows(view: DriftView) -> Iterator[str]:
    for item in view.resources:
        begin = f"| {escape_code(item.id)} | {_TITLES[item.drift]} |"
        if not item.fields:
            yield f"{begin}  |  |  |\n"
        for each in item.fields:
            format_side = partial(format_value, path=each.path)
            name, applied, live = map(
                escape_code, (_format_name(each), format_side(each.applied), format_side(each.live))
            )
            yield f"{begin} {name} | {applied} | {live} |\n"
