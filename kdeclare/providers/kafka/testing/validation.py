"""Validation of configs as in Kafka: values, names, combinations of keys, and read-only broker keys.

Modeled on LogConfig.validate, ControllerConfigurationValidator, DynamicBrokerConfig and DynamicThreadPool.
The read-only keys are the keys of Kafka 4.3.1 that are not dynamic (KafkaConfig).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.testing.definitions import (
    BROKER_KEYS,
    DYNAMIC_KEYS,
    PER_BROKER_KEYS,
    SECURITY_KEYS,
    THREAD_POOLS,
    TOPIC_KEYS,
)
from kdeclare.providers.kafka.testing.values import InvalidValueError, TypedValue

if TYPE_CHECKING:
    from kdeclare.providers.kafka.testing.configs import ConfigStore


_READ_ONLY_NAMES = """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    advertised.listeners alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
    alter.log.dirs.replication.quota.window.size.seconds authorizer.class.name auto.create.topics.enable
    auto.leader.rebalance.enable broker.heartbeat.interval.ms broker.id broker.rack
    broker.session.timeout.ms client.quota.callback.class connection.failed.authentication.delay.ms
    connections.max.idle.ms connections.max.reauth.ms controlled.shutdown.enable
    controller.listener.names controller.performance.always.log.threshold.ms
    controller.performance.sample.period.ms controller.quorum.append.linger.ms
    controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
    controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
    controller.quorum.retry.backoff.ms controller.quorum.voters controller.quota.window.num
    controller.quota.window.size.seconds controller.socket.timeout.ms create.topic.policy.class.name
    default.replication.factor delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
    delegation.token.max.lifetime.ms delegation.token.secret.key
    delete.records.purgatory.purge.interval.requests delete.topic.enable early.start.listeners
    fetch.max.bytes fetch.purgatory.purge.interval.requests group.consumer.assignors
    group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms
    group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms
    group.consumer.max.size group.consumer.migration.policy group.consumer.min.assignment.interval.ms
    group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
    group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
    group.coordinator.append.linger.ms group.coordinator.background.threads
    group.coordinator.rebalance.protocols group.coordinator.threads group.initial.rebalance.delay.ms
    group.max.session.timeout.ms group.max.size group.min.session.timeout.ms group.share.assignors
    group.share.delivery.count.limit group.share.heartbeat.interval.ms
    group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
    group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
    group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
    group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
    group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
    group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
    group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
    group.share.partition.max.record.locks group.share.persister.class.name
    group.share.record.lock.duration.ms group.share.session.timeout.ms
    group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
    group.streams.max.session.timeout.ms group.streams.max.size group.streams.max.standby.replicas
    group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
    group.streams.min.session.timeout.ms group.streams.num.standby.replicas
    group.streams.session.timeout.ms initial.broker.registration.timeout.ms inter.broker.listener.name
    internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
    internal.metadata.max.batch.size.in.bytes kafka.metrics.polling.interval.secs
    kafka.metrics.reporters leader.imbalance.check.interval.seconds log.cleaner.enable log.dir
    log.dir.failure.timeout.ms log.dirs log.flush.offset.checkpoint.interval.ms
    log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms
    log.initial.task.delay.ms log.retention.check.interval.ms log.retention.hours log.retention.minutes
    log.roll.hours log.roll.jitter.hours max.incremental.fetch.session.cache.slots
    max.request.partition.size.limit metadata.log.dir metadata.log.max.record.bytes.between.snapshots
    metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
    metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
    metrics.num.samples metrics.recording.level metrics.sample.window.ms node.id num.partitions
    num.replica.alter.log.dirs.threads offset.metadata.max.bytes offsets.commit.timeout.ms
    offsets.load.buffer.size offsets.retention.check.interval.ms offsets.retention.minutes
    offsets.topic.compression.codec offsets.topic.num.partitions offsets.topic.replication.factor
    offsets.topic.segment.bytes process.roles producer.id.expiration.check.interval.ms
    producer.purgatory.purge.interval.requests queued.max.request.bytes queued.max.requests
    quota.window.num quota.window.size.seconds remote.log.index.file.cache.ttl.ms
    remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
    remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
    remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
    remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
    remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
    remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
    remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
    remote.log.reader.max.pending.tasks remote.log.storage.manager.class.name
    remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
    remote.log.storage.system.enable replica.fetch.backoff.ms replica.fetch.max.bytes
    replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds request.timeout.ms sasl.client.callback.handler.class
    sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.mechanism.controller.protocol sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class
    sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name
    sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    sasl.server.callback.handler.class sasl.server.max.receive.size security.inter.broker.protocol
    security.providers server.max.startup.time.ms share.coordinator.append.linger.ms
    share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
    share.coordinator.snapshot.update.records.per.snapshot
    share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
    share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
    share.coordinator.threads share.coordinator.write.timeout.ms
    share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes
    socket.request.max.bytes socket.send.buffer.bytes ssl.allow.dn.changes ssl.allow.san.changes
    ssl.principal.mapping.rules telemetry.max.bytes
    transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
    transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size
    transaction.state.log.min.isr transaction.state.log.num.partitions
    transaction.state.log.replication.factor transaction.state.log.segment.bytes
    transaction.two.phase.commit.enable transactional.id.expiration.ms
    unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable
