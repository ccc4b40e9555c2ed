"""All kinds by name; a new one is one file and one line here."""

from collections.abc import Mapping

from kdeclare.kinds.base import Kind
from kdeclare.kinds.broker_config import BrokerConfigKind
from kdeclare.kinds.reassignment import ReassignmentKind
from kdeclare.kinds.topic import TopicKind

_ALL: tuple[Kind, ...] = (TopicKind(), BrokerConfigKind(), ReassignmentKind())

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}
