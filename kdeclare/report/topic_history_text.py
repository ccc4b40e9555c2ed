"""What became of one topic over the snapshots of a fleet, for people and for scripts."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from kdeclare.engine.planning.plan_document import timestamp
from kdeclare.fleet.history import FieldTurn, TopicTurn, TopicVersion, Turn, turns
from kdeclare.report.history_text import moment
from kdeclare.report.json_output import FORMAT_VERSION
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, key_of, plural, show

_SHOWN = 60
"""How many fields of one snapshot are listed; a move of thousands of partitions is not read line by line."""


def topic_history_text(
    cluster: str, topic: str, versions: Sequence[TopicVersion], style: Style = PLAIN
) -> str:
    """What changed at each time, oldest first, ending in a new line."""
    name = f"Topic/{clean(topic)} on {clean(cluster)}"
    if not versions:
        return f"No snapshots of {clean(cluster)} yet.\n"
    found = turns(versions)
    count = plural(len(versions), "snapshot")
    if not found:
        return f"{name}: in none of {count}.\n"
    changed = sum(turn.turn is Turn.CHANGED for turn in found)
    times = f"changed {plural(changed, 'time')}" if changed else "never changed"
    lines = [style.bold(f"{name}: {times} in {count}."), ""]
    for turn in found:
        lines += _lines(turn, style)
    last = max(version.taken_at for version in versions)
    lines.append(style.dim(f"Last snapshot: {moment(last)}"))
    return "".join(f"{line}\n" for line in lines)


def topic_history_document(cluster: str, topic: str, versions: Sequence[TopicVersion]) -> dict[str, Any]:
    """The same for scripts.

    format_version, cluster, topic, snapshots (how many there are), and ``history``: {taken_at, snapshot_id,
    turn (appeared, changed, gone, unknown), seen_before (time or null), error (or null), fields: [{path,
    before, after}]}; null is "not set".
    """
    return {
        "format_version": FORMAT_VERSION,
        "cluster": cluster,
        "topic": topic,
        "snapshots": len(versions),
        "history": [
            {
                "taken_at": timestamp(turn.version.taken_at),
                "snapshot_id": turn.version.snapshot_id,
                "turn": turn.turn.value,
                "seen_before": _time(turn.seen_before),
                "error": turn.error,
                "fields": [{"path": f.path, "before": f.before, "after": f.after} for f in turn.fields],
            }
            for turn in turns(versions)
        ],
    }


def _lines(turn: TopicTurn, style: Style) -> Iterator[str]:
    when = style.bold(moment(turn.version.taken_at))
    yield f"{when}  {_title(turn, style)}{style.dim(f'  {clean(turn.version.snapshot_id)}')}"
    names = [_name(field.path) for field in turn.fields[:_SHOWN]]
    width = max(map(len, names), default=0)
    for name, field in zip(names, turn.fields, strict=False):
        yield f"  {name:<{width}}  {_values(field, style)}"
    if len(turn.fields) > _SHOWN:
        yield style.dim(f"  … and {plural(len(turn.fields) - _SHOWN, 'more field')}")
    yield ""


def _title(turn: TopicTurn, style: Style) -> str:
    match turn.turn:
        case Turn.APPEARED:
            return style.green("first seen" if turn.seen_before is None else "appeared")
        case Turn.GONE:
            return style.red("gone")
        case Turn.UNKNOWN:
            return style.red(f"not read: {clean(turn.error or '')}")
        case Turn.CHANGED:
            return style.yellow(plural(len(turn.fields), "change"))


def _name(path: str) -> str:
    if path == "id":
        return "topic id (created anew)"
    start, _, rest = path.partition(".")
    of = {"assignments": "replicas", "moves": "move"}.get(start)
    return f"{of} of partition {clean(rest)}" if of else clean(key_of(path))


def _values(field: FieldTurn, style: Style) -> str:
    before, after = (show(value, field.path) for value in (field.before, field.after))
    return f"{before} {style.dim('→')} {after}"


def _time(when: datetime | None) -> str | None:
    return None if when is None else timestamp(when)
