"""Topics for people: a line each."""

from collections import Counter
from collections.abc import Iterator

from kdeclare.providers.kafka.health import Condition
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.table import SHORTENED, Cell, Column, Cut, is_cut, table
from kdeclare.report.topic_views import TopicListView, TopicView
from kdeclare.report.topic_words import UNKNOWN, bytes_text, counts_text, factors, legend, painted
from kdeclare.report.values import clean, plural

_COLUMNS = (
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
    return "".join(f"{line}\n" for line in _lines(view, width, style))


def topic_names_text(view: TopicListView) -> str:
    """A name a line, and nothing else."""
    return "".join(f"{clean(topic.name)}\n" for topic in view.topics)


def _lines(view: TopicListView, width: int | None, style: Style) -> Iterator[str]:
    yield _headline(view, style)
    if not view.topics:
        return
    yield ""
    rows = [_row(topic, view, style) for topic in view.topics]
    yield from table(_COLUMNS, rows, width, style)
    yield from _legend(view, style, cut=is_cut(_COLUMNS, rows, width))


def _legend(view: TopicListView, style: Style, *, cut: bool) -> Iterator[str]:
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


def _headline(view: TopicListView, style: Style) -> str:
    if not view.topics:
        return style.bold(f"No topics on {clean(view.cluster)}.")
    counts: Counter[Condition] = Counter()
    for topic in view.topics:
        counts.update(topic.counts)
    partitions = plural(sum(topic.partitions for topic in view.topics), "partition")
    health = counts_text(counts) or "all in order"
    topics = plural(len(view.topics), "topic")
    return style.bold(f"{topics} with {partitions} on {clean(view.cluster)}: {health}.")


def _row(topic: TopicView, view: TopicListView, style: Style) -> tuple[Cell, ...]:
    sizes = topic.sizes
    troubles = counts_text(topic.counts)
    return (
        clean(topic.name),
        f"{topic.partitions:,}",
        factors(topic.factors),
        bytes_text(sizes.data) if sizes else "",
        bytes_text(sizes.on_disk) if sizes else "",
        painted(troubles, (c for c, count in topic.counts.items() if count), style) if troubles else "ok",
        _overrides(topic) if view.with_configs else "",
    )


def _overrides(topic: TopicView) -> str:
    if topic.overrides is None:
        return UNKNOWN
    return clean(", ".join(f"{key}={entry.value}" for key, entry in sorted(topic.overrides.items())))
