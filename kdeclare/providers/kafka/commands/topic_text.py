"""Topics and configs for people: what they are, and where each value comes from."""

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
from kdeclare.providers.kafka.live import ConfigSource, PartitionCondition
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

_WORDS: Mapping[ConfigSource, str] = {
    ConfigSource.TOPIC: "set on the topic",
    ConfigSource.BROKER: "set on the broker",
    ConfigSource.CLUSTER: "set for all brokers",
    ConfigSource.STATIC: "file of the broker",
    ConfigSource.DEFAULT: "Kafka's default",
    ConfigSource.BROKER_LOGGER: "logger of the broker",
    ConfigSource.UNKNOWN: "unknown",
}
_COLUMNS = (
    Column("KEY", elision=Elision.MIDDLE, least=20),
    Column("VALUE", elision=Elision.END),
    Column("SOURCE"),
    Column("WITHOUT IT", elision=Elision.END),
    Column("IN KAFKA'S WORDS"),
)
_WIDE = 120
"""A terminal that has room for the words of Kafka, too."""


def configs_text(view: ConfigsView, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound."""
    blocks = ("".join(f"{line}\n" for line in _resource(item, width, style)) for item in view.resources)
    return "\n".join(blocks) or f"Nothing to show of {sanitize_for_terminal(view.cluster)}.\n"


def config_table(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    """The lines of a table of keys; what is not set on the resource itself stands back."""
    words = width is None or width >= _WIDE
    return render_table(_COLUMNS, list(_rows(item, style, words)), width, style, "  ")


def _resource(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    own = sum(entry.source is _own(item.resource) for entry in item.entries.values())
    more = len(item.entries) - own
    said = f"{format_count(own, 'key')} set" if own else "nothing set"
    yield f"{style.bold(_title(item.resource))}: {said}{f', {more:,} more' if more else ''}"
    if item.entries:
        yield from config_table(item, width, style)


def _title(resource: ConfigResource) -> str:
    if resource.scope is ConfigScope.TOPIC:
        return f"Topic {sanitize_for_terminal(resource.name)}"
    return (
        f"Broker {sanitize_for_terminal(resource.name)}"
        if resource.name
        else "All brokers (cluster-wide default)"
    )


def _own(resource: ConfigResource) -> ConfigSource:
    if resource.scope is ConfigScope.TOPIC:
        return ConfigSource.TOPIC
    return ConfigSource.BROKER if resource.name else ConfigSource.CLUSTER


def _rows(item: ResourceConfigs, style: Style, words: bool) -> Iterable[tuple[Cell, ...]]:
    own = _own(item.resource)
    for key, entry in sorted(item.entries.items()):
        cells = (
            sanitize_for_terminal(key),
            SENSITIVE_MASK if entry.sensitive else format_value(entry.value, key),
            _WORDS[entry.source],
            "" if entry.beneath is None else format_value(entry.beneath, key),
            entry.source.value if words else "",
        )
        yield cells if entry.source is own else tuple(StyledCell(cell, style.dim) for cell in cells)


UNKNOWN = "?"
WORDS: Mapping[PartitionCondition, str] = {
    PartitionCondition.OFFLINE: "offline",
    PartitionCondition.UNDER_MIN_ISR: "under min ISR",
    PartitionCondition.UNDER_REPLICATED: "under-replicated",
    PartitionCondition.AT_MIN_ISR: "at min ISR",
    PartitionCondition.NOT_PREFERRED: "not preferred",
    PartitionCondition.MOVING: "moving",
}
_BAD = (PartitionCondition.OFFLINE, PartitionCondition.UNDER_MIN_ISR)
_LOST = frozenset({PartitionCondition.UNDER_REPLICATED, PartitionCondition.MOVING})
"""With one of these, to be at the minimum is worth a word; else it is how the topic was meant to be."""


def factors(numbers: Sequence[int]) -> str:
    """``3``, or ``2–3`` while partitions differ."""
    return "–".join(map(str, dict.fromkeys((numbers[0], numbers[-1])))) if numbers else "0"


def bytes_text(count: int | None) -> str:
    """A size, or that it is not known."""
    return UNKNOWN if count is None else format_size(count)


def counts_text(counts: Mapping[PartitionCondition, int]) -> str:
    """``1 offline, 2 moving``; empty where all is in order."""
    said = (c for c in WORDS if c is not PartitionCondition.AT_MIN_ISR)
    return join_nonempty(f"{counts[c]:,} {WORDS[c]}" for c in said if counts.get(c))


def conditions_text(
    conditions: Iterable[PartitionCondition], asked: Collection[PartitionCondition] = ()
) -> str:
    """What a partition is. What goes without saying is said only where it was asked for."""
    given = set(conditions)
    untold = set()
    if PartitionCondition.OFFLINE in given:
        untold.add(PartitionCondition.UNDER_MIN_ISR)
    if given.isdisjoint(_LOST):
        untold.add(PartitionCondition.AT_MIN_ISR)
    return join_nonempty(
        words for c, words in WORDS.items() if c in given and (c not in untold or c in asked)
    )


def legend(conditions: Collection[PartitionCondition]) -> Iterator[str]:
    """What words mean that do not tell it all, where they are used."""
    if PartitionCondition.NOT_PREFERRED in conditions:
        yield "not preferred: led by another replica than the first one, that is to lead."


def painted(text: str, conditions: Iterable[PartitionCondition], style: Style) -> Cell:
    """The text in the colour of the worst of it."""
    given = set(conditions)
    if not given.isdisjoint(_BAD):
        return StyledCell(text, style.red)
    if PartitionCondition.UNDER_REPLICATED in given:
        return StyledCell(text, style.yellow)
    return StyledCell(text, style.cyan) if PartitionCondition.MOVING in given else text


def replicas_text(partition: PartitionView) -> str:
    """``1,2,-3,+4``: 3 is on its way out, 4 on its way in."""
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


def topic_list_text(view: TopicListView, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound."""
    return "".join(f"{line}\n" for line in _list_lines(view, width, style))


def topic_names_text(view: TopicListView) -> str:
    """A name a line, and nothing else."""
    return "".join(f"{sanitize_for_terminal(topic.name)}\n" for topic in view.topics)


def _list_lines(view: TopicListView, width: int | None, style: Style) -> Iterator[str]:
    yield _list_headline(view, style)
    if not view.topics:
        return
    yield ""
    rows = [_list_row(topic, view, style) for topic in view.topics]
    yield from render_table(_LIST_COLUMNS, rows, width, style)
    yield from _list_legend(view, style, cut=is_table_elided(_LIST_COLUMNS, rows, width))


def _list_legend(view: TopicListView, style: Style, *, cut: bool) -> Iterator[str]:
    lines = list(legend({c for topic in view.topics for c, count in topic.counts.items() if count}))
    if view.with_sizes:
        lines.append("DATA: the replicas of the leaders. ON DISK: all replicas.")
    if any(topic.sizes and None in (topic.sizes.data, topic.sizes.on_disk) for topic in view.topics):
        lines.append(f"{UNKNOWN}: a broker did not answer, or a partition has no leader.")
    if cut:
        lines.append(ELISION_NOTE)
    if lines:
        yield ""
    yield from map(style.dim, lines)


def _list_headline(view: TopicListView, style: Style) -> str:
    if not view.topics:
        return style.bold(f"No topics on {sanitize_for_terminal(view.cluster)}.")
    counts: Counter[PartitionCondition] = Counter()
    for topic in view.topics:
        counts.update(topic.counts)
    partitions = format_count(sum(topic.partition_count for topic in view.topics), "partition")
    health = counts_text(counts) or "all in order"
    topics = format_count(len(view.topics), "topic")
    return style.bold(f"{topics} with {partitions} on {sanitize_for_terminal(view.cluster)}: {health}.")


def _list_row(topic: TopicView, view: TopicListView, style: Style) -> tuple[Cell, ...]:
    sizes = topic.sizes
    troubles = counts_text(topic.counts)
    return (
        sanitize_for_terminal(topic.name),
        f"{topic.partition_count:,}",
        factors(topic.factors),
        bytes_text(sizes.data) if sizes else "",
        bytes_text(sizes.on_disk) if sizes else "",
        painted(troubles, (c for c, count in topic.counts.items() if count), style) if troubles else "ok",
        _list_overrides(topic) if view.with_configs else "",
    )


def _list_overrides(topic: TopicView) -> str:
    if topic.overrides is None:
        return UNKNOWN
    return sanitize_for_terminal(
        ", ".join(f"{key}={entry.value}" for key, entry in sorted(topic.overrides.items()))
    )


_NO_LEADER = "none"
_PARTITION = (
    Column("PARTITION", right=True),
    Column("LEADER", right=True),
    Column("REPLICAS", elision=Elision.END),
    Column("ISR", elision=Elision.END),
    Column("DATA", right=True),
    Column("STATE", elision=Elision.END),
)
_ANYWHERE = (Column("TOPIC", elision=Elision.MIDDLE, least=20), *_PARTITION)


def topics_text(view: TopicsView, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound.

    Where partitions of some sort are asked for, they are one table; else each topic is a block.
    """
    if view.only:
        blocks = [[_found(view, style)], list(_together(view, width, style))]
    elif view.overridden and not view.topics:
        blocks = [[f"None of {format_count(view.of_topics, 'topic')} has overrides."]]
    elif not view.topics:
        blocks = [[f"No topics on {sanitize_for_terminal(view.cluster)}."]]
    else:
        blocks = [list(_block(detail, view, width, style)) for detail in view.topics]
    blocks.append([style.dim(line) for line in _legend(view)])
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks if block)


def _found(view: TopicsView, style: Style) -> str:
    count = sum(len(detail.partitions) for detail in view.topics)
    what = " or ".join(WORDS[c] for c in view.only)
    some = f"{count:,}" if count else "None"
    verb = "is" if count <= 1 else "are"
    of = f"{format_count(view.of_partitions, 'partition')} in {format_count(view.of_topics, 'topic')}"
    return style.bold(f"{some} of {of} {verb} {what}.")


def _together(view: TopicsView, width: int | None, style: Style) -> Iterator[str]:
    rows = [
        (sanitize_for_terminal(detail.name), *_row(partition, view, style))
        for detail in view.topics
        for partition in detail.partitions
    ]
    return render_table(_ANYWHERE, rows, width, style) if rows else iter(())


def _block(topic: TopicDetail, view: TopicsView, width: int | None, style: Style) -> Iterator[str]:
    yield f"{style.bold(sanitize_for_terminal(topic.name))}: {_about(topic)}"
    more = _more(topic)
    if more:
        yield style.dim(f"  {more}")
    if topic.configs is None:
        yield f"  configs: {UNKNOWN} (they cannot be read)"
    elif topic.configs:
        resource = ConfigResource(ConfigScope.TOPIC, topic.name)
        yield ""
        yield from config_table(ResourceConfigs(resource, topic.configs), width, style)
    yield ""
    yield from render_table(_PARTITION, [_row(p, view, style) for p in topic.partitions], width, style, "  ")


def _about(topic: TopicView) -> str:
    return join_nonempty(
        (
            format_count(topic.partition_count, "partition"),
            f"replication factor {factors(topic.factors)}",
            "internal" if topic.internal else "",
        )
    )


def _more(topic: TopicView) -> str:
    sizes = topic.sizes
    return join_nonempty(
        (
            f"id {topic.topic_id}" if topic.topic_id else "",
            f"data {bytes_text(sizes.data)}, on disk {bytes_text(sizes.on_disk)}" if sizes else "",
        )
    )


def _row(partition: PartitionView, view: TopicsView, style: Style) -> tuple[Cell, ...]:
    state = conditions_text(partition.conditions, view.only)
    return (
        str(partition.index),
        _NO_LEADER if partition.leader is None else str(partition.leader),
        replicas_text(partition),
        ",".join(map(str, partition.isr)),
        bytes_text(partition.data) if view.with_sizes else "",
        painted(state, partition.conditions, style) if state else "",
    )


def _legend(view: TopicsView) -> Iterator[str]:
    """What the signs and words mean that were used."""
    partitions = [partition for detail in view.topics for partition in detail.partitions]
    used = {condition for partition in partitions for condition in partition.conditions}
    if not partitions:
        return
    yield "ISR: in sync as the leader sees it; without one, as the last leader saw it."
    if PartitionCondition.MOVING in used:
        yield "REPLICAS of a move: +4 is being added, -2 is being removed."
    yield from legend(used)
    if view.with_sizes:
        yield "DATA: the replica of the leader. On disk: all replicas."
        if any(partition.data is None for partition in partitions):
            yield f"{UNKNOWN}: a broker did not answer, or the partition has no leader."
