"""Live topics as manifests."""

from kdeclare.core.capabilities import Export, ExportRequest, LeftOut
from kdeclare.core.ids import ResourceId
from kdeclare.core.manifest_text import flow_map, manifest
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET, ConfigSide
from kdeclare.providers.kafka.export import config_lines, count_configs_left_out
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource, KafkaState, Topic
from kdeclare.providers.kafka.observe import observe
from kdeclare.providers.kafka.port import Cluster, ConfigQuery
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.topic.diff import true_replicas


def export_topics(cluster: Cluster, request: ExportRequest) -> Export:
    """Return a manifest of each topic that is asked for and not internal. Raises Fault."""
    topics = [topic for topic in cluster.topics().values() if request.matches(topic.name)]
    own = [topic.name for topic in topics if not topic.internal]
    names = [name for name in own if request.permits(ResourceId("Topic", name))]
    entities = [ConfigResource(ConfigScope.TOPIC, name) for name in names]
    queries = {entity: ConfigQuery(entity, overrides=True) for entity in entities}
    live = observe(cluster, KafkaSelection(frozenset(names), queries))
    internal = LeftOut(len(topics) - len(own), "internal topic", "internal topics", "Kafka's own")
    foreign = LeftOut(len(own) - len(names), "topic", "topics", "outside the scope of the project")
    texts = {name: _manifest(live, topic) for name, topic in live.topics.items()}
    return Export(texts, (internal, foreign, *count_configs_left_out(live)))


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
