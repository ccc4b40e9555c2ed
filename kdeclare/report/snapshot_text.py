"""What `fleet snapshot` says when it is done."""

from kdeclare.fleet.snapshots import SnapshotCluster, SnapshotRecord
from kdeclare.report.history_text import moment
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, duration, plural

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
        resources = sum(cluster.resources for cluster in record.clusters)
        head = f"Read {of}: {plural(topics, 'topic')}, {plural(resources, 'resource')}."
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
