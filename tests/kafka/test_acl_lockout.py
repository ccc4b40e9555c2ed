"""The lock-out guard on a real broker: no plan that passes takes the rights of its client away."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.core.operations.operation import Operation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.binding import CLUSTER, Binding
from kdeclare.providers.kafka.acl.lockout import NEEDED, find_lockouts
from kdeclare.providers.kafka.acl.operations import AclArgs
from kdeclare.providers.kafka.acl.own_access import Authorizer, read_own_access
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.security import ADMIN, READER
from tests.conftest import connect_as
from tests.polling import wait_for
from tests.unit.acl.acl_strategies import bindings

pytestmark = pytest.mark.kafka

USER = f"User:{READER}"
_LAG_S = 90.0
_OPERATIONS = ("ALTER", "DESCRIBE", "ALL", "CREATE")


def rename(binding: Binding) -> Binding:
    """Let the bindings of one principal be about the reader of the sandbox, who connects from 127.0.0.1."""
    principal = USER if binding.principal == "User:alice" else binding.principal
    host = "127.0.0.1" if binding.host == "10.0.0.1" else binding.host
    return binding._replace(principal=principal, host=host)


own = bindings(types=(CLUSTER,)).map(rename).filter(lambda b: b.operation in _OPERATIONS)


class Clients:
    """An administrator, and the client whose rights change."""

    def __init__(self, admin: KafkaCluster, client: KafkaCluster) -> None:
        self.admin, self.client = admin, client
        self.at_first = self.read()
        self.passed = 0

    def read(self) -> frozenset[Binding]:
        return frozenset(b for b in self.admin.acls() if b.resource_type == CLUSTER)

    def set(self, wanted: frozenset[Binding]) -> None:
        """Make these the bindings of the cluster, and wait until the broker applies them."""
        before = self.read()
        assert set(self.admin.create_acls(sorted(wanted - before)).values()) <= {None}
        assert set(self.admin.delete_acls(sorted(before - wanted)).values()) <= {None}
        wait_for(lambda: self.read() == wanted, _LAG_S, every=0.01)


@pytest.fixture(scope="module")
def clients(secured_sandbox: SandboxStatus) -> Iterator[Clients]:
    admin, client = connect_as(secured_sandbox, ADMIN), connect_as(secured_sandbox, READER)
    made = Clients(admin, client)
    try:
        yield made
        made.set(made.at_first)
    finally:
        admin.close()
        client.close()


def make_op(verb: str, texts: frozenset[Binding]) -> Operation:
    args = AclArgs(tuple(sorted(map(str, texts))))
    return Operation(f"{verb}:Acl/a", verb, ResourceId("Acl", "a"), args, {})


@settings(max_examples=settings().max_examples * 10)
@given(st.frozensets(own, max_size=4), st.frozensets(own, max_size=2), st.booleans())
def test_plan_that_passes_locks_no_client_out(
    clients: Clients, live: frozenset[Binding], created: frozenset[Binding], deletes_half: bool
) -> None:
    clients.set(live)
    deleted = frozenset(sorted(live)[:2] if deletes_half else ())
    access = read_own_access(clients.client)
    assert access.principal == USER
    assert access.authorizer in (Authorizer.STANDARD, Authorizer.UNKNOWN)
    assert access.rights is not None
    created -= live
    operations = [make_op("acls.create", created)] if created else []
    operations += [make_op("acls.delete", deleted)] if deleted else []
    lockouts = [operation for _, operation, _ in find_lockouts(operations, live, access)]
    clients.set((live | created) - deleted)
    rights = clients.client.find_cluster_rights()
    assert rights is not None
    lost = access.rights.intersection(NEEDED) - rights
    assert lockouts or not lost
    clients.passed += not lockouts
