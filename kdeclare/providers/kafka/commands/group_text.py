"""Render groups as text."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kdeclare.providers.kafka.commands.group_views import GroupDetail, GroupListView, GroupsView, GroupView
from kdeclare.providers.kafka.consumer_group.group import GroupType
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
from kdeclare.report.elements.values import format_count, join_nonempty, sanitize_for_terminal

UNKNOWN = "-"
"""The text for a value that does not exist, as in Kafka's tool."""
_LIST_COLUMNS = (
    Column("GROUP", elision=Elision.MIDDLE, least=20),
    Column("TYPE"),
    Column("PROTOCOL"),
    Column("STATE"),
)
_OFFSET_COLUMNS = (
    Column("TOPIC", elision=Elision.MIDDLE, least=20),
    Column("PARTITION", right=True),
    Column("COMMITTED", right=True),
    Column("LOG END", right=True),
    Column("LAG", right=True),
    Column("MEMBER", elision=Elision.MIDDLE),
)
_MEMBER_COLUMNS = (
    Column("MEMBER", elision=Elision.MIDDLE, least=20),
    Column("CLIENT", elision=Elision.END),
    Column("HOST"),
    Column("INSTANCE", elision=Elision.END),
    Column("PARTITIONS", elision=Elision.END),
)


def render_group_list(view: GroupListView, width: int | None = None, style: Style = PLAIN) -> str:
    """Render a list of groups as a table. width: columns of the terminal; None for no limit."""
    return "".join(f"{line}\n" for line in _render_list_lines(view, width, style))


def render_group_names(view: GroupListView) -> str:
    """Return only the ids of the groups, one per line."""
    return "".join(f"{sanitize_for_terminal(group.id)}\n" for group in view.groups)


def _render_list_lines(view: GroupListView, width: int | None, style: Style) -> Iterator[str]:
    cluster = sanitize_for_terminal(view.cluster)
    if not view.groups:
        yield f"No {'matching ' if view.is_filtered else ''}groups on {cluster}."
        return
    counts = Counter(group.type for group in view.groups)
    types = join_nonempty(f"{counts[type_]:,} {type_}" for type_ in GroupType if counts[type_])
    yield style.bold(f"{format_count(len(view.groups), 'group')} on {cluster}: {types}.")
    yield ""
    rows = [_build_list_row(group) for group in view.groups]
    yield from render_table(_LIST_COLUMNS, rows, width, style)
    if is_table_elided(_LIST_COLUMNS, rows, width):
        yield style.dim(ELISION_NOTE)


def _build_list_row(group: GroupView) -> tuple[Cell, ...]:
    """Return the table row of a group.

    Only a classic group can have a protocol that differs from its type.
    """
    protocol = group.protocol if group.type is GroupType.CLASSIC else ""
    return (
        sanitize_for_terminal(group.id),
        group.type.value,
        sanitize_for_terminal(protocol),
        sanitize_for_terminal(group.state),
    )


def render_groups(
    view: GroupsView,
    width: int | None = None,
    style: Style = PLAIN,
    *,
    offsets: bool = True,
    members: bool = False,
) -> str:
    """Render groups with their offsets or members.

    offsets, members: whether to show the committed offsets and the members of each group.
    """
    if not view.groups:
        return f"No groups on {sanitize_for_terminal(view.cluster)}.\n"
    blocks = (_render_group(group, width, style, offsets, members) for group in view.groups)
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks)


def _render_group(
    group: GroupDetail, width: int | None, style: Style, with_offsets: bool, with_members: bool
) -> Iterator[str]:
    yield f"{style.bold(sanitize_for_terminal(group.id))}: {_format_summary(group)}"
    if group.offsets is None:
        yield f"  {_explain_type(group)}"
        return
    if with_members and group.members:
        yield ""
        yield from _render_fitting(_MEMBER_COLUMNS, list(_build_member_rows(group)), width, style)
    if with_offsets and group.offsets:
        yield ""
        yield from _render_fitting(_OFFSET_COLUMNS, list(_build_offset_rows(group, style)), width, style)


def _render_fitting(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None, style: Style
) -> Iterator[str]:
    yield from render_table(columns, rows, width, style, "  ")
    if is_table_elided(columns, rows, None if width is None else width - 2):
        yield style.dim(f"  {ELISION_NOTE}")


def _format_summary(group: GroupDetail) -> str:
    lags = [row.lag for row in group.offsets or () if row.lag is not None]
    return join_nonempty(
        [
            format_type(group),
            sanitize_for_terminal(group.state),
            "" if group.members is None else format_count(len(group.members), "member"),
            f"lag of {format_count(sum(lags), 'record')}" if lags else "",
            "" if group.offsets is None or group.offsets else "no committed offsets",
        ]
    )


def format_type(group: GroupView) -> str:
    """Return the type of a group in words, such as ``share group`` or ``classic connect group``."""
    is_special = group.type is GroupType.CLASSIC and group.protocol not in ("", "consumer")
    protocol = f"{sanitize_for_terminal(group.protocol)} " if is_special else ""
    return f"{group.type} {protocol}group"


def _explain_type(group: GroupDetail) -> str:
    tools = {GroupType.SHARE: "kafka-share-groups", GroupType.STREAMS: "kafka-streams-groups"}
    tool = tools.get(group.type)
    if tool is None:
        return "This is not a group of consumers, so its offsets are not shown."
    return f"Run Kafka's {tool} to see the members and the offsets of the group."


def _build_offset_rows(group: GroupDetail, style: Style) -> Iterator[tuple[Cell, ...]]:
    for row in group.offsets or ():
        lag = UNKNOWN if row.lag is None else f"{row.lag:,}"
        yield (
            sanitize_for_terminal(row.topic),
            str(row.partition),
            UNKNOWN if row.committed is None else str(row.committed),
            UNKNOWN if row.log_end is None else str(row.log_end),
            StyledCell(lag, style.yellow) if row.lag else lag,
            "" if row.member is None else sanitize_for_terminal(row.member),
        )


def _build_member_rows(group: GroupDetail) -> Iterator[tuple[Cell, ...]]:
    for member in group.members or ():
        yield (
            sanitize_for_terminal(member.id),
            sanitize_for_terminal(member.client_id),
            sanitize_for_terminal(member.host),
            sanitize_for_terminal(member.instance_id or ""),
            sanitize_for_terminal(", ".join(member.partitions)) or UNKNOWN,
        )
