"""Render topics and configs as text, with the source of each value."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.providers.kafka.commands.views import (
    ConfigsView,
    PartitionView,
    ResourceConfigs,
    TopicDetail,
    TopicListView,
    TopicsView,
    TopicView,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, PartitionCondition, get_own_source
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
from kdeclare.report.elements.values import (
    format_count,
    format_size,
    format_value,
    join_nonempty,
    sanitize_for_terminal,
)

_SOURCE_LABELS: Mapping[ConfigSource, str] = {
    ConfigSource.TOPIC: "set on the topic",
    ConfigSource.BROKER: "set on the broker",
    ConfigSource.CLUSTER: "set for all brokers",
    ConfigSource.STATIC: "broker's properties file",
    ConfigSource.DEFAULT: "Kafka's default",
    ConfigSource.BROKER_LOGGER: "broker's logger",
    ConfigSource.GROUP: "set on the group",
    ConfigSource.CLIENT_METRICS: "set on the subscription",
    ConfigSource.UNKNOWN: "unknown",
}
_CONFIG_COLUMNS = (
    Column("KEY", elision=Elision.MIDDLE, least=20),
    Column("VALUE", elision=Elision.END),
    Column("SOURCE"),
    Column("IF UNSET", elision=Elision.END),
    Column("KAFKA'S SOURCE"),
)
_WIDE_TERMINAL = 120
"""The minimum number of terminal columns for a table that also shows Kafka's names for config sources."""


def render_configs(view: ConfigsView, width: int | None = None, style: Style = PLAIN) -> str:
    """Render the configs as text. width: the number of columns of the terminal; None for no limit."""
    blocks = (
        "".join(f"{line}\n" for line in _render_resource(item, width, style)) for item in view.resources
    )
    return "\n".join(blocks) or f"No configs to show for {sanitize_for_terminal(view.cluster)}.\n"


