"""The contract of providers, held by the kind ClientQuota on the in-memory cluster."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kdeclare.core.changes import Action
from kdeclare.core.jsontypes import Json
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.provider import PROVIDER
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.testing.provider_contract import Bench, Declared, ProviderContract
from tests.connections import connections_to


def quota(name: str, entity: Json, **limits: Json) -> Declared:
    return Declared("ClientQuota", name, {"entity": entity, "limits": limits}, {"team": name})


class TestClientQuota(ProviderContract):
    """Users, client ids, pairs, addresses and defaults."""

    provider = replace(
        PROVIDER,
        kinds=tuple(kind for kind in PROVIDER.kinds if kind.name == "ClientQuota"),
        operation_types=tuple(found for found in PROVIDER.operation_types if found.name == "quota.alter"),
    )
    before = (
        quota("changed", {"user": "alice"}, producer_byte_rate="1MiB", consumer_byte_rate=2000),
        quota("pair", {"user": "alice", "clientId": {"default": True}}, request_percentage=12.5),
        quota("gone", {"ip": "10.0.0.1"}, connection_creation_rate=5),
        quota("everyone", {"user": {"default": True}}, producer_byte_rate=None),
    )
    after = (
        quota("changed", {"user": "alice"}, producer_byte_rate="2MiB", controller_mutation_rate=0.5),
        quota("pair", {"user": "alice", "clientId": {"default": True}}, request_percentage=25),
        quota("new", {"clientId": "app"}, consumer_byte_rate=1),
        quota("everyone", {"user": {"default": True}}, producer_byte_rate=9000),
    )
    elsewhere = (
        quota("changed", {"user": "alice"}, producer_byte_rate=77),
        quota("pair", {"user": "alice", "clientId": {"default": True}}, request_percentage=77.5),
    )

    def make_system(self, folder: Path) -> object:
        return MemoryCluster()

    def connect(self, system: object) -> Connections:
        assert isinstance(system, MemoryCluster)
        return connections_to(system)

    def dump(self, system: object) -> Json:
        assert isinstance(system, MemoryCluster)
        return {entity.key: dict(limits) for entity, limits in system.quotas().items()}

    def test_the_example_creates_updates_and_deletes(self, make_bench: Callable[[], Bench]) -> None:
        """Limits of what always exists are only ever updated, also the first and the last one."""
        bench = self._started(make_bench)
        plan = bench.plan(self._declare(self.after))
        assert {change.action for change in plan.changes} == {Action.UPDATE}
        assert {change.id.name for change in plan.changes} == {"changed", "pair", "gone", "new", "everyone"}
