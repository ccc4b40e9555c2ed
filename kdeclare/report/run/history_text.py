"""The history, for people: the list of runs, one run in full, and how two plans differ."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_list, as_object, as_text
from kdeclare.core.plans.run import Status
from kdeclare.core.resources.changes import FieldOp
from kdeclare.report.elements.diagnostics_text import diagnostics_text, name_subject
from kdeclare.report.elements.terminal import (
    PLAIN,
    SHORTENED,
    Cell,
    Column,
    Cut,
    Painted,
    Style,
    elided,
    is_cut,
    table,
    width_of,
)
from kdeclare.report.elements.values import clean, duration, key_of, listed, plural, show
from kdeclare.report.outcome import place_of, to_do
from kdeclare.report.plan.plan_text import changes_text
from kdeclare.report.run.run_text import Ended, deeds, ended_text
from kdeclare.report.run.views import UNREADABLE, RunDetail, RunStep, RunSummary

_MANY = 20
_COLUMNS = (
    *map(Column, ("RUN", "STARTED", "TOOK", "OUTCOME", "DONE")),
    Column("CHANGES", cut=Cut.END),
    *map(Column, ("BY", "WHAT")),
)
_NARROW = (0, 2, 3, 4, 5)
"""Of the columns, those that stay in a terminal that is too narrow for all."""
_BELOW = "    "


def history_text(
    runs: Sequence[RunSummary], style: Style = PLAIN, width: int | None = None, *, older: int = 0
) -> str:
    """A table of runs in the order given. older: how many more there are that are not shown.

    width: columns of the terminal, None for no bound. Where a run does not fit into a line, who did it and
    what was typed stand in lines below it, and what its id says already is left out.
    """
    if not runs:
        return "No runs yet.\n"
    rows = [_row(run, style) for run in runs]
    more = f"\n{plural(older, 'older run')}; --limit 0 shows all.\n" if older else ""
    return _table(runs, rows, style, width) + style.dim(more)


def _table(
    runs: Sequence[RunSummary], rows: Sequence[tuple[Cell, ...]], style: Style, width: int | None
) -> str:
    if not is_cut(_COLUMNS, rows, width):
        return "".join(f"{line}\n" for line in table(_COLUMNS, rows, width, style))
    narrow = [tuple(row[i] for i in _NARROW) for row in rows]
    header, *lines = table([_COLUMNS[i] for i in _NARROW], narrow, width, style)
    below = [f"{clean(run.user)}: {clean(run.command)}" if run.user else "-" for run in runs]
    room = (width or 0) - len(_BELOW)
    found = [header]
    for run, line, text in zip(runs, lines, below, strict=True):
        more = [text, *_remarks(run)]
        found += [line, *(f"{_BELOW}{elided(part, room, Cut.END)}" for part in more)]
    if any(width_of(text) > room for text in below) or is_cut([_COLUMNS[i] for i in _NARROW], narrow, width):
        found += ["", style.dim(SHORTENED)]
    return "".join(f"{line}\n" for line in found)


def run_detail_text(detail: RunDetail, style: Style = PLAIN, steps: bool = False) -> str:
    """One run in full: who, when, what it changed, and what did not end well.

    ``steps`` adds every operation with its times.
    """
    run = detail.run
    took = f", took {duration((run.ended - run.started).total_seconds())}" if run.ended else ""
    head = [
        style.bold(f"Run {clean(run.run_id)} on {place_of(detail.plan)}: {clean(run.gist or run.outcome)}."),
        f"  started   {moment(run.started)}{took}",
        f"  by        {clean(run.user)}",
        f"  command   {clean(run.command)}",
        f"  plan      {clean(run.plan_id[:12])}  {to_do(detail.plan)}".rstrip(),
        f"  done      {run.done:,} of {plural(run.operations, 'operation')}",
    ]
    if run.adopted and run.ended:
        head.append(f"  adopted   {plural(run.adopted, 'resource')} taken into ownership without a change")
    if run.undoes:
        head.append(f"  undoes    {clean(run.undoes)}")
    if run.undone_by:
        head.append(f"  undone by {clean(run.undone_by)}")
    did = deeds(s.verb for s in detail.steps if s.status is Status.DONE)
    blocks = [
        "".join(f"{line}\n" for line in head),
        changes_text(detail.plan, style),
        f"{did}.\n" if did else "",
        _overrides(detail, style),
        _steps(detail, style) if steps else "",
        _trouble(detail, style),
        diagnostics_text(detail.diagnostics, style),
    ]
    return "\n".join(block for block in blocks if block)


def history_diff_text(diff: "HistoryDiff", style: Style = PLAIN) -> str:
    """How one plan differs from another."""
    differences, first, second = diff.differences, clean(diff.a), clean(diff.b)
    if not differences:
        return f"No differences between {first} and {second}.\n"
    counted = plural(len({item.resource for item in differences} - {"plan"}), "resource")
    lines = [style.bold(f"{counted} changed otherwise by {second} than by {first}."), ""]
    width = max(len(first), len(second))
    resource = None
    for item in differences:
        if item.resource != resource:
            resource = item.resource
            lines.append(f"  {style.bold(clean(resource))}")
        if item.path:
            lines.append(f"      {clean(key_of(item.path))}")
        lines.append(f"        {style.red(f'{first:<{width}}')}  {_said(item.a, item.path)}")
        lines.append(f"        {style.green(f'{second:<{width}}')}  {_said(item.b, item.path)}")
    return "".join(f"{line}\n" for line in lines)


def _said(value: JsonValue, path: str) -> str:
    """What one plan says of a field, of a change, or of something else by name."""
    if value is None:
        return "-" if path else "(no change)"
    if not path:
        change = as_object(value)
        fields = plural(len(as_list(change["fields"])), "field")
        return f"{clean(as_text(change['action']))}, {clean(as_text(change['reason']))}, {fields}"
    if isinstance(value, Mapping):
        op = "" if value["op"] == FieldOp.CHANGE else f"{clean(as_text(value['op']))} "
        return f"{op}{show(value['before'], path)} → {show(value['after'], path)}"
    return show(value)


def moment(when: datetime) -> str:
    """UTC to the second, the same on every machine."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _row(run: RunSummary, style: Style) -> tuple[Cell, ...]:
    took = duration((run.ended - run.started).total_seconds()) if run.ended else "-"
    done = f"{run.done:,}/{run.operations:,}" if run.operations else "-"
    what = " ".join([clean(run.command), *(f"({remark})" for remark in _remarks(run))])
    outcome = clean(run.outcome)
    return (
        clean(run.run_id),
        moment(run.started),
        took,
        outcome if run.outcome == "done" else Painted(outcome, _paint(run, style)),
        done,
        _tally(run),
        clean(run.user),
        what,
    )


