"""Render a plan as text: headline, changes, policies, warnings and summary."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.owned_record import is_protected
from kdeclare.core.resources.plan_capabilities import (
    is_move,
)
from kdeclare.core.units import format_count
from kdeclare.report.elements.diagnostics_text import (
    find_denial_hint,
    format_severity_counts,
    render_diagnostics,
    render_policies,
    render_verdict_lines,
    select_notable_verdicts,
)
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_value, sanitize_for_terminal, strip_configs_prefix
from kdeclare.report.outcome import count_adopted, find_denied_fields, format_planned_counts, plan_outcome
from kdeclare.report.plan.impact import group_observations, render_observation_text
from kdeclare.report.plan.plan_graph import render_graph_text
from kdeclare.report.plan.plan_sections import list_sections, render_section_text
from kdeclare.report.plan.risks import SEVERE_RISKS, list_risk_causes, list_risk_names, sort_deletions_first

ORPHANED_CODE = "orphaned"
"""The code of diagnostics about orphans. Reports of a plan show one paragraph for all orphans instead."""

_MAX_UNMANAGED = 20
_ICONS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.DELETE: "-",
    Action.REPLACE: "±",
    Action.FORGET: "○",
    Action.NO_OP: "·",
}
_MOVE_ICON = "↻"
_MAX_ALIGNED_WIDTH = 44  # longer values do not change the alignment of other lines

_REASON_TEXTS = {
    (Action.UPDATE, Reason.DECLARED): "not managed before",
    (Action.UPDATE, Reason.CHANGED): "manifest changed",
    (Action.UPDATE, Reason.ADOPT): "adopt: exists, not owned yet",
    (Action.UPDATE, Reason.RECREATED): "recreated: a different {noun} than the one applied before",
    (Action.UPDATE, Reason.DRIFTED): "changed outside kdeclare",
    (Action.UPDATE, Reason.MISSING): "partly missing from the cluster",
    (Action.UPDATE, Reason.ORPHANED): "no longer declared",
    (Action.CREATE, Reason.MISSING): "applied before, missing from the cluster",
    (Action.CREATE, Reason.DRIFTED): "deleted outside kdeclare",
    (Action.DELETE, Reason.ORPHANED): "no longer declared",
    (Action.DELETE, Reason.ABSENT): "declared absent",
    (Action.REPLACE, Reason.REPLACED): "deleted, then created again",
    (Action.FORGET, Reason.FORGOTTEN): "released by --forget, stays in the cluster",
}

_HIGHLIGHTED_REASONS = (Reason.DRIFTED, Reason.ADOPT, Reason.RECREATED)


def plan_text(plan: Plan, style: Style = PLAIN, graph: bool = False) -> str:
    """Render a plan as text that ends in a newline.

    graph: whether to show the order in which operations run.
    """
    blocks = [_render_headline(plan, style), render_changes(plan, style)]
    if graph:
        blocks.append(render_graph_text(plan.operations, style))
    blocks += [
        *(render_section_text(section, style) for section in list_sections(plan)),
        _render_policies(plan, style),
        _render_irreversible(plan, style),
        _render_unmanaged(plan, style),
        format_adoption(plan) if plan.has_changes else "",
        _render_orphans(plan, style),
        _render_diagnostics(plan, style),
        _render_summary(plan, style),
    ]
    return "\n".join(block for block in blocks if block)


def get_icon(change: Change) -> str:
    """Return the icon of a change: one of ``+ ~ - ± ○ ·`` by its action, or ``↻`` if it only moves data."""
    if change.action is Action.UPDATE and is_move(change):
        return _MOVE_ICON
    return _ICONS[change.action]


def explain_change(change: Change, plan: Plan) -> str:
    """Return the reason for a change in words; empty if the change needs no explanation."""
    if change.reason is Reason.ROLLBACK:
        return f"undoing run {plan.undoes}" if plan.undoes else "rollback"
    return _REASON_TEXTS.get((change.action, change.reason), "").format(noun=change.id.kind.lower())


def _render_headline(plan: Plan, style: Style) -> str:
    outcome = plan_outcome(plan)
    paint = style.red if outcome.exit_code in (ExitCode.ERROR, ExitCode.DENIED) else style.bold
    return f"{paint(outcome.headline)}\n{'' if plan.has_changes else format_adoption(plan)}"


def render_changes(plan: Plan, style: Style = PLAIN) -> str:
    """Render one paragraph per change, with the changed fields; empty if there are no changes."""
    verdicts_by_resource = defaultdict(list)
    for verdict in select_notable_verdicts(plan.verdicts):
        verdicts_by_resource[verdict.resource].append(verdict)
    denied_fields = find_denied_fields(plan)
    targets, observations = find_targets(plan), group_observations(plan)
    lines: list[str] = []
    for change in sort_deletions_first(plan.changes):
        if change.action is not Action.NO_OP:
            lines.append(_render_title(change, plan, style))
            lines += _render_fields(change, style, denied_fields.get(str(change.id), ()))
            lines += _render_causes(change, style)
            lines += [
                f"      {render_observation_text(item, style)}"
                for item in observations.get(str(change.id), ())
            ]
            lines += [f"      {what}  {target}" for what, target in targets.get(str(change.id), ())]
            lines += [
                f"      {line}"
                for line in render_verdict_lines(verdicts_by_resource.get(str(change.id), ()), style)
            ]
            lines.append("")
    return "\n".join(lines)


def _render_title(change: Change, plan: Plan, style: Style) -> str:
    paint = _get_color(change, style)
    parts = [f"  {paint(get_icon(change))} {style.bold(sanitize_for_terminal(str(change.id)))}"]
    if change.blocked:
        parts.append(style.red(f"BLOCKED: {sanitize_for_terminal(change.blocked)}"))
    reason = explain_change(change, plan)
    if reason:
        parts.append(
            style.yellow(reason) if change.reason in _HIGHLIGHTED_REASONS else sanitize_for_terminal(reason)
        )
    for risk in list_risk_names(change):
        parts.append((style.red if risk in SEVERE_RISKS else style.yellow)(risk))
    if owner := find_owner_to_ask(change):
        parts.append(f"owner: {sanitize_for_terminal(owner)}")
    title = parts[0] + ("  " + " · ".join(parts[1:]) if parts[1:] else "")
    return title + (style.dim(f"  ({sanitize_for_terminal(str(change.source))})") if change.source else "")


def find_owner_to_ask(change: Change) -> str | None:
    """Return the owner of a resource if its change is risky or blocked, so that reviewers can ask the owner.

    For other changes, return None, so that plans do not repeat the same owner for many harmless changes.
    """
    return change.owner if change.blocked or change.risk is not Risk.SAFE else None


def find_targets(plan: Plan) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the targets to which the operations of each resource are sent, such as Connect workers.

    A target has a label, such as ``workers``, and a description, such as the URLs of the workers. A target is
    omitted if the name or the fields of the resource already show it.
    """
    targets_by_resource: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for op in plan.operations:
        target = get_operation_type(op).describe_target(op)
        if target is not None:
            targets_by_resource[str(op.resource)][
                sanitize_for_terminal(target[0]), sanitize_for_terminal(target[1])
            ] = None
    return {resource: tuple(targets) for resource, targets in targets_by_resource.items()}


