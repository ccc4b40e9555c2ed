"""A plan as a person reads it: the headline, then what changes, then what else should be known."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.provider import PlanSection
from kdeclare.core.provider.registry import describe_plan, type_of
from kdeclare.core.resources.capabilities import is_move
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason
from kdeclare.core.resources.owned_record import is_protected
from kdeclare.core.units import plural
from kdeclare.report.elements.diagnostics_text import (
    diagnostics_text,
    hint_of,
    policies_text,
    spoken,
    tally,
    verdict_lines,
)
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, key_of, show
from kdeclare.report.outcome import adopting, fields_denied, plan_outcome, to_do
from kdeclare.report.plan.plan_graph import graph_text
from kdeclare.report.plan.risks import GRAVE, causes_of, deletions_first, names_of_risks

ORPHANED = "orphaned"
"""The code of the diagnostic about an orphan; the text has a paragraph of its own for them."""

_MANY = 20
_ICONS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.DELETE: "-",
    Action.FORGET: "○",
    Action.NO_OP: "·",
}
_MOVE = "↻"
_WIDEST = 44  # a longer value does not push the arrows of its neighbours

_WHY = {
    (Action.UPDATE, Reason.DECLARED): "not managed before",
    (Action.UPDATE, Reason.CHANGED): "manifest changed",
    (Action.UPDATE, Reason.ADOPT): "adopt: exists, not owned so far",
    (Action.UPDATE, Reason.RECREATED): "recreated: another {noun} than the one that was applied",
    (Action.UPDATE, Reason.DRIFTED): "changed outside kdeclare",
    (Action.UPDATE, Reason.MISSING): "partly gone from the cluster",
    (Action.UPDATE, Reason.ORPHANED): "no longer declared",
    (Action.CREATE, Reason.MISSING): "applied before, gone from the cluster",
    (Action.CREATE, Reason.DRIFTED): "deleted outside kdeclare",
    (Action.DELETE, Reason.ORPHANED): "no longer declared",
    (Action.FORGET, Reason.FORGOTTEN): "released by --forget, stays in the cluster",
}

_STRIKING = (Reason.DRIFTED, Reason.ADOPT, Reason.RECREATED)


def plan_text(plan: Plan, style: Style = PLAIN, graph: bool = False) -> str:
    """The whole text, ending in a new line. ``graph`` adds the order of execution."""
    blocks = [_headline(plan, style), changes_text(plan, style)]
    if graph:
        blocks.append(graph_text(plan.operations, style))
    blocks += [
        *(_section(section, style) for section in describe_plan(plan.operations)),
        _policies(plan, style),
        _irreversible(plan, style),
        _unmanaged(plan, style),
        adoption(plan) if plan.has_changes else "",
        _orphans(plan, style),
        _diagnostics(plan, style),
        _last_line(plan, style),
    ]
    return "\n".join(block for block in blocks if block)


def icon(change: Change) -> str:
    """``+ ~ - ○ ·``, or ``↻`` when all that changes is where data is."""
    if change.action is Action.UPDATE and is_move(change):
        return _MOVE
    return _ICONS[change.action]


def why(change: Change, plan: Plan) -> str:
    """The reason in words; empty where the action says it all."""
    if change.reason is Reason.ROLLBACK:
        return f"undoing run {plan.undoes}" if plan.undoes else "rollback"
    return _WHY.get((change.action, change.reason), "").format(noun=change.id.kind.lower())


def _headline(plan: Plan, style: Style) -> str:
    outcome = plan_outcome(plan)
    paint = style.red if outcome.exit_code in (ExitCode.ERROR, ExitCode.DENIED) else style.bold
    return f"{paint(outcome.headline)}\n{'' if plan.has_changes else adoption(plan)}"


def changes_text(plan: Plan, style: Style = PLAIN) -> str:
    """The changes with their fields, one paragraph each; empty when there are none."""
    said = defaultdict(list)
    for verdict in spoken(plan.verdicts):
        said[verdict.resource].append(verdict)
    denied = fields_denied(plan)
    targets = find_targets(plan)
    lines: list[str] = []
    for change in deletions_first(plan.changes):
        if change.action is not Action.NO_OP:
            lines.append(_title(change, plan, style))
            lines += _rows(change, style, denied.get(str(change.id), ()))
            lines += _causes(change, style)
            lines += [f"      {what}  {target}" for what, target in targets.get(str(change.id), ())]
            lines += [f"      {line}" for line in verdict_lines(said.get(str(change.id), ()), style)]
            lines.append("")
    return "\n".join(lines)


def _title(change: Change, plan: Plan, style: Style) -> str:
    paint = _paint(change, style)
    parts = [f"  {paint(icon(change))} {style.bold(clean(str(change.id)))}"]
    if change.blocked:
        parts.append(style.red(f"BLOCKED: {clean(change.blocked)}"))
    reason = why(change, plan)
    if reason:
        parts.append(style.yellow(reason) if change.reason in _STRIKING else clean(reason))
    for risk in names_of_risks(change):
        parts.append((style.red if risk in GRAVE else style.yellow)(risk))
    title = parts[0] + ("  " + " · ".join(parts[1:]) if parts[1:] else "")
    return title + (style.dim(f"  ({clean(str(change.source))})") if change.source else "")


def find_targets(plan: Plan) -> Mapping[str, Sequence[tuple[str, str]]]:
    """What changes act on, by resource, where no name or field says it; what it is called comes first."""
    found: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for op in plan.operations:
        target = type_of(op).name_target(op)
        if target is not None:
            found[str(op.resource)][clean(target[0]), clean(target[1])] = None
    return {resource: tuple(targets) for resource, targets in found.items()}


def _causes(change: Change, style: Style) -> list[str]:
    """Why records can be lost, or a change cannot be undone, and by which fields."""
    if change.blocked:
        return []
    grave = (c for c in causes_of(change) if c.risk in GRAVE and c.text)
    return [f"      {style.red(f'{c.risk.value}:')} {c.text}" for c in grave]


def _rows(change: Change, style: Style, denied: Collection[str]) -> list[str]:
    """denied: paths of fields that stay as they are."""
    if change.action in (Action.CREATE, Action.DELETE, Action.FORGET):
        rows = [(_name(f), show(one_side(change, f), f.path)) for f in change.fields]
        width = max((len(name) for name, _ in rows), default=0)
        return [f"      {name:<{width}}  {value}" for name, value in rows]
    cells = [
        (_name(f), "" if f.op is FieldOp.CHANGE else f.op.value, show(f.before, f.path), f)
        for f in change.fields
    ]
    names = max((len(name) for name, _, _, _ in cells), default=0)
    ops = max((len(op) for _, op, _, _ in cells), default=0)
    befores = max((len(before) for _, _, before, _ in cells if len(before) <= _WIDEST), default=0)
    op_column = ops + 2 if ops else 0
    adopted = adopted_fields(change)
    lines = []
    for name, op, before, f in cells:
        start = f"      {name:<{names}}  {op:<{op_column}}{before:<{befores}}"
        if f.path in denied:
            lines.append(f"{style.dim(f'{start} → {_after(f, PLAIN)}')}  {style.red('denied')}")
        else:
            mark = f"  {style.yellow('adopt')}" if f.path in adopted else ""
            lines.append(f"{start} {style.dim('→')} {_after(f, style)}{mark}")
    return lines


def adopted_fields(change: Change) -> frozenset[str]:
    """Return the paths of the fields that are adopted where others of the same change are not."""
    if change.reason is not Reason.ADOPT or all(field.reason is None for field in change.fields):
        return frozenset()
    return frozenset(field.path for field in change.fields if field.reason is None)


def _after(field: FieldChange, style: Style) -> str:
    after = show(field.after, field.path)
    if field.op is FieldOp.DELETE and field.after is None:
        return f"{after}{style.dim(' (back to the default)')}"
    parts = parts_of(field)
    return f"{after}  {style.dim(parts)}" if parts else after


def parts_of(field: FieldChange) -> str:
    """The elements of an APPEND or SUBTRACT: ``+compact -delete``; empty for other ops."""
    if field.value is None or field.op not in (FieldOp.APPEND, FieldOp.SUBTRACT):
        return ""
    elements = field.value if isinstance(field.value, list | tuple) else [field.value]
    sign = "+" if field.op is FieldOp.APPEND else "-"
    return " ".join(sign + show(element) for element in elements)


def one_side(change: Change, field: FieldChange) -> JsonValue:
    """The value of a field where a resource comes or goes as a whole."""
    return field.after if change.action is Action.CREATE else field.before


def _name(field: FieldChange) -> str:
    return clean(key_of(field.path))


def _paint(change: Change, style: Style) -> Callable[[str], str]:
    if icon(change) == _MOVE:
        return style.cyan
    return {Action.CREATE: style.green, Action.UPDATE: style.yellow, Action.DELETE: style.red}.get(
        change.action, style.dim
    )


def _section(section: PlanSection, style: Style) -> str:
    lines = [style.bold(f"{clean(section.title)}:")]
    for line in section.lines:
        text = f"  {clean(line.text)}"
        lines.append(style.dim(text) if line.is_secondary else text)
    return "".join(f"{line}\n" for line in lines)


def _policies(plan: Plan, style: Style) -> str:
    """How many were asked, what they said of resources that are in order, and what to do about a denial."""
    shown = {str(c.id) for c in plan.changes if c.action is not Action.NO_OP}
    others = [v for v in spoken(plan.verdicts) if v.resource not in shown]
    return policies_text(plan.verdicts, others, style, hint_of(plan))


def _irreversible(plan: Plan, style: Style) -> str:
    lines = (
        f"{clean(str(o.resource))}: {clean(o.irreversible)} {style.dim(f'({clean(o.verb)})')}"
        for o in plan.operations
        if o.irreversible is not None
    )
    return _block(style.red("Cannot be rolled back:"), lines)


def adoption(plan: Plan) -> str:
    """What apply takes into ownership without changing it; empty where there is nothing."""
    count = adopting(plan)
    if count:
        taken = f"{plural(count, 'resource')} will be taken into ownership by apply.\n"
        return taken + _given_up(plan)
    if plan.ownership and not plan.has_changes:
        records = plural(len(plan.ownership), "record")
        return f"{records} of ownership will be brought up to date by apply.\n{_given_up(plan)}"
    return _given_up(plan)


def _given_up(plan: Plan) -> str:
    """What is no longer owned or protected, and has no change that says so."""
    shown = {c.id for c in plan.changes if c.action in (Action.DELETE, Action.FORGET)}
    lines = []
    for item in plan.ownership:
        if item.before is not None and item.after is None and item.id not in shown:
            lines.append(f"{clean(str(item.id))} will no longer be owned.\n")
        elif item.after is not None and is_protected(item.before) and not is_protected(item.after):
            lines.append(f"{clean(str(item.id))} will no longer be protected from deletion.\n")
    return "".join(lines)


def _orphans(plan: Plan, style: Style) -> str:
    orphans = [c for c in plan.changes if c.action is Action.NO_OP]
    if not orphans:
        return ""
    title = f"{plural(len(orphans), 'orphan')}: owned, but no longer declared"
    lines = [f"{style.yellow('warning:')} {style.bold(title)}"]
    lines += [style.dim(f"  {_ICONS[c.action]} {clean(str(c.id))}") for c in orphans]
    name = clean(str(orphans[0].id)) if len(orphans) == 1 else "KIND/NAME"
    hint = f"--allow-deletes deletes, --forget {name} lets go of it and keeps it in the cluster."
    lines.append(f"  {style.cyan('hint:')} {hint}")
    return "".join(f"{line}\n" for line in lines)


def _unmanaged(plan: Plan, style: Style) -> str:
    found = [(id_, keys) for id_, keys in plan.unmanaged_configs.items() if keys]
    lines = [f"{clean(id_)}  {clean(', '.join(keys))}" for id_, keys in found[:_MANY]]
    if len(found) > _MANY:
        lines.append(f"… and on {plural(len(found) - _MANY, 'more resource')}")
    title = "Set on declared resources, neither declared nor owned, left alone:"
    return _block(style.dim(title), (style.dim(line) for line in lines))


def _diagnostics(plan: Plan, style: Style) -> str:
    orphans = {str(c.id) for c in plan.changes if c.action is Action.NO_OP}
    said = (d for d in plan.diagnostics if not (d.code == ORPHANED and d.resource in orphans))
    return diagnostics_text(said, style)


def _last_line(plan: Plan, style: Style) -> str:
    if not plan.has_changes and not plan.has_errors:
        return ""
    s = plan.summary
    rest = [(s.unchanged, "unchanged"), (s.orphaned, "orphaned"), (s.unmanaged, "unmanaged")]
    parts = [to_do(plan) or "nothing to do", *(f"{count:,} {word}" for count, word in rest if count)]
    problems = tally(plan.diagnostics)
    return f"{style.bold('Summary:')} {' · '.join([*parts, problems] if problems else parts)}\n"


def _block(title: str, lines: Iterator[str]) -> str:
    body = [f"  {line}\n" for line in lines]
    return f"{title}\n{''.join(body)}" if body else ""