def _remarks(run: RunSummary) -> list[str]:
    """What else there is to say of a run."""
    remarks = (
        (run.undoes, f"undoes {clean(run.undoes or '')}"),
        (run.undone_by, f"undone by {clean(run.undone_by or '')}"),
        (run.overridden, f"{plural(run.overridden, 'denial')} overridden"),
        (run.problem, clean(run.problem)),
    )
    return [text for holds, text in remarks if holds]


def _tally(run: RunSummary) -> str:
    """What a plan was to do in a few signs: ``+5 ~2 -1``, and what only its ownership was to change."""
    s = run.summary
    signs = (("+", s.create), ("~", s.update), ("-", s.delete))
    words = ((run.adopted, "adopted"), (s.forget, "released"))
    changed = " ".join(f"{sign}{count:,}" for sign, count in signs if count)
    return listed([changed, *(f"{count:,} {word}" if count else "" for count, word in words)])


def _paint(run: RunSummary, style: Style) -> Callable[[str], str]:
    return style.red if run.outcome in ("error", UNREADABLE) else style.yellow


def _overrides(detail: RunDetail, style: Style) -> str:
    """Who had which denials overridden, and why; of very many, some and a count."""
    if not detail.overrides:
        return ""
    principals = {item.principal for item in detail.overrides}
    principal = detail.overrides[0].principal
    known = f"{clean(principal)} to the brokers" if principal else "not authenticated by the brokers"
    head = f"Overridden by {clean(detail.run.user)}"
    lines = [style.bold(f"{head} ({known}):" if len(principals) == 1 else f"{head}:")]
    for item in detail.overrides[:_MANY]:
        topic = f", {clean(name_subject(item.topic))}" if item.topic is not None else ""
        line = f"  policy {clean(item.policy)} on {clean(item.resource)}{topic}"
        if len(principals) > 1:  # of several systems, each knows kdeclare by another name
            line += f" as {clean(item.principal)}" if item.principal else " without authentication"
        lines.append(f"{line}: {clean(item.reason)}")
    if len(detail.overrides) > _MANY:
        lines.append(style.dim(f"  … and {len(detail.overrides) - _MANY:,} more"))
    return "".join(f"{line}\n" for line in lines)