def _render_causes(change: Change, style: Style) -> list[str]:
    """Explain why a change can lose records or cannot be undone, and list the affected fields."""
    if change.blocked:
        return []
    severe_causes = (c for c in list_risk_causes(change) if c.risk in SEVERE_RISKS and c.text)
    return [f"      {style.red(f'{c.risk.value}:')} {c.text}" for c in severe_causes]


def _render_fields(change: Change, style: Style, denied_paths: Collection[str]) -> list[str]:
    """Render one line per field.

    denied_paths: the paths of fields whose changes are denied.
    """
    if not has_both_values(change):
        rows = [(_format_name(f), format_value(get_only_value(change, f), f.path)) for f in change.fields]
        width = max((len(name) for name, _ in rows), default=0)
        return [f"      {name:<{width}}  {value}" for name, value in rows]
    is_replaced = change.action is Action.REPLACE  # all fields are set for a new object
    cells = [
        (
            _format_name(f),
            "" if is_replaced or f.op is FieldOp.CHANGE else f.op.value,
            format_value(f.before, f.path),
            f,
        )
        for f in change.fields
    ]
    name_width = max((len(name) for name, _, _, _ in cells), default=0)
    op_width = max((len(op) for _, op, _, _ in cells), default=0)
    before_width = max(
        (len(before) for _, _, before, _ in cells if len(before) <= _MAX_ALIGNED_WIDTH), default=0
    )
    op_column = op_width + 2 if op_width else 0
    adopted_paths = find_adopted_fields(change)
    lines = []
    for name, op, before, f in cells:
        line_start = f"      {name:<{name_width}}  {op:<{op_column}}{before:<{before_width}}"
        if is_replaced and f.before == f.after:
            lines.append(f"{line_start}   {style.dim('unchanged')}".rstrip())
        elif f.path in denied_paths:
            lines.append(f"{style.dim(f'{line_start} → {_format_after(f, PLAIN)}')}  {style.red('denied')}")
        else:
            adoption_mark = f"  {style.yellow('adopt')}" if f.path in adopted_paths else ""
            lines.append(f"{line_start} {style.dim('→')} {_format_after(f, style)}{adoption_mark}")
    return lines


