"""The config keys that the in-process brokers know: those of Apache Kafka 4.3.

From LogConfig, ServerTopicConfigSynonyms, DynamicBrokerConfig and KafkaConfig of 4.3.1. Broker keys
beyond the dynamic ones are here only where something else depends on them.
"""

from collections.abc import Mapping

from kdeclare.providers.kafka.testing.values import (
    Check,
    Key,
    Type,
    at_least,
    between,
    items_of,
    one_of,
    throttled_replicas,
)

_MAX_LONG = str(2**63 - 1)
_MAX_INT = str(2**31 - 1)
_LEADERS = "leader.replication.throttled.replicas"
_FOLLOWERS = "follower.replication.throttled.replicas"
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _gzip_level(value: object) -> str | None:
    assert isinstance(value, int)
    return None if value == -1 or 1 <= value <= 9 else "Value must be between 1 and 9 or equal to -1"


_TOPIC: tuple[tuple[str, Type, str | None, Check | None, tuple[str, ...]], ...] = (
    (
        "cleanup.policy",
        Type.LIST,
        "delete",
        items_of("cleanup.policy", "compact", "delete"),
        ("log.cleanup.policy",),
    ),
    ("compression.gzip.level", Type.INT, "-1", _gzip_level, ("compression.gzip.level",)),
    ("compression.lz4.level", Type.INT, "9", between(1, 17), ("compression.lz4.level",)),
    ("compression.type", Type.STRING, "producer", one_of(*_CODECS), ("compression.type",)),
    ("compression.zstd.level", Type.INT, "3", between(-131072, 22), ("compression.zstd.level",)),
    ("delete.retention.ms", Type.LONG, "86400000", at_least(0), ("log.cleaner.delete.retention.ms",)),
    ("file.delete.delay.ms", Type.LONG, "60000", at_least(0), ("log.segment.delete.delay.ms",)),
    ("flush.messages", Type.LONG, _MAX_LONG, at_least(1), ("log.flush.interval.messages",)),
    (
        "flush.ms",
        Type.LONG,
        _MAX_LONG,
        at_least(0),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ),
    (_FOLLOWERS, Type.LIST, "", throttled_replicas(_FOLLOWERS), ()),
    ("internal.segment.bytes", Type.INT, None, None, ()),
    ("index.interval.bytes", Type.INT, "4096", at_least(0), ("log.index.interval.bytes",)),
    (_LEADERS, Type.LIST, "", throttled_replicas(_LEADERS), ()),
    ("local.retention.bytes", Type.LONG, "-2", at_least(-2), ("log.local.retention.bytes",)),
    ("local.retention.ms", Type.LONG, "-2", at_least(-2), ("log.local.retention.ms",)),
    ("max.compaction.lag.ms", Type.LONG, _MAX_LONG, at_least(1), ("log.cleaner.max.compaction.lag.ms",)),
    ("max.message.bytes", Type.INT, "1048588", at_least(0), ("message.max.bytes",)),
    (
        "message.timestamp.after.max.ms",
        Type.LONG,
        "3600000",
        at_least(0),
        ("log.message.timestamp.after.max.ms",),
    ),
    (
        "message.timestamp.before.max.ms",
        Type.LONG,
        _MAX_LONG,
        at_least(0),
        ("log.message.timestamp.before.max.ms",),
    ),
    (
        "message.timestamp.type",
        Type.STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        ("log.message.timestamp.type",),
    ),
    ("min.cleanable.dirty.ratio", Type.DOUBLE, "0.5", between(0, 1), ("log.cleaner.min.cleanable.ratio",)),
    ("min.compaction.lag.ms", Type.LONG, "0", at_least(0), ("log.cleaner.min.compaction.lag.ms",)),
    ("min.insync.replicas", Type.INT, "1", at_least(1), ("min.insync.replicas",)),
    ("preallocate", Type.BOOLEAN, "false", None, ("log.preallocate",)),
    ("remote.log.copy.disable", Type.BOOLEAN, "false", None, ()),
    ("remote.log.delete.on.disable", Type.BOOLEAN, "false", None, ()),
    ("remote.storage.enable", Type.BOOLEAN, "false", None, ()),
    ("retention.bytes", Type.LONG, "-1", None, ("log.retention.bytes",)),
    (
        "retention.ms",
        Type.LONG,
        "604800000",
        at_least(-1),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    ("segment.bytes", Type.INT, "1073741824", at_least(1048576), ("log.segment.bytes",)),
    ("segment.index.bytes", Type.INT, "10485760", at_least(4), ("log.index.size.max.bytes",)),
    ("segment.jitter.ms", Type.LONG, "0", at_least(0), ("log.roll.jitter.ms", "log.roll.jitter.hours")),
    ("segment.ms", Type.LONG, "604800000", at_least(1), ("log.roll.ms", "log.roll.hours")),
    (
        "unclean.leader.election.enable",
        Type.BOOLEAN,
        "false",
        None,
        ("unclean.leader.election.enable",),
    ),
)

TOPIC_KEYS: Mapping[str, Key] = {
    name: Key(name, kind, default, check, unique=name == "cleanup.policy")
    for name, kind, default, check, _ in _TOPIC
}

SYNONYMS: Mapping[str, tuple[str, ...]] = {name: synonyms for name, _, _, _, synonyms in _TOPIC}
"""Broker keys that a topic key inherits from, the strongest first."""

MILLISECONDS: Mapping[str, int] = {
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
}
"""What one unit of a synonym is in the unit of its topic key, where they differ."""

_SECURITY = {
    "ssl.key.password": Type.PASSWORD,
    "ssl.keystore.certificate.chain": Type.PASSWORD,
    "ssl.keystore.key": Type.PASSWORD,
    "ssl.keystore.location": Type.STRING,
    "ssl.keystore.password": Type.PASSWORD,
    "ssl.keystore.type": Type.STRING,
    "ssl.truststore.certificates": Type.PASSWORD,
    "ssl.truststore.location": Type.STRING,
    "ssl.truststore.password": Type.PASSWORD,
    "ssl.truststore.type": Type.STRING,
}

SECURITY_KEYS = frozenset(_SECURITY)
"""Reloadable SSL keys: only with a ``listener.name.X.`` prefix and only on a broker id."""

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
"""Dynamic, but never at the cluster-wide default (DynamicBrokerConfig.PER_BROKER_CONFIGS)."""

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
"""May at most double or halve with one change (DynamicThreadPool, LogCleaner)."""

QUOTA_KEYS = frozenset(
    {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Dynamic keys without a static side: described only while they are set (DynamicConfig.Broker)."""

_DYNAMIC: tuple[tuple[str, Type, str | None, Check | None], ...] = (
    ("background.threads", Type.INT, "10", at_least(1)),
    ("config.providers", Type.LIST, "", None),
    ("follower.replication.throttled.rate", Type.LONG, None, at_least(0)),
    ("leader.replication.throttled.rate", Type.LONG, None, at_least(0)),
    ("log.cleaner.backoff.ms", Type.LONG, "15000", at_least(0)),
    ("log.cleaner.dedupe.buffer.size", Type.LONG, "134217728", None),
    ("log.cleaner.io.buffer.load.factor", Type.DOUBLE, "0.9", None),
    ("log.cleaner.io.buffer.size", Type.INT, "524288", at_least(0)),
    ("log.cleaner.io.max.bytes.per.second", Type.DOUBLE, "1.7976931348623157E308", None),
    ("log.cleaner.threads", Type.INT, "1", at_least(0)),
    ("max.connection.creation.rate", Type.INT, _MAX_INT, at_least(0)),
    ("max.connections", Type.INT, _MAX_INT, at_least(0)),
    ("max.connections.per.ip", Type.INT, _MAX_INT, at_least(0)),
    ("max.connections.per.ip.overrides", Type.STRING, "", None),
    ("metric.reporters", Type.LIST, "org.apache.kafka.common.metrics.JmxReporter", None),
    ("num.io.threads", Type.INT, "8", at_least(1)),
    ("num.network.threads", Type.INT, "3", at_least(1)),
    ("num.recovery.threads.per.data.dir", Type.INT, "2", at_least(1)),
    ("num.replica.fetchers", Type.INT, "1", at_least(1)),
    ("producer.id.expiration.ms", Type.INT, "86400000", at_least(1)),
    ("remote.fetch.max.wait.ms", Type.INT, "500", at_least(1)),
    ("remote.list.offsets.request.timeout.ms", Type.LONG, "30000", at_least(1)),
    ("remote.log.index.file.cache.total.size.bytes", Type.LONG, "1073741824", at_least(1)),
    ("remote.log.manager.copier.thread.pool.size", Type.INT, "10", at_least(1)),
    ("remote.log.manager.copy.max.bytes.per.second", Type.LONG, _MAX_LONG, at_least(1)),
    ("remote.log.manager.expiration.thread.pool.size", Type.INT, "10", at_least(1)),
    ("remote.log.manager.fetch.max.bytes.per.second", Type.LONG, _MAX_LONG, at_least(1)),
    ("remote.log.manager.follower.thread.pool.size", Type.INT, "2", at_least(1)),
    ("remote.log.reader.threads", Type.INT, "10", at_least(1)),
    ("replica.alter.log.dirs.io.max.bytes.per.second", Type.LONG, None, at_least(0)),
    ("transaction.partition.verification.enable", Type.BOOLEAN, "true", None),
)

_READ_ONLY: tuple[tuple[str, Type, str | None, Check | None], ...] = (
    ("auto.create.topics.enable", Type.BOOLEAN, "true", None),
    ("auto.leader.rebalance.enable", Type.BOOLEAN, "true", None),
    ("broker.id", Type.INT, "-1", None),
    ("broker.rack", Type.STRING, None, None),
    ("connections.max.reauth.ms", Type.LONG, "0", None),
    ("default.replication.factor", Type.INT, "1", None),
    ("log.dirs", Type.LIST, None, None),
    ("log.flush.scheduler.interval.ms", Type.LONG, _MAX_LONG, None),
    ("log.retention.hours", Type.INT, "168", None),
    ("log.retention.minutes", Type.INT, None, None),
    ("log.roll.hours", Type.INT, "168", at_least(1)),
    ("log.roll.jitter.hours", Type.INT, "0", at_least(0)),
    ("node.id", Type.INT, None, at_least(0)),
    ("num.partitions", Type.INT, "1", at_least(1)),
    ("offsets.topic.replication.factor", Type.INT, "3", at_least(1)),
    ("process.roles", Type.LIST, "", None),
    ("remote.log.storage.system.enable", Type.BOOLEAN, "false", None),
    ("sasl.login.callback.handler.class", Type.STRING, None, None),
    ("sasl.login.class", Type.STRING, None, None),
    ("sasl.server.callback.handler.class", Type.STRING, None, None),
)


def _broker_keys() -> dict[str, Key]:
    keys = {row[0]: Key(*row) for row in _DYNAMIC + _READ_ONLY}
    for name, kind in _SECURITY.items():
        keys[name] = Key(name, kind, "JKS" if name.endswith("store.type") else None)
    for name in PER_BROKER_KEYS - SECURITY_KEYS:
        listed = name in ("cordoned.log.dirs", "listeners", "sasl.enabled.mechanisms", "ssl.cipher.suites")
        kind = Type.PASSWORD if name == "sasl.jaas.config" else Type.LIST if listed else Type.STRING
        keys.setdefault(name, Key(name, kind, None))
    for topic_key, synonyms in SYNONYMS.items():
        for place, name in enumerate(synonyms):
            known = TOPIC_KEYS[topic_key]
            # a key with weaker synonyms is null by default, so that those count
            default = None if len(synonyms) > 1 and place == 0 else known.default
            check = None if len(synonyms) > 1 else known.check
            if known.unique:
                check = items_of(name, "compact", "delete")  # its words name the key
            keys.setdefault(name, Key(name, known.type, default, check, known.unique))
    return keys


BROKER_KEYS: Mapping[str, Key] = _broker_keys()

DYNAMIC_KEYS = frozenset(BROKER_KEYS) - {row[0] for row in _READ_ONLY}
"""Broker keys that can be altered while the broker runs (DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS)."""
