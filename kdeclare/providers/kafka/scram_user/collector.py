"""Read the SCRAM credentials of a Kafka cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Collector, CollectResult, ExpectedObjects
from kdeclare.core.live.faults import Fault, UnsupportedFault
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import (
    CLUSTER_AUTHORIZATION_FAILED,
    UNAVAILABLE,
    UNSUPPORTED_VERSION,
)
from kdeclare.providers.kafka.scram_user.credential import Credentials


@dataclass(frozen=True, slots=True)
class ScramSelection:
    """The users whose credentials a plan needs."""

    users: frozenset[str] = frozenset()

    def merge(self, others: Sequence["ScramSelection"]) -> "ScramSelection":
        """See `Selection`."""
        return ScramSelection(self.users.union(*(other.users for other in others)))


@dataclass(frozen=True, slots=True)
class ScramState:
    """The SCRAM credentials by user. Users without credentials are omitted.

    fault: why the credentials cannot be read; None if they can be read. If there is a fault, ``users`` is
        empty.
    """

    users: Mapping[str, Credentials] = field(default_factory=dict)
    fault: Fault | None = None

    @property
    def is_visible(self) -> bool:
        """Whether the credentials can be read."""
        return self.fault is None

    def of(self, user: str) -> Credentials:
        """Return the credentials of one user. The mapping is empty if the user has none."""
        return self.users.get(user, {})


def _collect(connections: Connections, selection: ScramSelection) -> ScramState:
    return read_scram_users(connections, sorted(selection.users))


def _collect_expected(
    connections: Connections, selection: ScramSelection, expected: ExpectedObjects
) -> CollectResult:
    """Read the credentials of the selected users, or of all users if the plan counts unmanaged objects."""
    if expected.reads_all_names:
        return CollectResult(read_scram_users(connections))
    return CollectResult(_collect(connections, selection))


def read_scram_users(connections: Connections, users: Sequence[str] | None = None) -> ScramState:
    """Return the credentials of these users, or of all users if ``users`` is None. Raises Fault."""
    if users is not None and not users:
        return ScramState()
    try:
        return ScramState(connections.get(KafkaConnection).cluster.scram_users(users))
    except Fault as fault:
        if fault.error not in UNAVAILABLE:
            raise
        return ScramState(fault=fault)


def require_visible(state: ScramState) -> ScramState:
    """Check that the credentials can be read, and return the state unchanged.

    Raises Fault if the credentials cannot be read.
    """
    if state.fault is not None and state.fault.error == UNSUPPORTED_VERSION:
        raise UnsupportedFault(UNSUPPORTED_VERSION, "the brokers do not support managing SCRAM credentials")
    if not state.is_visible:
        reason = "reading SCRAM credentials requires Describe on the cluster"
        raise Fault(CLUSTER_AUTHORIZATION_FAILED, reason)
    return state


SCRAM_USERS = Collector(ScramSelection, _collect, read_expected=_collect_expected)
"""The collector of SCRAM credentials. A plan without SCRAM users needs no permission to read credentials."""
