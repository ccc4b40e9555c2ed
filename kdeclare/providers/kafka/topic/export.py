"""Live topics as manifests."""

from kdeclare.core.manifest_text import flow_map, manifest
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET, ConfigSide
from kdeclare.providers.kafka.export import config_lines
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Topic
from kdeclare.providers.kafka.topic.diff import true_replicas


def topic_manifests(live: KafkaState) -> dict[str, str]:
    """The text of a manifest for each topic that is not internal."""
    return {name: _manifest(live, topic) for name, topic in live.topics.items() if not topic.internal}


def _manifest(live: KafkaState, topic: Topic) -> str:
    replicas = true_replicas(live, topic)
    sizes = {len(r) for r in replicas}
    comments = [f"Imported from cluster {live.cluster.id}; topic id {topic.topic_id}."]
    spec = [f"partitions: {len(replicas)}"]
    if len(sizes) == 1:
        spec.append(f"replicationFactor: {sizes.pop()}")
    else:
        comments.append("Its partitions have different numbers of replicas, so none is declared:")
        comments += [line.strip() for line in flow_map(dict(enumerate(replicas)))]
    resource = ConfigResource(ConfigScope.TOPIC, topic.name)
    entries = live.configs.get(resource, {})
    side = ConfigSide(f"Topic/{topic.name}", entries, ConfigSource.TOPIC, catalog(ConfigScope.TOPIC))
    keys = [key for key in sorted(entries) if key not in NEVER_RESET]
    throttled = [key for key in sorted(entries) if key in NEVER_RESET]
    comments += [f"{key} belongs to a move and is left out." for key in throttled]
    return manifest("Topic", topic.name, spec + config_lines(side, keys), comments)
