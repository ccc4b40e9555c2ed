"""Reports on snapshots: the output of ``fleet snapshot``, and the history of one object."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from kdeclare.core.documents import Second, build_document
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, UNKNOWN_HASH
from kdeclare.fleet.history.change_origins import ChangeOrigin, RunWrite, find_origins
from kdeclare.fleet.history.finding_history import FindingEpisode
from kdeclare.fleet.history.object_history import FieldTurn, ObjectTurn, ObjectVersion, Turn, list_turns
from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord
from kdeclare.manifests.policies import TOPIC
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    format_value,
    sanitize_for_terminal,
    strip_configs_prefix,
)
from kdeclare.report.fleet.audit_wording import format_object_counts
from kdeclare.report.fleet.finding_history_text import mask_episode
from kdeclare.report.run.history_text import format_time

_MAX_CLUSTERS = 20


def render_snapshot_text(record: SnapshotRecord, snapshots_folder: str, style: Style = PLAIN) -> str:
    """Render the output of ``fleet snapshot``.

    The output contains the number of objects, the path of the snapshot, and the clusters that could not be
    read, with the reasons.

    snapshots_folder: the path or URI of the snapshots, as the user typed it.
    """
    incomplete = record.incomplete
    blocks = [
        f"{_format_headline(record, style)}\n",
        "".join(f"{line}\n" for line in _render_incomplete(incomplete, style)),
        f"Snapshot {sanitize_for_terminal(record.snapshot_id)}, taken {format_time(record.taken_at)}"
        f" in {format_duration(record.seconds)}.\nWritten to "
        f"{sanitize_for_terminal(snapshots_folder)}: {sanitize_for_terminal(record.path)}\n",
    ]
    return "\n".join(block for block in blocks if block)


def _format_headline(record: SnapshotRecord, style: Style) -> str:
    cluster_count, incomplete_count = len(record.clusters), len(record.incomplete)
    fleet_clusters = f"{format_count(cluster_count, 'cluster')} of {sanitize_for_terminal(record.fleet)}"
    if not incomplete_count:
        topic_count = sum(cluster.topics for cluster in record.clusters)
        other_counts = ((o.one, o.many, o.count) for cluster in record.clusters for o in cluster.others)
        resource_count = sum(cluster.resources for cluster in record.clusters)
        sentence = (
            f"Read {fleet_clusters}: {format_object_counts(topic_count, other_counts)}, "
            f"{format_count(resource_count, 'resource')}."
        )
        return style.bold(sentence)
    resource_count = sum(cluster.resources for cluster in record.clusters)
    sentence = (
        f"Read {cluster_count - incomplete_count:,} of {fleet_clusters}: "
        f"{format_count(resource_count, 'resource')}."
    )
    return style.red(sentence)


def _render_incomplete(incomplete: tuple[SnapshotCluster, ...], style: Style) -> list[str]:
    if not incomplete:
        return []
    shown_clusters = incomplete[:_MAX_CLUSTERS]
    width = max(len(sanitize_for_terminal(cluster.name)) for cluster in shown_clusters)
    lines = [style.bold("Clusters not read, or only partially read:")]
    lines += [
        f"  {sanitize_for_terminal(cluster.name):<{width}}  {_explain_incomplete(cluster)}"
        for cluster in shown_clusters
    ]
    if len(incomplete) > _MAX_CLUSTERS:
        lines.append(style.dim(f"  … and {len(incomplete) - _MAX_CLUSTERS:,} more"))
    return lines


def _explain_incomplete(cluster: SnapshotCluster) -> str:
    if cluster.error is not None:
        return sanitize_for_terminal(cluster.error)
    return f"{format_count(cluster.failed, 'resource')} could not be read, {cluster.resources:,} were read"


_MAX_FIELDS = 60
"""The maximum number of changed fields that are listed for each snapshot."""


def render_object_history_text(
    cluster: str,
    key: LiveKey,
    versions: Sequence[ObjectVersion],
    style: Style = PLAIN,
    writes: Sequence[RunWrite] | None = None,
) -> str:
    """Render the changes to an object between consecutive snapshots as text, oldest first.

    writes: what the runs of the project changed in the object; None if this is unknown.
    """
    name = (
        f"{sanitize_for_terminal(key.sort)}/{sanitize_for_terminal(key.key)} "
        f"on {sanitize_for_terminal(cluster)}"
    )
    if not versions:
        return f"No snapshots of {sanitize_for_terminal(cluster)} yet.\n"
    history = list_turns(versions, key.sort)
    snapshot_count = format_count(len(versions), "snapshot")
    if not history:
        return f"{name}: not found in {snapshot_count}.\n"
    change_count = sum(turn.turn is Turn.CHANGED for turn in history)
    summary = f"changed {format_count(change_count, 'time')}" if change_count else "never changed"
    lines = [style.bold(f"{name}: {summary} in {snapshot_count}."), ""]
    for turn in history:
        lines += _render_turn(turn, None if writes is None else find_origins(turn, writes), style)
    last_taken_at = max(version.taken_at for version in versions)
    lines.append(style.dim(f"Last snapshot: {format_time(last_taken_at)}"))
    return "".join(f"{line}\n" for line in lines)


_Second = Annotated[Second, Field(description="UTC, ISO 8601.")]


@dataclass(frozen=True, slots=True)
class TurnDocument:
    """The changes to an object between two snapshots."""

    taken_at: _Second
    snapshot_id: str
    turn: Turn
    seen_before: Annotated[
        _Second | None,
        Field(description="When the object was previously read; null if it was not read before."),
    ]
    error: Annotated[str | None, Field(description="Why the object could not be read.")]
    fields: tuple[FieldTurn, ...]
    origins: Annotated[
        tuple[ChangeOrigin, ...] | None,
        Field(
            description="Who made the changes; empty if it cannot be determined, and null if the fleet file "
            "was not passed."
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class TopicHistory:
    """The history of one object, such as a topic, in the snapshots of a cluster."""

    cluster: str
    topic: str
    snapshots: Annotated[int, Field(description="The number of snapshots.")]
    history: Annotated[tuple[TurnDocument, ...], Field(description="The changes, oldest first.")]
    findings: Annotated[
        tuple[FindingEpisode, ...] | None,
        Field(description="The findings in all audits, oldest first; null without --audits."),
    ] = None


def build_object_history_document(
    cluster: str,
    key: LiveKey,
    versions: Sequence[ObjectVersion],
    findings: Sequence[FindingEpisode] | None = None,
    writes: Sequence[RunWrite] | None = None,
) -> TopicHistory:
    """Build the JSON document of an object's history. The name of a topic has no ``Topic/`` prefix.

    findings: the findings in all audits; None if no audits were read.
    writes: what the runs of the project changed in the object; None if this is unknown.
    """
    history = (
        build_document(
            TurnDocument,
            turn,
            taken_at=turn.version.taken_at,
            snapshot_id=turn.version.snapshot_id,
            origins=None if writes is None else find_origins(turn, writes),
        )
        for turn in list_turns(versions, key.sort)
    )
    name = key.key if key.sort == TOPIC else f"{key.sort}/{key.key}"
    episodes = None if findings is None else tuple(map(mask_episode, findings))
    return TopicHistory(cluster, name, len(versions), tuple(history), episodes)


def _render_turn(turn: ObjectTurn, origins: Sequence[ChangeOrigin] | None, style: Style) -> Iterator[str]:
    taken_at = style.bold(format_time(turn.version.taken_at))
    yield (
        f"{taken_at}  "
        f"{_format_turn_title(turn, style)}"
        f"{style.dim(f'  {sanitize_for_terminal(turn.version.snapshot_id)}')}"
    )
    names = [format_field_name(field) for field in turn.fields[:_MAX_FIELDS]]
    width = max(map(len, names), default=0)
    for name, field in zip(names, turn.fields, strict=False):
        yield f"  {name:<{width}}  {format_field_change(field, style)}"
    if len(turn.fields) > _MAX_FIELDS:
        yield style.dim(f"  … and {format_count(len(turn.fields) - _MAX_FIELDS, 'more field')}")
    for origin in origins or ():
        yield f"  {_format_origin(origin, turn, is_only=len(origins or ()) == 1)}"
    yield ""


_MAX_ORIGIN_FIELDS = 5


def _format_origin(origin: ChangeOrigin, turn: ObjectTurn, *, is_only: bool) -> str:
    """Describe which run of the project, if any, changed some fields of an object.

    is_only: whether all changes have this origin. If not, the result begins with the names of the fields.
    """
    fields = ""
    if not is_only:
        names = [format_field_name(field) for field in turn.fields if field.path in origin.fields]
        more = len(names) - _MAX_ORIGIN_FIELDS
        fields = f"{', '.join(names[:_MAX_ORIGIN_FIELDS])}{f' and {more:,} more' if more > 0 else ''}: "
    if origin.is_unknown:
        return f"{fields}origin unknown: a run of the project might have made the change"
    if origin.run_id is None:
        return f"{fields}not by a recorded run of the project"
    run = sanitize_for_terminal(origin.run_id)
    return f"{fields}by run {run} ({sanitize_for_terminal(origin.user or '')}, {format_time(origin.at)})"


def _format_turn_title(turn: ObjectTurn, style: Style) -> str:
    match turn.turn:
        case Turn.APPEARED:
            return style.green("first seen" if turn.seen_before is None else "appeared")
        case Turn.GONE:
            return style.red("gone")
        case Turn.UNKNOWN:
            return style.red(f"not read: {sanitize_for_terminal(turn.error or '')}")
        case Turn.CHANGED:
            return style.yellow(format_count(len(turn.fields), "change"))


def format_field_name(field: FieldTurn) -> str:
    """Return the name of a changed field for display."""
    return sanitize_for_terminal(field.name if field.name is not None else strip_configs_prefix(field.path))


def format_field_change(field: FieldTurn, style: Style) -> str:
    """Return the values of a changed field in the form ``before → after``."""
    before, after = (_format_value_or_mask(value, field.path) for value in (field.before, field.after))
    return f"{before} {style.dim('→')} {after}"


def _format_value_or_mask(value: JsonValue, path: str) -> str:
    """Format a value. The value of a secret is masked, because snapshots do not contain it."""
    return SENSITIVE_MASK if value == {"secret": UNKNOWN_HASH} else format_value(value, path)
