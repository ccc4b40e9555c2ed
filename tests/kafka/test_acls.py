"""The kind `Acl` on a real broker with an authorizer: the provider contract, and clients that gain rights."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.clock import Clock, SystemClock
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.security import ADMIN
from tests.conftest import connect_as
from tests.connections import connections_to
from tests.engine.test_kafka_contract import AclContract, acl, select_kinds
from tests.jsontypes import Json
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

PREFIX = f"contract-{uuid.uuid4().hex[:8]}-"
USER, GONE, NEW = (f"User:{PREFIX}{name}" for name in ("changed", "gone", "new"))


class TestAclsOnBroker(AclContract):
    """A system is all bindings of the principals with the prefix.

    Crashes and timeouts are tested in memory.
    """

    cluster: KafkaCluster
    test_killed_at_every_position_of_the_journal = None  # type: ignore[assignment]
    test_killed_before_and_after_every_request = None  # type: ignore[assignment]
    test_a_time_out_is_settled_by_looking = None  # type: ignore[assignment]

    provider = select_kinds("Acl")
    before = (
        acl("changed", USER, {"topic": "x", "allow": ["READ"], "deny": ["WRITE"]}, produce=["yy"]),
        acl("gone", GONE, streams=["app"], hosts=["10.0.0.1"]),
    )
    after = (
        acl("changed", USER, {"topic": "x", "allow": ["READ"], "deny": ["DELETE"]}, produce=["z*"]),
        acl("new", NEW, {"cluster": True, "allow": ["DESCRIBE"]}, observe={"groups": ["*"]}),
    )
    elsewhere = (
        acl(
            "changed",
            USER,
            {"topic": "x", "allow": ["READ"], "deny": ["DELETE"]},
            produce=["z*"],
            unmanagedBindings="remove",
        ),
    )
    undone_elsewhere = (
        acl(
            "changed",
            USER,
            {"topic": "x", "allow": ["READ"], "deny": ["WRITE"]},
            produce=["yy"],
            unmanagedBindings="remove",
        ),
    )

    @pytest.fixture(autouse=True)
    def _client(self, secured_sandbox: SandboxStatus) -> Iterator[None]:
        self.cluster = connect_as(secured_sandbox, ADMIN)
        try:
            yield
            self._empty()
        finally:
            self.cluster.close()

    def _read(self) -> list[Binding]:
        return sorted(binding for binding in self.cluster.acls() if PREFIX in binding.principal)

    def _empty(self) -> None:
        assert set(self.cluster.delete_acls(self._read()).values()) <= {None}

    def make_system(self, folder: Path) -> object:
        self._empty()
        return self.cluster

    def connect(self, system: object) -> Connections:
        return connections_to(self.cluster)

    def make_clock(self) -> Clock:
        return SystemClock()

    def dump(self, system: object) -> Json:
        return list(map(str, self._read()))


def test_many_deletions_delete_exactly_their_bindings(secured_sandbox: SandboxStatus) -> None:
    """Some deletions are sent twice, to measure how long the controller scans."""
    principal = f"User:{PREFIX}many"
    bindings = [
        Binding("topic", f"{PREFIX}{n}", "literal", principal, "*", operation, "ALLOW")
        for n in range(400)
        for operation in ("READ", "WRITE")
    ]
    cluster = connect_as(secured_sandbox, ADMIN)
    try:
        assert set(cluster.create_acls(bindings).values()) == {None}
        deleted = [binding for binding in bindings if binding.operation == "READ"]
        assert set(cluster.delete_acls(deleted).values()) == {None}
        await_bindings(cluster, principal, set(bindings) - set(deleted))
        assert set(cluster.delete_acls(bindings).values()) == {None}
        await_bindings(cluster, principal, set())
    finally:
        cluster.close()


def await_bindings(cluster: KafkaCluster, principal: str, expected: set[Binding]) -> None:
    """Wait until the broker shows these bindings."""
    wait_for(lambda: cluster.acls([principal]) == expected, 90, every=0.1)
