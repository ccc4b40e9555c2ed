"""All verbs by name."""

from collections.abc import Mapping

from kdeclare.kinds.verbs.base import Verb
from kdeclare.kinds.verbs.configs import AlterConfigs
from kdeclare.kinds.verbs.elect import ElectLeaders
from kdeclare.kinds.verbs.moves import AwaitMoves, CancelMoves
from kdeclare.kinds.verbs.reassign import ReassignPartitions
from kdeclare.kinds.verbs.relocate import RelocateReplicas
from kdeclare.kinds.verbs.throttle import ClearThrottle, SetThrottle
from kdeclare.kinds.verbs.topics import CreateTopic, DeleteTopic, IncreasePartitions
from kdeclare.kinds.verbs.unknown import UnknownVerb
from kdeclare.kinds.verbs.workers import PatchWorkers

_ALL: tuple[Verb, ...] = (
    CreateTopic(),
    DeleteTopic(),
    IncreasePartitions(),
    AlterConfigs(),
    ReassignPartitions(),
    AwaitMoves(),
    CancelMoves(),
    RelocateReplicas(),
    ElectLeaders(),
    SetThrottle(),
    ClearThrottle(),
    PatchWorkers(),
)


class _Verbs(dict[str, Verb]):
    """By name. A name that is not there (``in`` says so) stands for a verb that does nothing."""

    def __missing__(self, name: str) -> Verb:
        return UnknownVerb(name)


VERBS: Mapping[str, Verb] = _Verbs({verb.name: verb for verb in _ALL})