"""

READ_ONLY_KEYS = frozenset(_READ_ONLY_NAMES.split())


_CLUSTER_LEVEL_LISTENER_KEYS = {"max.connections", "max.connection.creation.rate", "num.network.threads"}
_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def strip_listener_prefix(name: str) -> str:
    """Return the key without the prefix ``listener.name.X.`` (DynamicBrokerConfig.brokerConfigSynonyms)."""
    match = _LISTENER_KEY.fullmatch(name)
    if match is None:
        return name
    return next((key for key in _MECHANISM_KEYS if match[1].endswith(key)), match[1])


def is_read_only(name: str) -> bool:
    """Return whether brokers describe a key as read-only: it is not dynamic, or has a listener prefix."""
    return name not in DYNAMIC_KEYS


def validate_topic_configs(configs: ConfigStore, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Validate each override of a topic, and their combination. Raises Fault INVALID_CONFIG."""
    for name in after:
        if name not in TOPIC_KEYS:
            raise Fault("INVALID_CONFIG", f"Unknown topic config name: {name}")
    try:
        own_values = {name: TOPIC_KEYS[name].parse(text) for name, text in after.items()}
    except InvalidValueError as exc:
        raise Fault("INVALID_CONFIG", str(exc)) from None
    values = _EffectiveValues(configs, own_values)
    min_lag, max_lag = values.number("min.compaction.lag.ms"), values.number("max.compaction.lag.ms")
    if min_lag > max_lag:
        raise Fault(
            "INVALID_CONFIG",
            f"conflict topic config setting min.compaction.lag.ms ({min_lag}) > "
            f"max.compaction.lag.ms ({max_lag})",
        )
    if values["remote.storage.enable"]:
        _validate_tiered(configs, values)
    elif (
        before.get("remote.storage.enable", "").lower() == "true"
        and not values["remote.log.delete.on.disable"]
    ):
        raise Fault(
            "INVALID_CONFIG",
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
            "remote data and turn to read only, please set `remote.storage.enable=true,"
            "remote.log.copy.disable=true`. If you want to disable remote storage and delete all remote "
            "data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`.",
        )


class _EffectiveValues:
    """The parsed effective config values of a topic: its overrides, and inherited values for other keys."""

    def __init__(self, configs: ConfigStore, own_values: Mapping[str, TypedValue]) -> None:
        self._configs = configs
        self._own_values = own_values

    def __getitem__(self, name: str) -> TypedValue:
        if name in self._own_values:
            return self._own_values[name]
        text = self._configs.describe_topic_key("", name).value
        assert text is not None
        return TOPIC_KEYS[name].parse(text)

    def number(self, name: str) -> int:
        value = self[name]
        assert isinstance(value, int)
        return value


