"""Clusters with quotas, as rows of both tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa

from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.resources.fleet_capabilities import (
    find_live_key,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.tables.row_builder import (
    Row,
    batch_rows,
    build_declared_cluster_row,
    build_declared_rows,
    build_excluded_rows,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.providers.kafka.client_quota.collector import QuotaState, read_quotas
from kdeclare.providers.kafka.client_quota.diff import diff_quota
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaBody
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.unit.fleet.fleets import make_desired

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOWHERE = PlanContext()

Limits = Mapping[str, float | None]


def make_entity(**names: str | None) -> QuotaEntity:
    """``entity(user="alice", client_id=None)``; None is the default."""
    return QuotaEntity.of({EntityType(type_.replace("_", "-")): name for type_, name in names.items()})


def make_quota(name: str, whom: QuotaEntity, remove: bool = False, **limits: float | None) -> DesiredResource:
    """Build a declared quota."""
    stated = {key: {"default": True} if n is None else n for key, n in whom.to_json().items()}
    more: dict[str, Any] = {"unmanagedLimits": "remove"} if remove else {}
    return make_desired("ClientQuota", name, {"team": "edge"}, entity=stated, limits=limits, **more)


def make_quota_record(item: DesiredResource) -> OwnedRecord:
    """Build the ownership record of a quota that was applied as declared."""
    record = diff_quota(item.id, item, QuotaState(), None).owned
    assert record is not None
    return record


@dataclass
class QuotaCluster:
    """A cluster with its declared and owned quotas."""

    name: str = "eu-1"
    cluster: MemoryCluster = field(default_factory=lambda: MemoryCluster(cluster_id="id-1"))
    desired: Sequence[DesiredResource] = ()
    owned: Mapping[str, OwnedRecord] = field(default_factory=dict)
    left_out: Sequence[DesiredResource] = ()

    def set(self, whom: QuotaEntity, **limits: float | None) -> None:
        """Change limits of an entity like another client."""
        assert self.cluster.alter_quotas({whom: limits}) == {whom: None}

    def declared_rows(self) -> list[Row]:
        """Return the rows of declared and owned quotas."""
        rows = [build_declared_cluster_row(self.name, {}, cluster_id="id-1")]
        for item in self.desired:
            rows += build_declared_rows(self.name, item, item.id, self.owned.get(str(item.id)))
        for item in self.left_out:
            rows += build_excluded_rows(self.name, item, item.id, None)
        for text in sorted(self.owned.keys() - {str(item.id) for item in self.desired}):
            rows += build_declared_rows(self.name, None, ResourceId.parse(text), self.owned[text])
        return rows

    def live_rows(self) -> list[Row]:
        """Return the live rows after a round trip through Arrow, as in a snapshot."""
        rows = read_live_rows(connections_to(self.cluster), self.name, {}, NOW)
        table = pa.Table.from_batches(batch_rows(rows), LIVE)
        return [dict(row) for row in table.to_pylist(maps_as_pydicts="strict")]

    def live(self) -> LiveState:
        """Return the live state that a plan reads."""
        return LiveState(read_quotas(connections_to(self.cluster)))


_ENTITIES = (
    make_entity(user="alice"),
    make_entity(user="Zoë, =*%/"),
    make_entity(user="<default>"),
    make_entity(user=None),
    make_entity(client_id="app"),
    make_entity(client_id=None),
    make_entity(user="alice", client_id=None),
    make_entity(user=None, client_id=None),
    make_entity(user="bob", client_id="app"),
)
_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_VALUES = (1, 2**53, 1000.0)


def generate_quotas(random: Random, name: str = "eu-1") -> QuotaCluster:
    """Generate declared, owned and live entities at random, with limits that often agree."""
    made = QuotaCluster(name)
    wanted: list[DesiredResource] = []
    owned: dict[str, OwnedRecord] = {}
    for number, whom in enumerate((*_ENTITIES, make_entity(ip="10.0.0.1"), make_entity(ip=None))):
        item, before = (_generate_quota(random, f"q{number}", whom) for _ in range(2))
        if random.random() < 0.7:
            wanted.append(item)
        if random.random() < 0.6:
            owned[str(item.id)] = make_quota_record(random.choice([item, item, before]))
        if random.random() < 0.8:
            limits = dict(random.choice([item, item, before]).get_body(ClientQuotaBody).limits)
            if random.random() < 0.3:
                limits[random.choice(_list_keys(whom))] = 77
            if any(limit is not None for limit in limits.values()):
                made.set(whom, **limits)
    made.desired, made.owned = wanted, owned
    assert all(find_live_key(item.id, item.body, None) for item in wanted)
    return made


def _list_keys(whom: QuotaEntity) -> Sequence[str]:
    return ("connection_creation_rate",) if whom.is_ip else _KEYS


def _generate_quota(random: Random, name: str, whom: QuotaEntity) -> DesiredResource:
    keys = random.sample(_list_keys(whom), random.randint(0, len(_list_keys(whom))))
    limits = {key: random.choice([*_VALUES, None]) for key in keys}
    if "request_percentage" in limits and random.random() < 0.5:
        limits["request_percentage"] = 12.5
    return make_quota(name, whom, random.random() < 0.3, **limits)
