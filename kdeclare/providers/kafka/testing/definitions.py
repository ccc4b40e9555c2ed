"""The config keys of the in-memory brokers, as in Apache Kafka 4.3.

Sources: LogConfig, ServerTopicConfigSynonyms, DynamicBrokerConfig and KafkaConfig of 4.3.1. Broker keys that
    are not dynamic are included only if other keys use their values.
"""

from collections.abc import Mapping

from kdeclare.providers.kafka.testing.values import (
    ConfigKey,
    ValueCheck,
    ValueType,
    make_choice_check,
    make_list_check,
    make_min_check,
    make_range_check,
    make_throttled_replicas_check,
)

_MAX_LONG = str(2**63 - 1)
_MAX_INT = str(2**31 - 1)
_LEADER_REPLICAS_KEY = "leader.replication.throttled.replicas"
_FOLLOWER_REPLICAS_KEY = "follower.replication.throttled.replicas"
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _check_gzip_level(value: object) -> str | None:
    assert isinstance(value, int)
    return None if value == -1 or 1 <= value <= 9 else "Value must be between 1 and 9 or equal to -1"


_TOPIC_ROWS: tuple[tuple[str, ValueType, str | None, ValueCheck | None, tuple[str, ...]], ...] = (
    (
        "cleanup.policy",
        ValueType.LIST,
        "delete",
        make_list_check("cleanup.policy", "compact", "delete"),
        ("log.cleanup.policy",),
    ),
    ("compression.gzip.level", ValueType.INT, "-1", _check_gzip_level, ("compression.gzip.level",)),
    ("compression.lz4.level", ValueType.INT, "9", make_range_check(1, 17), ("compression.lz4.level",)),
    ("compression.type", ValueType.STRING, "producer", make_choice_check(*_CODECS), ("compression.type",)),
    (
        "compression.zstd.level",
        ValueType.INT,
        "3",
        make_range_check(-131072, 22),
        ("compression.zstd.level",),
    ),
    (
        "delete.retention.ms",
        ValueType.LONG,
        "86400000",
        make_min_check(0),
        ("log.cleaner.delete.retention.ms",),
    ),
    ("file.delete.delay.ms", ValueType.LONG, "60000", make_min_check(0), ("log.segment.delete.delay.ms",)),
    ("flush.messages", ValueType.LONG, _MAX_LONG, make_min_check(1), ("log.flush.interval.messages",)),
    (
        "flush.ms",
        ValueType.LONG,
        _MAX_LONG,
        make_min_check(0),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    (_FOLLOWER_REPLICAS_KEY, ValueType.LIST, "", make_throttled_replicas_check(_FOLLOWER_REPLICAS_KEY), ()),
    ("internal.segment.bytes", ValueType.INT, None, None, ()),
    ("index.interval.bytes", ValueType.INT, "4096", make_min_check(0), ("log.index.interval.bytes",)),
    (_LEADER_REPLICAS_KEY, ValueType.LIST, "", make_throttled_replicas_check(_LEADER_REPLICAS_KEY), ()),
    ("local.retention.bytes", ValueType.LONG, "-2", make_min_check(-2), ("log.local.retention.bytes",)),
    ("local.retention.ms", ValueType.LONG, "-2", make_min_check(-2), ("log.local.retention.ms",)),
    (
        "max.compaction.lag.ms",
        ValueType.LONG,
        _MAX_LONG,
        make_min_check(1),
        ("log.cleaner.max.compaction.lag.ms",),
    ),
    ("max.message.bytes", ValueType.INT, "1048588", make_min_check(0), ("message.max.bytes",)),
    (
        "message.timestamp.after.max.ms",
        ValueType.LONG,
        "3600000",
        make_min_check(0),
        ("log.message.timestamp.after.max.ms",),
    ),
    (
        "message.timestamp.before.max.ms",
        ValueType.LONG,
        _MAX_LONG,
        make_min_check(0),
        ("log.message.timestamp.before.max.ms",),
    ),
    (
        "message.timestamp.type",
        ValueType.STRING,
        "CreateTime",
        make_choice_check("CreateTime", "LogAppendTime"),
        ("log.message.timestamp.type",),
    ),
    (
        "min.cleanable.dirty.ratio",
        ValueType.DOUBLE,
        "0.5",
        make_range_check(0, 1),
        ("log.cleaner.min.cleanable.ratio",),
    ),
    ("min.compaction.lag.ms", ValueType.LONG, "0", make_min_check(0), ("log.cleaner.min.compaction.lag.ms",)),
    ("min.insync.replicas", ValueType.INT, "1", make_min_check(1), ("min.insync.replicas",)),
    ("preallocate", ValueType.BOOLEAN, "false", None, ("log.preallocate",)),
    ("remote.log.copy.disable", ValueType.BOOLEAN, "false", None, ()),
    ("remote.log.delete.on.disable", ValueType.BOOLEAN, "false", None, ()),
    ("remote.storage.enable", ValueType.BOOLEAN, "false", None, ()),
    ("retention.bytes", ValueType.LONG, "-1", None, ("log.retention.bytes",)),
    (
        "retention.ms",
        ValueType.LONG,
        "604800000",
        make_min_check(-1),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    ("segment.bytes", ValueType.INT, "1073741824", make_min_check(1048576), ("log.segment.bytes",)),
    ("segment.index.bytes", ValueType.INT, "10485760", make_min_check(4), ("log.index.size.max.bytes",)),
    (
        "segment.jitter.ms",
        ValueType.LONG,
        "0",
        make_min_check(0),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ),
    ("segment.ms", ValueType.LONG, "604800000", make_min_check(1), ("log.roll.ms", "log.roll.hours")),
    (
        "unclean.leader.election.enable",
        ValueType.BOOLEAN,
        "false",
        None,
        ("unclean.leader.election.enable",),
    ),
)

TOPIC_KEYS: Mapping[str, ConfigKey] = {
    name: ConfigKey(name, kind, default, check, unique=name == "cleanup.policy")
    for name, kind, default, check, _ in _TOPIC_ROWS
}

SYNONYMS: Mapping[str, tuple[str, ...]] = {name: synonyms for name, _, _, _, synonyms in _TOPIC_ROWS}
"""For each topic key, the broker keys that set its default. Earlier keys take precedence."""

MILLISECONDS_PER_UNIT: Mapping[str, int] = {
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
}
"""Milliseconds per unit, for broker keys whose unit differs from the unit of the topic key."""

_SECURITY_TYPES = {
    "ssl.key.password": ValueType.PASSWORD,
    "ssl.keystore.certificate.chain": ValueType.PASSWORD,
    "ssl.keystore.key": ValueType.PASSWORD,
    "ssl.keystore.location": ValueType.STRING,
    "ssl.keystore.password": ValueType.PASSWORD,
    "ssl.keystore.type": ValueType.STRING,
    "ssl.truststore.certificates": ValueType.PASSWORD,
    "ssl.truststore.location": ValueType.STRING,
    "ssl.truststore.password": ValueType.PASSWORD,
    "ssl.truststore.type": ValueType.STRING,
}

SECURITY_KEYS = frozenset(_SECURITY_TYPES)
"""SSL keys that can be changed at run time, but only per broker and with a ``listener.name.X.`` prefix."""

PER_BROKER_KEYS = SECURITY_KEYS | {
    "cordoned.log.dirs",
    "listener.security.protocol.map",
    "listeners",
    "principal.builder.class",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.trustmanager.algorithm",
}
"""Dynamic keys that cannot be set cluster-wide (DynamicBrokerConfig.PER_BROKER_CONFIGS)."""

THREAD_POOLS = frozenset(
    {
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)
"""Keys whose value can at most be doubled or halved in one change (DynamicThreadPool, LogCleaner)."""

QUOTA_KEYS = frozenset(
    {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Dynamic keys that cannot be set in server.properties.

Brokers describe such a key only while it is set (DynamicConfig.Broker).
"""

_DYNAMIC_ROWS: tuple[tuple[str, ValueType, str | None, ValueCheck | None], ...] = (
    ("background.threads", ValueType.INT, "10", make_min_check(1)),
    ("config.providers", ValueType.LIST, "", None),
    ("follower.replication.throttled.rate", ValueType.LONG, None, make_min_check(0)),
    ("leader.replication.throttled.rate", ValueType.LONG, None, make_min_check(0)),
    ("log.cleaner.backoff.ms", ValueType.LONG, "15000", make_min_check(0)),
    ("log.cleaner.dedupe.buffer.size", ValueType.LONG, "134217728", None),
    ("log.cleaner.io.buffer.load.factor", ValueType.DOUBLE, "0.9", None),
    ("log.cleaner.io.buffer.size", ValueType.INT, "524288", make_min_check(0)),
    ("log.cleaner.io.max.bytes.per.second", ValueType.DOUBLE, "1.7976931348623157E308", None),
    ("log.cleaner.threads", ValueType.INT, "1", make_min_check(0)),
    ("max.connection.creation.rate", ValueType.INT, _MAX_INT, make_min_check(0)),
    ("max.connections", ValueType.INT, _MAX_INT, make_min_check(0)),
    ("max.connections.per.ip", ValueType.INT, _MAX_INT, make_min_check(0)),
    ("max.connections.per.ip.overrides", ValueType.STRING, "", None),
    ("metric.reporters", ValueType.LIST, "org.apache.kafka.common.metrics.JmxReporter", None),
    ("num.io.threads", ValueType.INT, "8", make_min_check(1)),
    ("num.network.threads", ValueType.INT, "3", make_min_check(1)),
    ("num.recovery.threads.per.data.dir", ValueType.INT, "2", make_min_check(1)),
    ("num.replica.fetchers", ValueType.INT, "1", make_min_check(1)),
    ("producer.id.expiration.ms", ValueType.INT, "86400000", make_min_check(1)),
    ("remote.fetch.max.wait.ms", ValueType.INT, "500", make_min_check(1)),
    ("remote.list.offsets.request.timeout.ms", ValueType.LONG, "30000", make_min_check(1)),
    ("remote.log.index.file.cache.total.size.bytes", ValueType.LONG, "1073741824", make_min_check(1)),
    ("remote.log.manager.copier.thread.pool.size", ValueType.INT, "10", make_min_check(1)),
    ("remote.log.manager.copy.max.bytes.per.second", ValueType.LONG, _MAX_LONG, make_min_check(1)),
    ("remote.log.manager.expiration.thread.pool.size", ValueType.INT, "10", make_min_check(1)),
    ("remote.log.manager.fetch.max.bytes.per.second", ValueType.LONG, _MAX_LONG, make_min_check(1)),
    ("remote.log.manager.follower.thread.pool.size", ValueType.INT, "2", make_min_check(1)),
    ("remote.log.reader.threads", ValueType.INT, "10", make_min_check(1)),
    ("replica.alter.log.dirs.io.max.bytes.per.second", ValueType.LONG, None, make_min_check(0)),
    ("transaction.partition.verification.enable", ValueType.BOOLEAN, "true", None),
)

_READ_ONLY_ROWS: tuple[tuple[str, ValueType, str | None, ValueCheck | None], ...] = (
    ("auto.create.topics.enable", ValueType.BOOLEAN, "true", None),
    ("auto.leader.rebalance.enable", ValueType.BOOLEAN, "true", None),
    ("broker.id", ValueType.INT, "-1", None),
    ("broker.rack", ValueType.STRING, None, None),
    ("connections.max.reauth.ms", ValueType.LONG, "0", None),
    ("default.replication.factor", ValueType.INT, "1", None),
    ("log.dirs", ValueType.LIST, None, None),
    ("log.flush.scheduler.interval.ms", ValueType.LONG, _MAX_LONG, None),
    ("log.retention.check.interval.ms", ValueType.LONG, "300000", make_min_check(1)),
    ("log.retention.hours", ValueType.INT, "168", None),
    ("log.retention.minutes", ValueType.INT, None, None),
    ("log.roll.hours", ValueType.INT, "168", make_min_check(1)),
    ("log.roll.jitter.hours", ValueType.INT, "0", make_min_check(0)),
    ("node.id", ValueType.INT, None, make_min_check(0)),
    ("num.partitions", ValueType.INT, "1", make_min_check(1)),
    ("offsets.topic.replication.factor", ValueType.INT, "3", make_min_check(1)),
    ("process.roles", ValueType.LIST, "", None),
    ("remote.log.storage.system.enable", ValueType.BOOLEAN, "false", None),
    ("sasl.login.callback.handler.class", ValueType.STRING, None, None),
    ("sasl.login.class", ValueType.STRING, None, None),
    ("sasl.server.callback.handler.class", ValueType.STRING, None, None),
)


def _build_broker_keys() -> dict[str, ConfigKey]:
    keys = {row[0]: ConfigKey(*row) for row in _DYNAMIC_ROWS + _READ_ONLY_ROWS}
    for name, value_type in _SECURITY_TYPES.items():
        keys[name] = ConfigKey(name, value_type, "JKS" if name.endswith("store.type") else None)
    for name in PER_BROKER_KEYS - SECURITY_KEYS:
        is_list = name in ("cordoned.log.dirs", "listeners", "sasl.enabled.mechanisms", "ssl.cipher.suites")
        value_type = (
            ValueType.PASSWORD
            if name == "sasl.jaas.config"
            else ValueType.LIST
            if is_list
            else ValueType.STRING
        )
        keys.setdefault(name, ConfigKey(name, value_type, None))
    for topic_key, synonyms in SYNONYMS.items():
        for rank, name in enumerate(synonyms):
            topic_config_key = TOPIC_KEYS[topic_key]
            # the first of several synonyms is null by default, so that the next synonym applies
            default = None if len(synonyms) > 1 and rank == 0 else topic_config_key.default
            check = None if len(synonyms) > 1 else topic_config_key.check
            if topic_config_key.unique:
                check = make_list_check(
                    name, "compact", "delete"
                )  # the message of this validator contains the key
            keys.setdefault(
                name, ConfigKey(name, topic_config_key.type, default, check, topic_config_key.unique)
            )
    return keys


BROKER_KEYS: Mapping[str, ConfigKey] = _build_broker_keys()

DYNAMIC_KEYS = frozenset(BROKER_KEYS) - {row[0] for row in _READ_ONLY_ROWS}
"""Broker keys that can be altered while the broker runs (DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS)."""
