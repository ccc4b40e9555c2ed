"""Render the usage of topics as text: a table for many topics, and details for one topic."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from kdeclare.core.units import TIMES, format_count, format_in_units, format_names, format_size
from kdeclare.providers.kafka.commands.usage.usage_views import GroupUsageView, TopicUsageView, UsageView
from kdeclare.providers.kafka.impact.wording import format_record_time
from kdeclare.report.elements.terminal import (
    ELISION_NOTE,
    PLAIN,
    Cell,
    Column,
    Elision,
    Style,
    StyledCell,
    is_table_elided,
    render_table,
)
from kdeclare.report.elements.values import join_nonempty, sanitize_for_terminal

UNKNOWN = "?"
"""The text for a value that could not be determined."""
_NOTHING = "-"
_MAX_UNDETERMINED = 20
_WIDE_TERMINAL = 100
"""The minimum number of terminal columns for a table that also shows partitions and purposes."""
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_TOPIC_COLUMNS = (
    Column("TOPIC", elision=Elision.MIDDLE, least=14),
    Column("PARTITIONS", right=True),
    Column("RECORDS", right=True),
    Column("SIZE", right=True),
    Column("NEWEST", right=True),
    Column("PRODUCERS", right=True),
    Column("GROUPS", elision=Elision.END, least=10),
    Column("PURPOSE", elision=Elision.END),
)
_GROUP_COLUMNS = (
    Column("GROUP", elision=Elision.MIDDLE, least=20),
    Column("STATE"),
    Column("MEMBERS", right=True),
    Column("UNREAD", right=True),
)


def render_usage(
    view: UsageView, width: int | None = None, style: Style = PLAIN, *, has_details: bool = False
) -> str:
    """Render the usage of topics. width: columns of the terminal; None for no limit.

    has_details: whether to show the groups in a separate table if there is only one topic.
    """
    if has_details and len(view.topics) == 1:
        lines = _render_details(view.topics[0], view, width, style)
    else:
        lines = _render_table(view, width, style)
    return "".join(f"{line}\n" for line in lines)


def format_age(at_ms: int, now: datetime) -> str:
    """Format the age of a record.

    Return the timestamp instead if it is in the future or is not a date.
    """
    age_ms = int(now.timestamp() * 1000) - at_ms
    if age_ms < -_MINUTE_MS:
        return format_record_time(at_ms)
    for unit_ms, unit in ((_DAY_MS, "d"), (_HOUR_MS, "h"), (_MINUTE_MS, "min")):
        if age_ms >= (2 * unit_ms if unit == "d" else unit_ms):
            return f"{age_ms // unit_ms:,} {unit} ago"
    return "now"


def _render_table(view: UsageView, width: int | None, style: Style) -> Iterator[str]:
    yield from _render_headline(view, style)
    if view.topics:
        yield ""
        is_wide = width is None or width >= _WIDE_TERMINAL
        rows = [_build_row(topic, view, style, is_wide=is_wide) for topic in view.topics]
        yield from render_table(_TOPIC_COLUMNS, rows, width, style)
        yield ""
        is_elided = is_table_elided(_TOPIC_COLUMNS, rows, width)
        yield from map(style.dim, _list_legend(view, is_elided=is_elided))
    yield from _render_undetermined(view, style)


def _render_headline(view: UsageView, style: Style) -> Iterator[str]:
    cluster = sanitize_for_terminal(view.cluster)
    if not view.of_topics:
        yield style.bold(f"No topics on {cluster}.")
        return
    topics = f"{format_count(view.of_topics, 'topic')} on {cluster}"
    if view.unused_for_s is None:
        readers = sum(any(group.members for group in topic.groups or ()) for topic in view.topics)
        writers = sum(bool(topic.active_producers) for topic in view.topics)
        yield style.bold(f"{topics}: {readers:,} with active consumers, {writers:,} with active producers.")
        return
    verb = "is" if 1 in (len(view.topics), view.of_topics) else "are"
    age = format_in_units(int(view.unused_for_s * 1000), TIMES) or "0 s"
    criteria = f"no members, no active producers, no records newer than {age}"
    yield style.bold(f"{len(view.topics):,} of {topics} {verb} unused ({criteria}).")
    if view.topics and (view.unknown_groups or not view.all_groups_visible):
        unknown = format_count(len(view.unknown_groups), "group")
        hidden = "" if view.all_groups_visible else "groups that kdeclare is not permitted to see"
        nouns = " and ".join(filter(None, (unknown if view.unknown_groups else "", hidden)))
        objects = "this topic" if len(view.topics) == 1 else "some of these topics"
        yield style.yellow(f"However, {nouns} might be reading {objects} (see the warnings).")
    if view.topics:
        records = sum(topic.records or 0 for topic in view.topics)
        at_least = "at least " if any(topic.records is None for topic in view.topics) else ""
        sizes = [topic.bytes for topic in view.topics]
        size = "" if None in sizes else f" ({format_size(sum(filter(None, sizes)))})"
        pronoun = "It holds" if len(view.topics) == 1 else "They hold"
        yield f"{pronoun} {at_least}{format_count(records, 'record')}{size}."


def _build_row(topic: TopicUsageView, view: UsageView, style: Style, *, is_wide: bool) -> tuple[Cell, ...]:
    return (
        sanitize_for_terminal(topic.name),
        f"{topic.partition_count:,}" if is_wide else "",
        _format_number(topic.records),
        UNKNOWN if topic.bytes is None else format_size(topic.bytes),
        _format_newest(topic, view),
        _format_number(topic.active_producers),
        _build_groups_cell(topic, style),
        "" if topic.purpose is None or not is_wide else topic.purpose.label,
    )


def _format_number(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _format_newest(topic: TopicUsageView, view: UsageView) -> str:
    if topic.newest_record_ms is not None:
        return format_age(topic.newest_record_ms, view.read_at)
    return UNKNOWN if topic.is_unknown("newest_record_ms") else _NOTHING


def _build_groups_cell(topic: TopicUsageView, style: Style) -> Cell:
    if topic.groups is None:
        return UNKNOWN
    if not topic.groups:
        return _NOTHING
    text = sanitize_for_terminal(format_names([_format_group(group) for group in topic.groups]))
    return text if any(group.members != 0 for group in topic.groups) else StyledCell(text, style.dim)


def _format_group(group: GroupUsageView) -> str:
    """Format a group as ``billing (3 members, 12,000 unread)``."""
    members = "? members" if group.members is None else format_count(group.members, "member")
    unread = f"{_format_number(group.unread)} unread"
    notes = join_nonempty(["" if group.members == 0 else members, "" if group.unread == 0 else unread])
    return f"{group.id} ({notes})" if notes else group.id


def _list_legend(view: UsageView, *, is_elided: bool) -> Iterator[str]:
    yield "NEWEST: age of the newest record."
    yield "PRODUCERS: those that wrote within the last hour, as far as brokers know."
    if any(topic.unknown for topic in view.topics):
        yield f"{UNKNOWN}: could not be determined; the warnings name the reasons."
    if is_elided:
        yield ELISION_NOTE


def _render_undetermined(view: UsageView, style: Style) -> Iterator[str]:
    if not view.undetermined:
        return
    topics = format_count(len(view.undetermined), "topic")
    verb = "is" if len(view.undetermined) == 1 else "are"
    yield ""
    yield style.yellow(f"kdeclare could not determine whether {topics} {verb} unused:")
    for item in view.undetermined[:_MAX_UNDETERMINED]:
        yield f"  {sanitize_for_terminal(item.name)}: {sanitize_for_terminal(item.reason)}"
    omitted_count = len(view.undetermined) - _MAX_UNDETERMINED
    if omitted_count > 0:
        yield f"  … and {omitted_count:,} more"


def _render_details(topic: TopicUsageView, view: UsageView, width: int | None, style: Style) -> Iterator[str]:
    rows = list(_list_details(topic, view))
    yield f"{style.bold(sanitize_for_terminal(topic.name))} on {sanitize_for_terminal(view.cluster)}"
    label_width = max(len(label) for label, _ in rows)
    for label, value in rows:
        yield f"  {style.dim(label.ljust(label_width))}  {value}"
    if topic.groups:
        yield ""
        group_rows = [_build_group_row(group, style) for group in topic.groups]
        yield from render_table(_GROUP_COLUMNS, group_rows, width, style, "  ")
        if is_table_elided(_GROUP_COLUMNS, group_rows, None if width is None else width - 2):
            yield style.dim(f"  {ELISION_NOTE}")


def _list_details(topic: TopicUsageView, view: UsageView) -> Iterator[tuple[str, str]]:
    if topic.purpose is not None:
        yield "purpose", f"data of {topic.purpose.label}, according to the name of the topic"
    yield "partitions", f"{topic.partition_count:,}"
    size = "unknown size" if topic.bytes is None else format_size(topic.bytes)
    yield "records", "unknown" if topic.records is None else f"{topic.records:,} ({size})"
    yield "newest record", _describe_newest(topic, view)
    yield "producers", _describe_producers(topic.active_producers)
    yield "groups", _describe_groups(topic.groups, is_complete=view.all_groups_visible)
    for item in topic.unknown:
        yield "unknown", f"{_join_fields(item.fields)}: {sanitize_for_terminal(item.reason)}"


def _join_fields(names: Sequence[str]) -> str:
    return ", ".join(name.removesuffix("_ms").replace("_", " ") for name in names)


def _describe_newest(topic: TopicUsageView, view: UsageView) -> str:
    if topic.newest_record_ms is None:
        return "unknown" if topic.is_unknown("newest_record_ms") else "none"
    time, age = format_record_time(topic.newest_record_ms), format_age(topic.newest_record_ms, view.read_at)
    return time if age == time else f"{time} ({age})"


def _describe_producers(count: int | None) -> str:
    if count is None:
        return "unknown"
    if not count:
        return "none within the last hour, as far as brokers know"
    return f"{count:,} wrote within the last hour"


def _describe_groups(groups: Sequence[GroupUsageView] | None, *, is_complete: bool) -> str:
    if groups is None:
        return "unknown"
    if not groups:
        return "none" if is_complete else "none that kdeclare is permitted to describe"
    with_members = sum(group.members != 0 for group in groups)
    return f"{len(groups):,}, {with_members:,} with members"


def _build_group_row(group: GroupUsageView, style: Style) -> tuple[Cell, ...]:
    unread = _format_number(group.unread)
    return (
        sanitize_for_terminal(group.id),
        sanitize_for_terminal(group.state),
        _format_number(group.members),
        StyledCell(unread, style.yellow) if group.unread else unread,
    )