def render_config_table(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    """Return the lines of a table of configs. Inherited values are dimmed."""
    shows_kafka_names = width is None or width >= _WIDE_TERMINAL
    return render_table(
        _CONFIG_COLUMNS, list(_build_config_rows(item, style, shows_kafka_names)), width, style, "  "
    )


def _render_resource(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    own_count = sum(entry.source is get_own_source(item.resource) for entry in item.entries.values())
    other_count = len(item.entries) - own_count
    count_text = f"{format_count(own_count, 'key')} set" if own_count else "nothing set"
    yield (
        f"{style.bold(_format_title(item.resource))}: "
        f"{count_text}{f', {other_count:,} more' if other_count else ''}"
    )
    if item.entries:
        yield from render_config_table(item, width, style)


def _format_title(resource: ConfigResource) -> str:
    if resource.scope is ConfigScope.BROKER and not resource.name:
        return "All brokers (cluster-wide default)"
    return f"{resource.scope.noun.capitalize()} {sanitize_for_terminal(resource.name)}"


def _build_config_rows(
    item: ResourceConfigs, style: Style, shows_kafka_names: bool
) -> Iterable[tuple[Cell, ...]]:
    own_source = get_own_source(item.resource)
    for key, entry in sorted(item.entries.items()):
        cells = (
            sanitize_for_terminal(key),
            SENSITIVE_MASK if entry.sensitive else format_value(entry.value, key),
            _SOURCE_LABELS[entry.source],
            "" if entry.beneath is None else format_value(entry.beneath, key),
            entry.source.value if shows_kafka_names else "",
        )
        yield cells if entry.source is own_source else tuple(StyledCell(cell, style.dim) for cell in cells)


UNKNOWN = "?"
CONDITION_LABELS: Mapping[PartitionCondition, str] = {
    PartitionCondition.OFFLINE: "offline",
    PartitionCondition.UNDER_MIN_ISR: "under min ISR",
    PartitionCondition.UNDER_REPLICATED: "under-replicated",
    PartitionCondition.AT_MIN_ISR: "at min ISR",
    PartitionCondition.NOT_PREFERRED: "not preferred",
    PartitionCondition.MOVING: "moving",
}
_CRITICAL_CONDITIONS = (PartitionCondition.OFFLINE, PartitionCondition.UNDER_MIN_ISR)
_DEGRADED_CONDITIONS = frozenset({PartitionCondition.UNDER_REPLICATED, PartitionCondition.MOVING})
"""If a partition has one of these conditions, "at min ISR" is shown even if the user did not request it."""


def format_factors(numbers: Sequence[int]) -> str:
    """Format replication factors: ``3``, or ``2–3`` if the partitions have different replication factors."""
    return "–".join(map(str, dict.fromkeys((numbers[0], numbers[-1])))) if numbers else "0"


def format_bytes(count: int | None) -> str:
    """Format a size. None is shown as `UNKNOWN`."""
    return UNKNOWN if count is None else format_size(count)


def format_counts(counts: Mapping[PartitionCondition, int]) -> str:
    """Format counts as ``1 offline, 2 moving``. If all partitions are healthy, the result is empty."""
    listed_conditions = (c for c in CONDITION_LABELS if c is not PartitionCondition.AT_MIN_ISR)
    return join_nonempty(f"{counts[c]:,} {CONDITION_LABELS[c]}" for c in listed_conditions if counts.get(c))


def format_conditions(
    conditions: Iterable[PartitionCondition], requested: Collection[PartitionCondition] = ()
) -> str:
    """Format the conditions of a partition. Implied conditions are omitted unless requested."""
    present_conditions = set(conditions)
    implied = set()
    if PartitionCondition.OFFLINE in present_conditions:
        implied.add(PartitionCondition.UNDER_MIN_ISR)
    if present_conditions.isdisjoint(_DEGRADED_CONDITIONS):
        implied.add(PartitionCondition.AT_MIN_ISR)
    return join_nonempty(
        words
        for c, words in CONDITION_LABELS.items()
        if c in present_conditions and (c not in implied or c in requested)
    )


def explain_conditions(conditions: Collection[PartitionCondition]) -> Iterator[str]:
    """Yield explanations of conditions that are not self-explanatory."""
    if PartitionCondition.NOT_PREFERRED in conditions:
        yield "not preferred: led by a replica other than the first one, which is the preferred leader."


def paint_by_condition(text: str, conditions: Iterable[PartitionCondition], style: Style) -> Cell:
    """Color the text by the worst of the conditions."""
    present_conditions = set(conditions)
    if not present_conditions.isdisjoint(_CRITICAL_CONDITIONS):
        return StyledCell(text, style.red)
    if PartitionCondition.UNDER_REPLICATED in present_conditions:
        return StyledCell(text, style.yellow)
    return StyledCell(text, style.cyan) if PartitionCondition.MOVING in present_conditions else text


def format_replicas(partition: PartitionView) -> str:
    """Format replicas such as ``1,2,-3,+4``: broker 3 is being removed, and broker 4 is being added."""
    if not (partition.adding or partition.removing):
        return ",".join(map(str, partition.replicas))
    marks = dict.fromkeys(partition.adding, "+") | dict.fromkeys(partition.removing, "-")
    return ",".join(f"{marks.get(broker, '')}{broker}" for broker in partition.replicas)


_LIST_COLUMNS = (
    Column("TOPIC", elision=Elision.MIDDLE, least=20),
    Column("PARTITIONS", right=True),
    Column("REPLICAS", right=True),
    Column("DATA", right=True),
    Column("ON DISK", right=True),
    Column("HEALTH", elision=Elision.END),
    Column("OVERRIDES", elision=Elision.END),
)


def render_topic_list(view: TopicListView, width: int | None = None, style: Style = PLAIN) -> str:
    """Render the list of topics as text. width: the number of columns of the terminal; None for no limit."""
    return "".join(f"{line}\n" for line in _render_list_lines(view, width, style))


def render_topic_names(view: TopicListView) -> str:
    """Render the topic names, one per line."""
    return "".join(f"{sanitize_for_terminal(topic.name)}\n" for topic in view.topics)


def _render_list_lines(view: TopicListView, width: int | None, style: Style) -> Iterator[str]:
    yield _format_list_headline(view, style)
    if not view.topics:
        return
    yield ""
    rows = [_build_list_row(topic, view, style) for topic in view.topics]
    yield from render_table(_LIST_COLUMNS, rows, width, style)
    yield from _render_list_legend(view, style, is_shortened=is_table_elided(_LIST_COLUMNS, rows, width))


def _render_list_legend(view: TopicListView, style: Style, *, is_shortened: bool) -> Iterator[str]:
    lines = list(
        explain_conditions({c for topic in view.topics for c, count in topic.counts.items() if count})
    )
    if view.with_sizes:
        lines.append("DATA: leader replicas only. ON DISK: all replicas.")
    if any(topic.sizes and None in (topic.sizes.data, topic.sizes.on_disk) for topic in view.topics):
        lines.append(f"{UNKNOWN}: a broker did not respond, or a partition has no leader.")
    if is_shortened:
        lines.append(ELISION_NOTE)
    if lines:
        yield ""
    yield from map(style.dim, lines)


def _format_list_headline(view: TopicListView, style: Style) -> str:
    if not view.topics:
        return style.bold(f"No topics on {sanitize_for_terminal(view.cluster)}.")
    counts: Counter[PartitionCondition] = Counter()
    for topic in view.topics:
        counts.update(topic.counts)
    partitions = format_count(sum(topic.partition_count for topic in view.topics), "partition")
    health = format_counts(counts) or "all healthy"
    topics = format_count(len(view.topics), "topic")
    return style.bold(f"{topics} with {partitions} on {sanitize_for_terminal(view.cluster)}: {health}.")


def _build_list_row(topic: TopicView, view: TopicListView, style: Style) -> tuple[Cell, ...]:
    sizes = topic.sizes
    problems_text = format_counts(topic.counts)
    return (
        sanitize_for_terminal(topic.name),
        f"{topic.partition_count:,}",
        format_factors(topic.factors),
        format_bytes(sizes.data) if sizes else "",
        format_bytes(sizes.on_disk) if sizes else "",
        paint_by_condition(problems_text, (c for c, count in topic.counts.items() if count), style)
        if problems_text
        else "ok",
        _format_overrides(topic) if view.with_configs else "",
    )


def _format_overrides(topic: TopicView) -> str:
    if topic.overrides is None:
        return UNKNOWN
    return sanitize_for_terminal(
        ", ".join(f"{key}={entry.value}" for key, entry in sorted(topic.overrides.items()))
    )


_NO_LEADER = "none"
_PARTITION_COLUMNS = (
    Column("PARTITION", right=True),
    Column("LEADER", right=True),
    Column("REPLICAS", elision=Elision.END),
    Column("ISR", elision=Elision.END),
    Column("DATA", right=True),
    Column("STATE", elision=Elision.END),
)
_TOPIC_PARTITION_COLUMNS = (Column("TOPIC", elision=Elision.MIDDLE, least=20), *_PARTITION_COLUMNS)


def render_topics(view: TopicsView, width: int | None = None, style: Style = PLAIN) -> str:
    """Render topics as text. width: the number of columns of the terminal; None for no limit.

    If the user requested partitions with certain conditions, all partitions are shown in one table.
    Otherwise, each topic has a separate block.
    """
    if view.only:
        blocks = [[_format_match_count(view, style)], list(_render_partition_table(view, width, style))]
    elif view.overridden and not view.topics:
        blocks = [[f"No overrides on {format_count(view.of_topics, 'topic')}."]]
    elif not view.topics:
        blocks = [[f"No topics on {sanitize_for_terminal(view.cluster)}."]]
    else:
        blocks = [list(_render_topic(detail, view, width, style)) for detail in view.topics]
    blocks.append([style.dim(line) for line in _render_legend(view)])
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks if block)


def _format_match_count(view: TopicsView, style: Style) -> str:
    count = sum(len(detail.partitions) for detail in view.topics)
    condition_names = " or ".join(CONDITION_LABELS[c] for c in view.only)
    count_text = f"{count:,}" if count else "None"
    verb = "is" if count <= 1 else "are"
    total_text = f"{format_count(view.of_partitions, 'partition')} in {format_count(view.of_topics, 'topic')}"
    return style.bold(f"{count_text} of {total_text} {verb} {condition_names}.")


def _render_partition_table(view: TopicsView, width: int | None, style: Style) -> Iterator[str]:
    rows = [
        (sanitize_for_terminal(detail.name), *_build_partition_row(partition, view, style))
        for detail in view.topics
        for partition in detail.partitions
    ]
    return render_table(_TOPIC_PARTITION_COLUMNS, rows, width, style) if rows else iter(())


def _render_topic(topic: TopicDetail, view: TopicsView, width: int | None, style: Style) -> Iterator[str]:
    yield f"{style.bold(sanitize_for_terminal(topic.name))}: {_format_summary(topic)}"
    details = _format_details(topic)
    if details:
        yield style.dim(f"  {details}")
    if topic.configs is None:
        yield f"  configs: {UNKNOWN} (not readable)"
    elif topic.configs:
        resource = ConfigResource(ConfigScope.TOPIC, topic.name)
        yield ""
        yield from render_config_table(ResourceConfigs(resource, topic.configs), width, style)
    yield ""
    yield from render_table(
        _PARTITION_COLUMNS,
        [_build_partition_row(p, view, style) for p in topic.partitions],
        width,
        style,
        "  ",
    )


def _format_summary(topic: TopicView) -> str:
    return join_nonempty(
        (
            format_count(topic.partition_count, "partition"),
            f"replication factor {format_factors(topic.factors)}",
            "internal" if topic.internal else "",
        )
    )


def _format_details(topic: TopicView) -> str:
    sizes = topic.sizes
    return join_nonempty(
        (
            f"id {topic.topic_id}" if topic.topic_id else "",
            f"data {format_bytes(sizes.data)}, on disk {format_bytes(sizes.on_disk)}" if sizes else "",
        )
    )


def _build_partition_row(partition: PartitionView, view: TopicsView, style: Style) -> tuple[Cell, ...]:
    state = format_conditions(partition.conditions, view.only)
    return (
        str(partition.index),
        _NO_LEADER if partition.leader is None else str(partition.leader),
        format_replicas(partition),
        ",".join(map(str, partition.isr)),
        format_bytes(partition.data) if view.with_sizes else "",
        paint_by_condition(state, partition.conditions, style) if state else "",
    )


def _render_legend(view: TopicsView) -> Iterator[str]:
    partitions = [partition for detail in view.topics for partition in detail.partitions]
    used_conditions = {condition for partition in partitions for condition in partition.conditions}
    if not partitions:
        return
    yield "ISR: in-sync replicas as the leader sees them; without a leader, as the last leader saw them."
    if PartitionCondition.MOVING in used_conditions:
        yield "REPLICAS during a move: +4 is being added, -2 is being removed."
    yield from explain_conditions(used_conditions)
    if view.with_sizes:
        yield "DATA: leader replica only. On disk: all replicas."
        if any(partition.data is None for partition in partitions):
            yield f"{UNKNOWN}: a broker did not respond, or the partition has no leader."
