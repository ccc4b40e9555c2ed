"""Topics and configs for people: what they are, and where each value comes from."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kdeclare.core.secrets.secret_refs import SHOWN
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
from kdeclare.providers.kafka.live import Condition, ConfigSource
from kdeclare.report.elements.terminal import (
    PLAIN,
    SHORTENED,
    Cell,
    Column,
    Cut,
    Painted,
    Style,
    is_cut,
    table,
)
from kdeclare.report.elements.values import clean, listed, plural, show, size

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
    Column("KEY", cut=Cut.MIDDLE, least=20),
    Column("VALUE", cut=Cut.END),
    Column("SOURCE"),
    Column("WITHOUT IT", cut=Cut.END),
    Column("IN KAFKA'S WORDS"),
)
_WIDE = 120
"""A terminal that has room for the words of Kafka, too."""


def configs_text(view: ConfigsView, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound."""
    blocks = ("".join(f"{line}\n" for line in _resource(item, width, style)) for item in view.resources)
    return "\n".join(blocks) or f"Nothing to show of {clean(view.cluster)}.\n"


def config_table(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    """The lines of a table of keys; what is not set on the resource itself stands back."""
    words = width is None or width >= _WIDE
    return table(_COLUMNS, list(_rows(item, style, words)), width, style, "  ")


def _resource(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    own = sum(entry.source is _own(item.resource) for entry in item.entries.values())
    more = len(item.entries) - own
    said = f"{plural(own, 'key')} set" if own else "nothing set"
    yield f"{style.bold(_title(item.resource))}: {said}{f', {more:,} more' if more else ''}"
    if item.entries:
        yield from config_table(item, width, style)


def _title(resource: ConfigResource) -> str:
    if resource.scope is ConfigScope.TOPIC:
        return f"Topic {clean(resource.name)}"
    return f"Broker {clean(resource.name)}" if resource.name else "All brokers (cluster-wide default)"


def _own(resource: ConfigResource) -> ConfigSource:
    if resource.scope is ConfigScope.TOPIC:
        return ConfigSource.TOPIC
    return ConfigSource.BROKER if resource.name else ConfigSource.CLUSTER


def _rows(item: ResourceConfigs, style: Style, words: bool) -> Iterable[tuple[Cell, ...]]:
    own = _own(item.resource)
    for key, entry in sorted(item.entries.items()):
        cells = (
            clean(key),
            SHOWN if entry.sensitive else show(entry.value, key),
            _WORDS[entry.source],
            "" if entry.beneath is None else show(entry.beneath, key),
            entry.source.value if words else "",
        )
        yield cells if entry.source is own else tuple(Painted(cell, style.dim) for cell in cells)


UNKNOWN = "?"
WORDS: Mapping[Condition, str] = {
    Condition.OFFLINE: "offline",
    Condition.UNDER_MIN_ISR: "under min ISR",
    Condition.UNDER_REPLICATED: "under-replicated",
    Condition.AT_MIN_ISR: "at min ISR",
    Condition.NOT_PREFERRED: "not preferred",
    Condition.MOVING: "moving",
}
_BAD = (Condition.OFFLINE, Condition.UNDER_MIN_ISR)
_LOST = frozenset({Condition.UNDER_REPLICATED, Condition.MOVING})
"""With one of these, to be at the minimum is worth a word; else it is how the topic was meant to be."""


def factors(numbers: Sequence[int]) -> str:
    """``3``, or ``2–3`` while partitions differ."""
    return "–".join(map(str, dict.fromkeys((numbers[0], numbers[-1])))) if numbers else "0"


def bytes_text(count: int | None) -> str:
    """A size, or that it is not known."""
    return UNKNOWN if count is None else size(count)


def counts_text(counts: Mapping[Condition, int]) -> str:
    """``1 offline, 2 moving``; empty where all is in order."""
    said = (c for c in WORDS if c is not Condition.AT_MIN_ISR)
    return listed(f"{counts[c]:,} {WORDS[c]}" for c in said if counts.get(c))


def conditions_text(conditions: Iterable[Condition], asked: Collection[Condition] = ()) -> str:
    """What a partition is. What goes without saying is said only where it was asked for."""
    given = set(conditions)
    untold = set()
    if Condition.OFFLINE in given:
        untold.add(Condition.UNDER_MIN_ISR)
    if given.isdisjoint(_LOST):
        untold.add(Condition.AT_MIN_ISR)
    return listed(words for c, words in WORDS.items() if c in given and (c not in untold or c in asked))


def legend(conditions: Collection[Condition]) -> Iterator[str]:
    """What words mean that do not tell it all, where they are used."""
    if Condition.NOT_PREFERRED in conditions:
        yield "not preferred: led by another replica than the first one, that is to lead."


def painted(text: str, conditions: Iterable[Condition], style: Style) -> Cell:
    """The text in the colour of the worst of it."""
    given = set(conditions)
    if not given.isdisjoint(_BAD):
        return Painted(text, style.red)
    if Condition.UNDER_REPLICATED in given:
        return Painted(text, style.yellow)
    return Painted(text, style.cyan) if Condition.MOVING in given else text


def replicas_text(partition: PartitionView) -> str:
    """``1,2,-3,+4``: 3 is on its way out, 4 on its way in."""
    if not (partition.adding or partition.removing):
        return ",".join(map(str, partition.replicas))
    marks = dict.fromkeys(partition.adding, "+") | dict.fromkeys(partition.removing, "-")
    return ",".join(f"{marks.get(broker, '')}{broker}" for broker in partition.replicas)


_LIST_COLUMNS = (
    Column("TOPIC", cut=Cut.MIDDLE, least=20),
    Column("PARTITIONS", right=True),
    Column("REPLICAS", right=True),
    Column("DATA", right=True),
    Column("ON DISK", right=True),
    Column("HEALTH", cut=Cut.END),
    Column("OVERRIDES", cut=Cut.END),
)


def topic_list_text(view: TopicListView, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound."""
    return "".join(f"{line}\n" for line in _list_lines(view, width, style))


def topic_names_text(view: TopicListView) -> str:
    """A name a line, and nothing else."""
    return "".join(f"{clean(topic.name)}\n" for topic in view.topics)


def _list_lines(view: TopicListView, width: int | None, style: Style) -> Iterator[str]:
    yield _list_headline(view, style)
    if not view.topics:
        return
    yield ""
    rows = [_list_row(topic, view, style) for topic in view.topics]
    yield from table(_LIST_COLUMNS, rows, width, style)
    yield from _list_legend(view, style, cut=is_cut(_LIST_COLUMNS, rows, width))


def _list_legend(view: TopicListView, style: Style, *, cut: bool) -> Iterator[str]:
    lines = list(legend({c for topic in view.topics for c, count in topic.counts.items() if count}))
    if view.with_sizes:
        lines.append("DATA: the replicas of the leaders. ON DISK: all replicas.")
    if any(topic.sizes and None in (topic.sizes.data, topic.sizes.on_disk) for topic in view.topics):
        lines.append(f"{UNKNOWN}: a broker did not answer, or a partition has no leader.")
    if cut:
        lines.append(SHORTENED)
    if lines:
        yield ""
    yield from map(style.dim, lines)


def _list_headline(view: TopicListView, style: Style) -> str:
    if not view.topics:
        return style.bold(f"No topics on {clean(view.cluster)}.")
    counts: Counter[Condition] = Counter()
    for topic in view.topics:
        counts.update(topic.counts)
    partitions = plural(sum(topic.partition_count for topic in view.topics), "partition")
    health = counts_text(counts) or "all in order"
    topics = plural(len(view.topics), "topic")
    return style.bold(f"{topics} with {partitions} on {clean(view.cluster)}: {health}.")


def _list_row(topic: TopicView, view: TopicListView, style: Style) -> tuple[Cell, ...]:
    sizes = topic.sizes
    troubles = counts_text(topic.counts)
    return (
        clean(topic.name),
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
    return clean(", ".join(f"{key}={entry.value}" for key, entry in sorted(topic.overrides.items())))


_NO_LEADER = "none"
_PARTITION = (
    Column("PARTITION", right=True),
    Column("LEADER", right=True),
    Column("REPLICAS", cut=Cut.END),
    Column("ISR", cut=Cut.END),
    Column("DATA", right=True),
    Column("STATE", cut=Cut.END),
)
_ANYWHERE = (Column("TOPIC", cut=Cut.MIDDLE, least=20), *_PARTITION)


def topics_text(view: TopicsView, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound.

    Where partitions of some sort are asked for, they are one table; else each topic is a block.
    """
    if view.only:
        blocks = [[_found(view, style)], list(_together(view, width, style))]
    elif view.overridden and not view.topics:
        blocks = [[f"None of {plural(view.of_topics, 'topic')} has overrides."]]
    elif not view.topics:
        blocks = [[f"No topics on {clean(view.cluster)}."]]
    else:
        blocks = [list(_block(detail, view, width, style)) for detail in view.topics]
    blocks.append([style.dim(line) for line in _legend(view)])
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks if block)


def _found(view: TopicsView, style: Style) -> str:
    count = sum(len(detail.partitions) for detail in view.topics)
    what = " or ".join(WORDS[c] for c in view.only)
    some = f"{count:,}" if count else "None"
    verb = "is" if count <= 1 else "are"
    of = f"{plural(view.of_partitions, 'partition')} in {plural(view.of_topics, 'topic')}"
    return style.bold(f"{some} of {of} {verb} {what}.")


def _together(view: TopicsView, width: int | None, style: Style) -> Iterator[str]:
    rows = [
        (clean(detail.name), *_row(partition, view, style))
        for detail in view.topics
        for partition in detail.partitions
    ]
    return table(_ANYWHERE, rows, width, style) if rows else iter(())


def _block(topic: TopicDetail, view: TopicsView, width: int | None, style: Style) -> Iterator[str]:
    yield f"{style.bold(clean(topic.name))}: {_about(topic)}"
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
    yield from table(_PARTITION, [_row(p, view, style) for p in topic.partitions], width, style, "  ")


def _about(topic: TopicView) -> str:
    return listed(
        (
            plural(topic.partition_count, "partition"),
            f"replication factor {factors(topic.factors)}",
            "internal" if topic.internal else "",
        )
    )


def _more(topic: TopicView) -> str:
    sizes = topic.sizes
    return listed(
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
    if Condition.MOVING in used:
        yield "REPLICAS of a move: +4 is being added, -2 is being removed."
    yield from legend(used)
    if view.with_sizes:
        yield "DATA: the replica of the leader. On disk: all replicas."
        if any(partition.data is None for partition in partitions):
            yield f"{UNKNOWN}: a broker did not answer, or the partition has no leader."
