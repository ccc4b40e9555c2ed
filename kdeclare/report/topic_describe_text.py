"""Topics in full for people: configs, and partitions with leader, replicas and ISR."""

from collections.abc import Iterator

from kdeclare.providers.kafka.health import Condition
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.report.config_views import ResourceConfigs
from kdeclare.report.configs_text import config_table
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.table import Cell, Column, Cut, table
from kdeclare.report.topic_views import PartitionView, TopicDetail, TopicsView, TopicView
from kdeclare.report.topic_words import (
    UNKNOWN,
    WORDS,
    bytes_text,
    conditions_text,
    factors,
    legend,
    painted,
    replicas_text,
)
from kdeclare.report.values import clean, listed, plural

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
        (clean(detail.topic.name), *_row(partition, view, style))
        for detail in view.topics
        for partition in detail.partitions
    ]
    return table(_ANYWHERE, rows, width, style) if rows else iter(())


def _block(detail: TopicDetail, view: TopicsView, width: int | None, style: Style) -> Iterator[str]:
    topic = detail.topic
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
    yield from table(_PARTITION, [_row(p, view, style) for p in detail.partitions], width, style, "  ")


def _about(topic: TopicView) -> str:
    return listed(
        (
            plural(topic.partitions, "partition"),
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
