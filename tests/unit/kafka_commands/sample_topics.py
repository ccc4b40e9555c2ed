"""Sample views of topics and configs, healthy and unhealthy."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from kdeclare.core.diagnostics import warning
from kdeclare.core.documents import build_document
from kdeclare.providers.kafka.commands.views import (
    ConfigsView,
    PartitionView,
    ResourceConfigs,
    Sizes,
    TopicDetail,
    TopicListView,
    TopicsView,
    TopicView,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    Move,
    Partition,
    PartitionCondition,
    list_conditions,
)

MIB = 2**20
UNREAD = warning("configs-unknown", "Cannot read configs", "Topic 'orders': No.", subject="orders")


def _make_partition(
    index: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int | None,
    move: Move | None = None,
    sizes: tuple[int | None, ...] | None = None,
) -> PartitionView:
    return PartitionView(
        index,
        leader,
        replicas,
        isr,
        move.adding if move else (),
        move.removing if move else (),
        move.target if move else replicas,
        list_conditions(Partition(replicas, leader, isr), move, 2),
        sizes,
    )


def _make_detail(
    name: str,
    partitions: tuple[PartitionView, ...],
    configs: Mapping[str, ConfigEntry] | None,
    sizes: Sizes | None = None,
    *,
    internal: bool = False,
) -> TopicDetail:
    counts = Counter(c for p in partitions for c in p.conditions)
    factors = tuple(sorted({len(p.target) for p in partitions}))
    topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    count = len(partitions)
    return TopicDetail(name, topic_id, internal, count, factors, counts, sizes, configs, partitions)


_MIN_ISR = ConfigEntry("2", ConfigSource.CLUSTER)
_ORDERS = {
    "cleanup.policy": ConfigEntry("compact,delete", ConfigSource.TOPIC, ConfigType.LIST),
    "min.insync.replicas": _MIN_ISR,
    "retention.ms": ConfigEntry("604800000", ConfigSource.TOPIC),
}
ORDERS = _make_detail(
    "orders",
    (
        _make_partition(0, (1, 2, 3), (1, 2, 3), 1, sizes=(96 * MIB, 96 * MIB, 96 * MIB)),
        _make_partition(1, (2, 3, 1), (1, 3), 3, sizes=(90 * MIB, 97 * MIB, 97 * MIB)),
    ),
    _ORDERS,
    Sizes(193 * MIB, 572 * MIB),
)
TROUBLED = _make_detail(
    "payments.captured.by-country-and-currency.europe.v2",
    (
        _make_partition(0, (1, 2), (), None, sizes=(None, 5 * MIB)),
        _make_partition(
            1, (1, 2, 4, 3), (1, 2), 2, Move((1, 2, 4, 3), (4,), (3,)), (7 * MIB, 7 * MIB, 0, 7 * MIB)
        ),
        _make_partition(2, (2, 3), (2,), 2, sizes=(7 * MIB, MIB)),
    ),
    {"min.insync.replicas": _MIN_ISR},
    Sizes(None, None),
)
HOSTILE = _make_detail("odd\x1b[31m", (_make_partition(0, (1, 2), (1, 2), 1),), None)
INTERNAL = _make_detail(
    "__consumer_offsets",
    (_make_partition(0, (1, 2), (1, 2), 1, sizes=(0, 0)),),
    {},
    Sizes(0, 0),
    internal=True,
)
_DETAILS = (INTERNAL, ORDERS, TROUBLED)


def _build_views(*details: TopicDetail) -> tuple[TopicView, ...]:
    return tuple(build_document(TopicView, detail) for detail in details)


_TOPICS = _build_views(*_DETAILS)

LISTS: Mapping[str, TopicListView] = {
    "full": TopicListView("lab:9092", _TOPICS, with_configs=True, with_sizes=True),
    "quick": TopicListView(
        "lab:9092",
        tuple(replace(topic, sizes=None, configs=None) for topic in _TOPICS),
    ),
    "healthy": TopicListView("lab:9092", _build_views(INTERNAL)),
    "hostile": TopicListView("lab\x07", _build_views(HOSTILE), with_configs=True, diagnostics=(UNREAD,)),
    "none": TopicListView("lab:9092", ()),
}


def _filter_partitions(condition: PartitionCondition) -> TopicsView:
    left = (
        replace(d, partitions=tuple(p for p in d.partitions if condition in p.conditions)) for d in _DETAILS
    )
    return TopicsView("lab:9092", (condition,), 3, 6, tuple(d for d in left if d.partitions))


DESCRIBED: Mapping[str, TopicsView] = {
    "full": TopicsView("lab:9092", (), 3, 6, _DETAILS, with_sizes=True),
    "quick": TopicsView("lab:9092", (), 1, 2, (ORDERS,)),
    "under-replicated": _filter_partitions(PartitionCondition.UNDER_REPLICATED),
    "at-min-isr": _filter_partitions(PartitionCondition.AT_MIN_ISR),
    "no-such-partitions": TopicsView(
        "lab:9092", (PartitionCondition.OFFLINE, PartitionCondition.NOT_PREFERRED), 3, 6, ()
    ),
    "no-overrides": TopicsView("lab:9092", (), 3, 6, (), overridden=True),
    "none": TopicsView("lab:9092", (), 0, 0, ()),
    "hostile": TopicsView("lab:9092", (), 1, 1, (HOSTILE,), diagnostics=(UNREAD,)),
}

CONFIGS: Mapping[str, ConfigsView] = {
    "brokers": ConfigsView(
        "lab:9092",
        (
            ResourceConfigs(ConfigResource(ConfigScope.BROKER, ""), {}),
            ResourceConfigs(
                ConfigResource(ConfigScope.BROKER, "1"),
                {
                    "log.cleaner.threads": ConfigEntry("2", ConfigSource.BROKER, beneath="1"),
                    "log.dirs": ConfigEntry("/var/lib/kafka", ConfigSource.STATIC, read_only=True),
                    "ssl.key.password": ConfigEntry(
                        None, ConfigSource.DEFAULT, ConfigType.PASSWORD, sensitive=True
                    ),
                },
            ),
        ),
        everything=True,
    ),
    "topics": ConfigsView(
        "lab:9092",
        (
            ResourceConfigs(ConfigResource(ConfigScope.TOPIC, "orders"), _ORDERS),
            ResourceConfigs(
                ConfigResource(ConfigScope.TOPIC, "odd"),
                {
                    "leader.replication.throttled.replicas": ConfigEntry(
                        ",".join(f"{n}:{n % 3}" for n in range(60)), ConfigSource.TOPIC, ConfigType.LIST
                    ),
                    "x\x1b": ConfigEntry("\x1b[31m", ConfigSource.UNKNOWN),
                },
            ),
        ),
    ),
    "none": ConfigsView("lab:9092", ()),
}
