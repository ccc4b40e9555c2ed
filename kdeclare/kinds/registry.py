"""All kinds by name; a new one is one file and one line here."""

from collections.abc import Mapping

from kdeclare.kinds.base import Kind
from kdeclare.kinds.broker_config import BrokerConfigKind
from kdeclare.kinds.connect_worker_config import ConnectWorkerConfigKind
from kdeclare.kinds.reassignment import ReassignmentKind
from kdeclare.kinds.topic import TopicKind
from kdeclare.model.ids import ConfigScope, ResourceId

_ALL: tuple[Kind, ...] = (TopicKind(), BrokerConfigKind(), ReassignmentKind(), ConnectWorkerConfigKind())

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}


def is_topic(resource: ResourceId) -> bool:
    """Whether a resource is itself the topic of its name."""
    return resource.kind in KINDS and KINDS[resource.kind].config_scope is ConfigScope.TOPIC
