"""Snapshots of a fleet: one as it was taken, and the history of one object over them."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Second, describe_as
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.secrets.secret_refs import SHOWN, UNTOLD
from kdeclare.fleet.history import FieldTurn, ObjectTurn, ObjectVersion, Turn, turns
from kdeclare.fleet.snapshots import SnapshotCluster, SnapshotRecord
from kdeclare.manifests.policies import TOPIC
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, duration, key_of, plural, show
from kdeclare.report.fleet.audit_words import count_objects
from kdeclare.report.run.history_text import moment

_MANY = 20


def snapshot_text(record: SnapshotRecord, where: str, style: Style = PLAIN) -> str:
    """What was read, what was not and why, and where it is, ending in a new line.

    where: the folder of the fleet's snapshots, as the person named it.
    """
    failed = record.incomplete
    blocks = [
        f"{_headline(record, style)}\n",
        "".join(f"{line}\n" for line in _unread(failed, style)),
        f"Snapshot {clean(record.snapshot_id)}, taken {moment(record.taken_at)}"
        f" in {duration(record.seconds)}.\nWritten to {clean(where)}: {clean(record.path)}\n",
    ]
    return "\n".join(block for block in blocks if block)


def _headline(record: SnapshotRecord, style: Style) -> str:
    clusters, failed = len(record.clusters), len(record.incomplete)
    of = f"{plural(clusters, 'cluster')} of {clean(record.fleet)}"
    if not failed:
        topics = sum(cluster.topics for cluster in record.clusters)
        others = ((o.one, o.many, o.count) for cluster in record.clusters for o in cluster.others)
        resources = sum(cluster.resources for cluster in record.clusters)
        head = f"Read {of}: {count_objects(topics, others)}, {plural(resources, 'resource')}."
        return style.bold(head)
    resources = sum(cluster.resources for cluster in record.clusters)
    head = f"Read {clusters - failed:,} of {of}: {plural(resources, 'resource')}."
    return style.red(head)


def _unread(failed: tuple[SnapshotCluster, ...], style: Style) -> list[str]:
    if not failed:
        return []
    shown = failed[:_MANY]
    width = max(len(clean(cluster.name)) for cluster in shown)
    lines = [style.bold("Not read, or not all of it:")]
    lines += [f"  {clean(cluster.name):<{width}}  {_why(cluster)}" for cluster in shown]
    if len(failed) > _MANY:
        lines.append(style.dim(f"  … and {len(failed) - _MANY:,} more"))
    return lines


def _why(cluster: SnapshotCluster) -> str:
    if cluster.error is not None:
        return clean(cluster.error)
    return f"{plural(cluster.failed, 'resource')} could not be read, {cluster.resources:,} could"


_SHOWN = 60
"""How many fields of one snapshot are listed; a move of thousands of partitions is not read line by line."""


def object_history_text(
    cluster: str, key: LiveKey, versions: Sequence[ObjectVersion], style: Style = PLAIN
) -> str:
    """What changed at each time, oldest first, ending in a new line."""
    name = f"{clean(key.sort)}/{clean(key.key)} on {clean(cluster)}"
    if not versions:
        return f"No snapshots of {clean(cluster)} yet.\n"
    found = turns(versions, key.sort)
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


_Second = Annotated[Second, Field(description="UTC, ISO 8601.")]


@dataclass(frozen=True, slots=True)
class TurnDocument:
    """What one snapshot has otherwise than the one before it."""

    taken_at: _Second
    snapshot_id: str
    turn: Turn
    seen_before: Annotated[
        _Second | None, Field(description="When it was last read; null for the first time.")
    ]
    error: Annotated[str | None, Field(description="Why it could not be read.")]
    fields: tuple[FieldTurn, ...]


@dataclass(frozen=True, slots=True)
class TopicHistory:
    """What became of one topic of one cluster."""

    cluster: str
    topic: str
    snapshots: Annotated[int, Field(description="How many there are.")]
    history: Annotated[tuple[TurnDocument, ...], Field(description="The oldest first.")]


def describe_object_history(cluster: str, key: LiveKey, versions: Sequence[ObjectVersion]) -> TopicHistory:
    """Return the same for scripts. A topic is called by its name alone, as in earlier versions."""
    found = (
        describe_as(TurnDocument, turn, taken_at=turn.version.taken_at, snapshot_id=turn.version.snapshot_id)
        for turn in turns(versions, key.sort)
    )
    name = key.key if key.sort == TOPIC else f"{key.sort}/{key.key}"
    return TopicHistory(cluster, name, len(versions), tuple(found))


def _lines(turn: ObjectTurn, style: Style) -> Iterator[str]:
    when = style.bold(moment(turn.version.taken_at))
    yield f"{when}  {_title(turn, style)}{style.dim(f'  {clean(turn.version.snapshot_id)}')}"
    names = [_name(field) for field in turn.fields[:_SHOWN]]
    width = max(map(len, names), default=0)
    for name, field in zip(names, turn.fields, strict=False):
        yield f"  {name:<{width}}  {_values(field, style)}"
    if len(turn.fields) > _SHOWN:
        yield style.dim(f"  … and {plural(len(turn.fields) - _SHOWN, 'more field')}")
    yield ""


def _title(turn: ObjectTurn, style: Style) -> str:
    match turn.turn:
        case Turn.APPEARED:
            return style.green("first seen" if turn.seen_before is None else "appeared")
        case Turn.GONE:
            return style.red("gone")
        case Turn.UNKNOWN:
            return style.red(f"not read: {clean(turn.error or '')}")
        case Turn.CHANGED:
            return style.yellow(plural(len(turn.fields), "change"))


def _name(field: FieldTurn) -> str:
    return clean(field.name if field.name is not None else key_of(field.path))


def _values(field: FieldTurn, style: Style) -> str:
    before, after = (_show(value, field.path) for value in (field.before, field.after))
    return f"{before} {style.dim('→')} {after}"


def _show(value: JsonValue, path: str) -> str:
    """Rows of objects keep of a secret that there is one."""
    return SHOWN if value == {"secret": UNTOLD} else show(value, path)
