"""Changes as rows of a Markdown table, and their fields for who opens them."""

from collections.abc import Collection, Iterable, Iterator

from kdeclare.core.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.core.plan import Plan
from kdeclare.report.markdown_escape import code, prose
from kdeclare.report.plan_text import adopted_fields, icon, one_side, parts_of, why
from kdeclare.report.risks import GRAVE, cause_of
from kdeclare.report.values import key_of, listed, plural, show

_NAMED = 4
_FIELDS = 40


def change_row(
    change: Change, plan: Plan, denied: Collection[str] = (), targets: Iterable[tuple[str, str]] = ()
) -> str:
    """Icon, resource, what is done and why, risk, and which fields change, or would if not ``denied``.

    targets: what it acts on, see `report.plan_text.find_targets`.
    """
    acts_on = (f"{prose(what)} {code(target)}" for what, target in targets)
    action = listed([change.action.value, prose(why(change, plan)), *acts_on])
    risk = ", ".join(_risk(each) for each in change.risks if each is not Risk.SAFE) or Risk.SAFE.value
    if change.blocked:
        risk = f"**blocked** {code(change.blocked)}"
    return _row(icon(change), code(str(change.id)), action, risk, _fields(change, denied))


def details(change: Change, denied: Collection[str] = ()) -> str:
    """Its fields with their values, folded in; of very many, the first and a count.

    denied: paths of fields that stay as they are.
    """
    place = f", {code(str(change.source))}" if change.source else ""
    title = f"{icon(change)} {code(str(change.id))}: {plural(len(change.fields), 'field')}{place}"
    left = len(change.fields) - _FIELDS
    more = f"\n… and {plural(left, 'more field')}, left out here\n" if left > 0 else ""
    table = "".join(_values(change, denied))
    return f"<details><summary>{title}</summary>\n\n{table}{more}\n</details>\n"


def _risk(risk: Risk) -> str:
    return f"**{risk.value}**" if risk in GRAVE else risk.value


def details_of(count: int) -> str:
    """What stands for the fields of changes that there is no room for."""
    return f"… and the values of {plural(count, 'more change')}, left out here; the plan as text has them."


def _values(change: Change, denied: Collection[str]) -> Iterator[str]:
    fields = change.fields[:_FIELDS]
    if change.action is Action.UPDATE:
        yield "| Field | Op | Before | After |\n|---|---|---|---|\n"
        adopted = adopted_fields(change)
        for field in fields:
            op = "" if field.op is FieldOp.CHANGE else field.op.value
            op = listed([op, "adopt" if field.path in adopted else ""])
            op = "**denied**" if field.path in denied else op
            yield _row(_name(field), op, _value(field, field.before), _with_risk(_after(field), field))
        return
    yield "| Field | Value |\n|---|---|\n"
    for field in fields:
        yield _row(_name(field), _value(field, one_side(change, field)))


def _with_risk(cell: str, field: FieldChange) -> str:
    told = cause_of(field)
    return f"{cell}<br>{prose(told)}" if told else cell


def _after(field: FieldChange) -> str:
    after = _value(field, field.after)
    if field.op is FieldOp.DELETE and field.after is None:
        return f"{after} (back to the default)"
    parts = parts_of(field)
    return f"{after} {code(parts)}" if parts else after


def _value(field: FieldChange, value: object) -> str:
    return code(show(value, field.path))


def _name(field: FieldChange) -> str:
    return code(key_of(field.path))


def _fields(change: Change, denied: Collection[str]) -> str:
    shown = change.fields[:_NAMED]
    named = [f"{_name(field)}{' (denied)' if field.path in denied else ''}" for field in shown]
    more = len(change.fields) - _NAMED
    return listed([*named, f"{more:,} more" if more > 0 else ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