def find_adopted_fields(change: Change) -> frozenset[str]:
    """Return the paths of the adopted fields of a change. If all fields are adopted, the result is empty."""
    if change.reason is not Reason.ADOPT or all(field.reason is None for field in change.fields):
        return frozenset()
    return frozenset(field.path for field in change.fields if field.reason is None)


def _format_after(field: FieldChange, style: Style) -> str:
    after = format_value(field.after, field.path)
    if field.op is FieldOp.DELETE and field.after is None:
        return f"{after}{style.dim(' (back to the default)')}"
    list_edits = format_list_edits(field)
    return f"{after}  {style.dim(list_edits)}" if list_edits else after


def format_list_edits(field: FieldChange) -> str:
    """Format the elements that a change adds to a list (``+compact``) or removes from a list (``-delete``).

    Return an empty string for other changes.
    """
    if field.value is None or field.op not in (FieldOp.APPEND, FieldOp.SUBTRACT):
        return ""
    elements = field.value if isinstance(field.value, list | tuple) else [field.value]
    sign = "+" if field.op is FieldOp.APPEND else "-"
    return " ".join(sign + format_value(element) for element in elements)


def get_only_value(change: Change, field: FieldChange) -> JsonValue:
    """Return the only value of a field: the new value on creation, the old value on deletion or release."""
    return field.after if change.action in (Action.CREATE, Action.REPLACE) else field.before


def has_both_values(change: Change) -> bool:
    """Whether the fields of a change have both an old and a new value.

    False for a rollback that replaces a resource: its plan is built from operations, and the operations that
    create the resource again contain only the new values.
    """
    if change.action is Action.REPLACE:
        return change.reason is not Reason.ROLLBACK
    return change.action is Action.UPDATE


def _format_name(field: FieldChange) -> str:
    return sanitize_for_terminal(strip_configs_prefix(field.path))


def _get_color(change: Change, style: Style) -> Callable[[str], str]:
    if get_icon(change) == _MOVE_ICON:
        return style.cyan
    colors = {
        Action.CREATE: style.green,
        Action.UPDATE: style.yellow,
        Action.DELETE: style.red,
        Action.REPLACE: style.red,
    }
    return colors.get(change.action, style.dim)


def _render_policies(plan: Plan, style: Style) -> str:
    """Render the number of evaluated policies, the verdicts on unchanged resources, and the denial hint."""
    changed_resources = {str(c.id) for c in plan.changes if c.action is not Action.NO_OP}
    other_verdicts = [
        v for v in select_notable_verdicts(plan.verdicts) if v.resource not in changed_resources
    ]
    return render_policies(plan.verdicts, other_verdicts, style, find_denial_hint(plan))


def _render_irreversible(plan: Plan, style: Style) -> str:
    lines = (
        f"{sanitize_for_terminal(str(o.resource))}: {sanitize_for_terminal(o.irreversible)} "
        f"{style.dim(f'({sanitize_for_terminal(o.verb)})')}"
        for o in plan.operations
        if o.irreversible is not None
    )
    return _render_block(style.red("Cannot be rolled back:"), lines)


def format_adoption(plan: Plan) -> str:
    """Describe how apply changes the ownership of resources whose live state it does not change.

    Return an empty string if the ownership does not change.
    """
    count = count_adopted(plan)
    if count:
        adopted = f"Apply will take ownership of {format_count(count, 'resource')}.\n"
        return adopted + _render_released(plan)
    if plan.ownership and not plan.has_changes:
        record_count = format_count(len(plan.ownership), "ownership record")
        return f"Apply will update {record_count}.\n{_render_released(plan)}"
    return _render_released(plan)


