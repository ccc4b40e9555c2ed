"""All verbs by name."""

from collections.abc import Mapping

from kdeclare.kinds.verbs.base import Verb
from kdeclare.kinds.verbs.configs import AlterConfigs
from kdeclare.kinds.verbs.reassign import ReassignPartitions
from kdeclare.kinds.verbs.topics import CreateTopic, DeleteTopic, IncreasePartitions

_ALL: tuple[Verb, ...] = (
    CreateTopic(),
    DeleteTopic(),
    IncreasePartitions(),
    AlterConfigs(),
    ReassignPartitions(),
)

VERBS: Mapping[str, Verb] = {verb.name: verb for verb in _ALL}