def _validate_tiered(configs: ConfigStore, values: _EffectiveValues) -> None:
    if not configs.tiered:
        raise Fault(
            "INVALID_CONFIG",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    policy = values["cleanup.policy"]
    if isinstance(policy, tuple) and "compact" in policy:
        raise Fault(
            "INVALID_CONFIG",
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an "
            "empty list.",
        )
    for unit in ("bytes", "ms"):
        total_retention, local_retention = (
            values.number(f"retention.{unit}"),
            values.number(f"local.retention.{unit}"),
        )
        if local_retention == -2 or total_retention == -1:
            continue
        message_prefix = f"Invalid value {local_retention} for configuration local.retention.{unit}: "
        if local_retention == -1:
            raise Fault(
                "INVALID_CONFIG",
                f"{message_prefix}Value must not be -1 as retention.{unit} "
                f"value is set as {total_retention}.",
            )
        if local_retention > total_retention:
            raise Fault(
                "INVALID_CONFIG",
                f"{message_prefix}Value must not be more than retention.{unit} "
                f"property value: {total_retention}",
            )


def validate_broker_configs(
    configs: ConfigStore, resource: ConfigResource, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Validate overrides of a broker or the cluster-wide default. Raises Fault INVALID_REQUEST."""
    _reject_keys(after.keys() & READ_ONLY_KEYS, "Cannot update these configs dynamically")
    _reject_keys(
        after.keys() & SECURITY_KEYS,
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    for name, text in after.items():
        key = BROKER_KEYS.get(strip_listener_prefix(name))
        try:
            if key is not None:
                key.parse(text)
        except InvalidValueError as exc:
            raise Fault("INVALID_REQUEST", str(exc)) from None
    if not resource.name:
        _reject_keys(
            {name for name in after if _needs_broker(name)},
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    broker = int(resource.name) if resource.name else configs.asked
    _validate_connection_limits(configs, broker, resource, after)
    for name in sorted(THREAD_POOLS & (before.keys() | after.keys())):
        _validate_pool_size(configs, broker, resource, name, after)


def _validate_connection_limits(
    configs: ConfigStore, broker: int, resource: ConfigResource, after: Mapping[str, str]
) -> None:
    """Validate the limits on connections as they would be after a change.

    The checks are those of KafkaConfig.validateValues and ConnectionQuotas.
    """

    def get_effective(name: str) -> str:
        setting = configs.find_broker_value(broker, (name,), {resource: after})
        return setting[1].strip() if setting else BROKER_KEYS[name].default or ""

    if int(get_effective("max.connections.per.ip")) == 0 and not get_effective(
        "max.connections.per.ip.overrides"
    ):
        raise Fault(
            "INVALID_REQUEST",
            "requirement failed: max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set.",
        )
    for name in ("max.connections", "max.connection.creation.rate"):
        if int(get_effective(name)) == 0:
            raise Fault("INVALID_REQUEST", _wrap_message(f"Invalid {name} 0"))


def _needs_broker(name: str) -> bool:
    inner = strip_listener_prefix(name)
    return inner in PER_BROKER_KEYS or (inner != name and inner not in _CLUSTER_LEVEL_LISTENER_KEYS)


def _reject_keys(names: Iterable[str], message: str) -> None:
    rejected = sorted(names)
    if rejected:
        raise Fault("INVALID_REQUEST", f"{message}: [{', '.join(rejected)}]")


def _validate_pool_size(
    configs: ConfigStore, broker: int, resource: ConfigResource, name: str, after: Mapping[str, str]
) -> None:
    default = BROKER_KEYS[name].default
    assert default is not None
    current_setting = configs.find_broker_value(broker, (name,))
    new_setting = configs.find_broker_value(broker, (name,), {resource: after})
    current_size = int(current_setting[1]) if current_setting else int(default)
    new_size = int(new_setting[1]) if new_setting else int(default)
    explain_step = _explain_cleaner_step if name == "log.cleaner.threads" else _explain_pool_step
    problem = explain_step(name, current_size, new_size)
    if problem:
        raise Fault("INVALID_REQUEST", problem)


def _explain_pool_step(name: str, current_size: int, new_size: int) -> str:
    """Return the error message of DynamicThreadPool.validateReconfiguration; empty if the size is valid."""
    if new_size < current_size // 2:
        reason = f"value should be at least half the current value {current_size}"
    elif new_size > current_size * 2:
        reason = f"value should not be greater than double the current value {current_size}"
    else:
        return ""
    return _wrap_message(f"Dynamic thread count update validation failed for {name}={new_size}, {reason}")


def _explain_cleaner_step(name: str, current_size: int, new_size: int) -> str:
    """Return the error message of LogCleaner.validateReconfiguration; empty if the thread count is valid.

    As in Kafka, 0 causes a division by zero.
    """
    if new_size == 0:
        return "/ by zero"
    if new_size < current_size // 2:
        return _wrap_message(
            f"Log cleaner threads cannot be reduced to less than half the current value {current_size}"
        )
    if new_size > current_size * 2:
        return _wrap_message(
            f"Log cleaner threads cannot be increased to more than double the current value {current_size}"
        )
    return ""


def _wrap_message(text: str) -> str:
    # the broker's message contains the name of the exception
    exception = "org.apache.kafka.common.config.ConfigException"
    return f"Invalid value {exception}: {text} for configuration Invalid dynamic configuration"