def _render_released(plan: Plan) -> str:
    """List the resources that will no longer be owned, or no longer be protected from deletion.

    Resources whose change has the action ``delete`` or ``forget`` are omitted.
    """
    changed_ids = {c.id for c in plan.changes if c.action in (Action.DELETE, Action.FORGET)}
    lines = []
    for item in plan.ownership:
        if item.before is not None and item.after is None and item.id not in changed_ids:
            lines.append(f"{sanitize_for_terminal(str(item.id))} will no longer be owned.\n")
        elif item.after is not None and is_protected(item.before) and not is_protected(item.after):
            lines.append(
                f"{sanitize_for_terminal(str(item.id))} will no longer be protected from deletion.\n"
            )
    return "".join(lines)


def _render_orphans(plan: Plan, style: Style) -> str:
    orphans = [c for c in plan.changes if c.action is Action.NO_OP]
    if not orphans:
        return ""
    title = f"{format_count(len(orphans), 'orphan')}: owned, but no longer declared"
    lines = [f"{style.yellow('warning:')} {style.bold(title)}"]
    exclusions = describe_exclusions(plan)
    for change in orphans:
        name = sanitize_for_terminal(str(change.id)) + exclusions.get(str(change.id), "")
        owner_note = f"  owner: {sanitize_for_terminal(change.owner)}" if change.owner else ""
        lines.append(style.dim(f"  {_ICONS[change.action]} {name}{owner_note}"))
    hint = format_orphan_hint([sanitize_for_terminal(str(c.id)) for c in orphans])
    lines.append(f"  {style.cyan('hint:')} {hint}")
    return "".join(f"{line}\n" for line in lines)


def describe_exclusions(plan: Plan) -> Mapping[str, str]:
    """Return, by resource, a note for each orphan whose manifest does not apply to this environment.

    The note begins with a space, is safe to print, and names the field that excludes the manifest from the
    environment.
    """
    return {
        d.resource: sanitize_for_terminal(f" (excluded by {d.subject} at {d.place})")
        for d in plan.diagnostics
        if d.code == ORPHANED_CODE and d.resource and d.subject and d.place
    }


def format_orphan_hint(names: Sequence[str]) -> str:
    """Return the hint for orphans.

    names: the names of the orphans, safe to print.
    """
    if len(names) == 1:
        name, pronoun, released = names[0], "it", "it"
    else:
        name, pronoun, released = "KIND/NAME", "them", "one"
    return (
        f"Pass --allow-deletes to delete {pronoun}, or --forget {name} to release {released} "
        f"and keep it in the cluster."
    )


def _render_unmanaged(plan: Plan, style: Style) -> str:
    unmanaged_keys = [(id_, keys) for id_, keys in plan.unmanaged_configs.items() if keys]
    lines = [
        f"{sanitize_for_terminal(id_)}  {sanitize_for_terminal(', '.join(keys))}"
        for id_, keys in unmanaged_keys[:_MAX_UNMANAGED]
    ]
    if len(unmanaged_keys) > _MAX_UNMANAGED:
        lines.append(f"… and on {format_count(len(unmanaged_keys) - _MAX_UNMANAGED, 'more resource')}")
    title = "Unmanaged keys of declared resources (neither declared nor owned, left unchanged):"
    return _render_block(style.dim(title), (style.dim(line) for line in lines))


def _render_diagnostics(plan: Plan, style: Style) -> str:
    orphans = {str(c.id) for c in plan.changes if c.action is Action.NO_OP}
    remaining_diagnostics = (
        d for d in plan.diagnostics if not (d.code == ORPHANED_CODE and d.resource in orphans)
    )
    return render_diagnostics(remaining_diagnostics, style)


def _render_summary(plan: Plan, style: Style) -> str:
    if not plan.has_changes and not plan.has_errors:
        return ""
    summary = plan.summary
    other_counts = [
        (summary.unchanged, "unchanged"),
        (summary.orphaned, "orphaned"),
        (summary.unmanaged, "unmanaged"),
    ]
    parts = [
        format_planned_counts(plan) or "nothing to do",
        *(f"{count:,} {word}" for count, word in other_counts if count),
    ]
    problem_counts = format_severity_counts(plan.diagnostics)
    return f"{style.bold('Summary:')} {' · '.join([*parts, problem_counts] if problem_counts else parts)}\n"


def _render_block(title: str, lines: Iterator[str]) -> str:
    body = [f"  {line}\n" for line in lines]
    return f"{title}\n{''.join(body)}" if body else ""