def _steps(detail: RunDetail, style: Style) -> str:
    lines = [style.bold("Steps:")]
    for step in detail.steps:
        known = step.known_status
        status = "not begun" if known is Status.INTERRUPTED else known.value
        begun = moment(step.begun) if step.begun else "-"
        lines.append(f"  {begun:<20}  {status:<11}  {clean(step.verb)} {clean(step.resource)}")
    return "".join(f"{line}\n" for line in lines)


def _trouble(detail: RunDetail, style: Style) -> str:
    names = {s.id: clean(f"{s.verb} {s.resource}") for s in detail.steps}
    ended = [_ended(step, names) for step in detail.steps]
    return ended_text(ended, style)


def _ended(step: RunStep, names: Mapping[str, str]) -> Ended:
    cause = names.get(step.cause, clean(step.cause)) if step.cause else ""
    return Ended(names[step.id], step.known_status, step.error, step.message, cause)


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One place in which two plans differ.

    a, b: what each says; None is "nothing".

    resource: its id, or ``plan`` for what is said of the whole.
    path: a field (``configs.retention.ms``; a and b are then {op, before, after}), what is said of
    the change (``action``, ``reason`` …), or empty where only one plan changes the resource
    (a or b is then {action, reason, risk, fields}, with the paths of the fields).
    """

    schema_name = "DifferenceDocument"

    resource: str
    path: str
    a: JsonValue
    b: JsonValue


@dataclass(frozen=True, slots=True)
class HistoryDiff:
    """How plan b differs from plan a."""

    a: str
    b: str
    differences: tuple[PlanDifference, ...]


def compare_plans(
    a: Mapping[str, JsonValue], b: Mapping[str, JsonValue], a_name: str, b_name: str
) -> HistoryDiff:
    """What plan document ``b`` does otherwise than ``a``, in the order of resources and paths.

    Places in files and the order of changes are no differences.
    """
    from deepdiff import DeepDiff  # takes a third of a second: only who compares waits for it

    left, right = _subject(a), _subject(b)
    for same in [id_ for id_, body in left.items() if id_ in right and right[id_] == body]:
        del left[same], right[same]  # deepdiff takes its time for thousands of equal ones
    found = {}
    for items in DeepDiff(left, right, view="tree", threshold_to_diff_deeper=0).values():
        for item in items:
            resource, *rest = item.path(output_format="list")
            path = str(rest[0]) if rest else ""
            found[resource, path] = _difference(left, right, resource, path)
    ordered = sorted(found.values(), key=lambda d: (d.resource != "plan", d.resource, d.path))
    return HistoryDiff(a_name, b_name, tuple(ordered))


def _difference(
    left: Mapping[str, JsonObject], right: Mapping[str, JsonObject], resource: str, path: str
) -> PlanDifference:
    a, b = left.get(resource), right.get(resource)
    if path:
        return PlanDifference(resource, path, a and a.get(path), b and b.get(path))
    return PlanDifference(resource, "", _in_short(a), _in_short(b))


def _in_short(body: JsonObject | None) -> JsonObject | None:
    if body is None:
        return None
    said = {key: body[key] for key in ("action", "reason", "risk")}
    return {**said, "fields": [key for key, value in body.items() if isinstance(value, Mapping)]}


def _subject(document: JsonObject) -> dict[str, JsonObject]:
    """What is compared: changes by resource, their fields by path."""
    head = {key: document[key] for key in ("project", "env", "undoes")}
    subject: dict[str, JsonObject] = {"plan": {**head, "cluster": as_object(document["cluster"])["id"]}}
    for change in map(as_object, as_list(document["changes"])):
        body = {key: change[key] for key in ("action", "reason", "risk")}
        body["blocked"] = change.get("blocked")
        for field in map(as_object, as_list(change["fields"])):
            body[as_text(field["path"])] = {key: field[key] for key in ("op", "before", "after")}
        subject[as_text(change["id"])] = body
    return subject
