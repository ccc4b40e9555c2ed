"""What audits say about topics and dynamic configs beyond what their diffs say."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from kdeclare.core.audit_rules import AuditRules, ImpossibleField, UnmanagedField
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import ConfigSide, override
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT, own_source

TOPIC = "Topic"
BROKER_CONFIG = "BrokerConfig"
"""The sorts of live objects, which are kinds at the same time."""

_CONFIGS = "configs."
_UNHEARD_OF = "Neither kdeclare nor this audit knows the key: see kdeclare plan."


def find_entity(sort: str, key: str) -> ConfigResource:
    """Return what has the configs of a live object."""
    if sort == TOPIC:
        return ConfigResource(ConfigScope.TOPIC, key)
    return ConfigResource(ConfigScope.BROKER, "" if key == CLUSTER_DEFAULT else key)


def pick_topics(keys: Collection[LiveKey], names: Collection[str]) -> list[LiveKey]:
    """Return those of the live objects that are topics of these names."""
    return [key for key in keys if key.sort == TOPIC and key.key in names]


def list_topics(keys: Iterable[LiveKey]) -> Iterator[str]:
    """Return the names of those of the live objects that are topics."""
    return (key.key for key in keys if key.sort == TOPIC)


class ConfigRules(AuditRules):
    """Of resources with configs."""

    def list_unmanaged(
        self, resource: ResourceId, names: Sequence[str], live: LiveState
    ) -> Iterator[UnmanagedField]:
        """Return the config keys with their overrides."""
        if not names:
            return
        entity = find_entity(resource.kind, resource.name)
        entries = live.get(KafkaState).configs[entity]
        side = ConfigSide(str(resource), entries, own_source(entity), catalog(entity.scope))
        for key in names:
            yield UnmanagedField(f"{_CONFIGS}{key}", override(side, key))

    def was_set_by_others(self, path: str, desired: Desired, owned: Json) -> bool:
        """Whether it is a key that was set since, where all that is not declared is to be reset."""
        key = path.removeprefix(_CONFIGS)
        return key != path and key not in desired.body.configs and key not in owned.get("configs", {})

    def describe_pending(self, resource: ResourceId, unset: Sequence[str]) -> str | None:
        """Say that a key may not even exist: neither the catalogue has it nor the resource a value of it."""
        keys = catalog(find_entity(resource.kind, resource.name).scope)
        known = (keys.get(path.removeprefix(_CONFIGS)) for path in unset if path.startswith(_CONFIGS))
        return None if all(known) else _UNHEARD_OF


class TopicRules(ConfigRules):
    """Of topics: the number of their partitions never gets smaller."""

    def find_impossible(self, desired: Desired, live: LiveState) -> ImpossibleField:
        """Return the number of partitions."""
        topic = live.get(KafkaState).topics[desired.id.name]
        return ImpossibleField("partitions", len(topic.partitions), desired.body.partitions)
