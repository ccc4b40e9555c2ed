"""What a topic's manifest says of the topic, without any cluster."""

from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.wishes import Parts
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.operations.topics import ASSIGNED
from kdeclare.providers.kafka.policies.configs import state_value
from kdeclare.providers.kafka.topic.spec import TopicBody
from kdeclare.providers.kafka.topic_effects import Effect, Stated


def stated(body: TopicBody) -> Stated:
    """Partitions, replicas and overrides as a creation would have them; None is "not stated"."""
    replicas = body.assignments or {}
    sizes = {len(brokers) for brokers in replicas.values()}
    configs = {k: state_value(catalog(ConfigScope.TOPIC), k, wish) for k, wish in body.configs.items()}
    fields = {f"configs.{key}" for key, value in configs.items() if value is not None}
    placed = body.strategy is not None and not replicas
    if replicas or placed:
        fields |= ASSIGNED
    fields |= {"partitions"} if body.partitions is not None else set()
    fields |= {"replicationFactor"} if body.replication_factor is not None else set()
    effect = Effect(
        created=True,
        partitions=body.partitions,
        factor=min(sizes) if sizes else body.replication_factor,
        replicas=replicas,
        configs=configs,
        fields=frozenset(fields),
    )
    parts = frozenset(key for key, wish in body.configs.items() if isinstance(wish, Parts))
    return Stated(effect, parts, placed)
