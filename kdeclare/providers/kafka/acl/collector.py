"""Read the ACL bindings of a Kafka cluster."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Collector, CollectResult, ExpectedObjects
from kdeclare.core.live.faults import Fault, UnsupportedFault
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.error_names import (
    CLUSTER_AUTHORIZATION_FAILED,
    SECURITY_DISABLED,
    UNSUPPORTED_VERSION,
)


@dataclass(frozen=True, slots=True)
class AclSelection:
    """The principals whose bindings a plan needs."""

    principals: frozenset[str] = frozenset()

    def merge(self, others: Sequence["AclSelection"]) -> "AclSelection":
        """See `Selection`."""
        return AclSelection(self.principals.union(*(other.principals for other in others)))


class Visibility(StrEnum):
    """Whether the bindings could be read."""

    VISIBLE = "visible"
    HIDDEN = "hidden"  # the principal is not permitted to describe ACLs
    UNSUPPORTED = "unsupported"  # the brokers do not support requests about ACLs
    DISABLED = "disabled"  # the brokers have no authorizer, so no ACL can exist


@dataclass(frozen=True, slots=True)
class AclState:
    """The live bindings by principal.

    If the bindings could not be read, the mapping is empty.
    """

    by_principal: Mapping[str, frozenset[Binding]] = field(default_factory=dict)
    visibility: Visibility = Visibility.VISIBLE

    def of(self, principal: str) -> frozenset[Binding]:
        """Return the bindings of one principal."""
        return self.by_principal.get(principal, frozenset())

    def has(self, binding: Binding) -> bool:
        """Return whether the binding exists."""
        return binding in self.of(binding.principal)

    @property
    def bindings(self) -> Iterable[Binding]:
        """All live bindings."""
        return (binding for bindings in self.by_principal.values() for binding in bindings)


def build_acl_state(bindings: Iterable[Binding]) -> AclState:
    """Return the live state that consists of these bindings."""
    by_principal: dict[str, set[Binding]] = defaultdict(set)
    for binding in bindings:
        by_principal[binding.principal].add(binding)
    return AclState({principal: frozenset(own) for principal, own in by_principal.items()})


def read_acls(connections: Connections, principals: Sequence[str] | None = None) -> AclState:
    """Read the bindings of these principals, or all bindings if ``principals`` is None. Raises Fault."""
    try:
        return build_acl_state(connections.get(KafkaConnection).cluster.acls(principals))
    except Fault as fault:
        if fault.error == SECURITY_DISABLED:
            return AclState(visibility=Visibility.DISABLED)
        if fault.error == CLUSTER_AUTHORIZATION_FAILED:
            return AclState(visibility=Visibility.HIDDEN)
        if fault.error == UNSUPPORTED_VERSION:
            return AclState(visibility=Visibility.UNSUPPORTED)
        raise


def require_visible(state: AclState) -> AclState:
    """Return ``state``. Raises Fault if the bindings could not be read."""
    if state.visibility is Visibility.DISABLED:
        raise Fault(SECURITY_DISABLED, "the brokers have no authorizer")
    if state.visibility is Visibility.UNSUPPORTED:
        raise UnsupportedFault(UNSUPPORTED_VERSION, "the brokers do not support managing ACLs")
    if state.visibility is Visibility.HIDDEN:
        raise Fault(CLUSTER_AUTHORIZATION_FAILED, "reading ACLs requires Describe on the cluster")
    return state


def _collect(connections: Connections, selection: AclSelection) -> AclState:
    return read_acls(connections, sorted(selection.principals))


def _collect_expected(
    connections: Connections, selection: AclSelection, expected: ExpectedObjects
) -> CollectResult:
    """Read the bindings of the selected principals, or all bindings if the plan counts unmanaged objects."""
    if expected.reads_all_names:
        return CollectResult(read_acls(connections))
    return CollectResult(_collect(connections, selection))


ACLS = Collector(AclSelection, _collect, read_expected=_collect_expected)
"""The collector of ACLs. A plan without ACLs needs no permission to read ACLs."""
