"""One scenario for each kind, with resources that are missing, changed, pending, orphaned and unmanaged.

Each scenario applies manifests with the engine. Then another project, which does not know the first one,
changes, deletes and creates objects in the same systems, like another client.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from kdeclare_flags.service import FlagService

from kdeclare.core.live.known_resources import KnownResource
from kdeclare.core.parts import Connections
from kdeclare.core.provider.installed_providers import InstalledProvider
from kdeclare.core.resources.fleet_capabilities import is_fleet_comparable
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.request import PlanScope
from kdeclare.fleet.findings import FindingKind
from kdeclare.fleet.tables.row_builder import (
    Row,
    batch_rows,
    build_declared_cluster_row,
    build_declared_rows,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import LIVE
from kdeclare.providers.connect.testing import MemoryConnectCluster, MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, Keystore
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.testing import CONFLUENT, MemoryRegistry
from kdeclare.testing.world import Secrets, World, declare
from tests.connections import connections_to
from tests.engine.test_connect_contract import PLACEHOLDER, make_certificate
from tests.jsontypes import Json

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FLAGS = InstalledProvider("flags", "", "", "kdeclare_flags.provider:PROVIDER")
"""The provider of `examples/provider`."""
KEPT, CHANGED, MISSING, PENDING, ORPHANED, UNMANAGED = ROLES = (
    *("kept", "changed", "missing", "pending", "orphaned", "unmanaged"),
)
"""What happens to each resource of a scenario, and its name."""
WORKERS: Mapping[str, tuple[str, ...]] = {role: (f"https://{role}:8083",) for role in ROLES}

FINDINGS = (
    *(FindingKind.MISSING, FindingKind.CHANGED, FindingKind.PENDING),
    *(FindingKind.ORPHANED, FindingKind.UNMANAGED),
)
SECRETS = {"${env.OLD}": "hunter2-hunter2", "${env.NEW}": "correct-horse-battery"}
SESSION = "consumer.session.timeout.ms"
STORE_TYPE = "listeners.https.ssl.keystore.type"

Findings = frozenset[tuple[str, str | None]]
"""The names and paths of the findings of one type."""


@dataclass(frozen=True)
class Scenario:
    """The resources of one kind.

    specs: returns the spec of the resource with a role, and the spec that the other project declares.
    found: the expected findings of each type. A text says why there cannot be such a finding.
    names: the names of the resources, if the roles cannot be names.
    needs: the kinds, names and specs of other resources that must exist.
    """

    specs: Callable[[str], tuple[Json, Json]]
    found: Mapping[FindingKind, Findings | str]
    names: Mapping[str, str] = field(default_factory=dict)
    needs: Sequence[tuple[str, str, Json]] = ()

    def declare(self, kind: str, role: str, *, by_other: bool = False) -> DesiredResource:
        """Return the resource with a role."""
        return declare(kind, self.names.get(role, role), self.specs(role)[by_other], {"team": role})


def expect(*found: tuple[str, str | None]) -> Findings:
    """Return the findings of one type."""
    return frozenset(found)


_ONE_TIME = "A reassignment is applied once and owns nothing. Later moves are pending."
_MOVES = (
    (CHANGED, f"replicas.{CHANGED}-0"),
    (PENDING, f"replicas.{PENDING}-0"),
)


def expect_object(
    path: str, *, unmanaged: str = UNMANAGED, missing: Findings | None = None
) -> dict[FindingKind, Findings]:
    """Return the findings of a kind whose resources are single objects.

    path: the changed field. unmanaged: the name of the unmanaged object.
    """
    return {
        FindingKind.MISSING: missing or expect((MISSING, None)),
        FindingKind.CHANGED: expect((CHANGED, path)),
        FindingKind.PENDING: expect((PENDING, None)),
        FindingKind.ORPHANED: expect((ORPHANED, None)),
        FindingKind.UNMANAGED: expect((unmanaged, None)),
    }


def _topic(retention: str) -> Json:
    return {"partitions": 1, "replicationFactor": 1, "configs": {"retention.ms": retention}}


def _broker(role: str, threads: int) -> Json:
    # the other project sets a second key of a broker that is declared
    key = "num.io.threads" if role == UNMANAGED else "log.cleaner.threads"
    return {"configs": {key: threads}}


def _move(role: str, replica: int) -> Json:
    return {"partitions": [{"topic": role, "partition": 0, "replicas": [replica]}]}


def _quota(role: str, rate: int) -> Json:
    return {"entity": {"user": role}, "limits": {"producer_byte_rate": rate}}


def _group(timeout_ms: int) -> Json:
    return {"configs": {SESSION: timeout_ms}}


def _user(secret: str, iterations: int) -> Json:
    return {"mechanisms": {"SCRAM-SHA-512": {"password": _refer(secret), "iterations": iterations}}}


def _acl(role: str, *operations: str) -> Json:
    return {"principal": f"User:{role}", "bindings": [{"topic": role, "allow": list(operations)}]}


def _worker_config(role: str, location: str) -> Json:
    if role == UNMANAGED:  # the other project sets another key of workers that are declared
        return {"workers": list(WORKERS[KEPT]), "config": {STORE_TYPE: "PKCS12"}}
    return {"workers": list(WORKERS[role]), "config": {LOCATION: location, PASSWORD: PLACEHOLDER}}


def _connector(file: str) -> Json:
    return {"connect": "eu", "class": "FileStreamSink", "config": {"topics": "a", "file": file}}


def _schema(*fields: str) -> Json:
    items = [{"name": name, "type": "long", "default": 0} for name in fields]
    return {"registry": "main", "schema": {"type": "record", "name": "Order", "fields": items}}


def _client(flag: str) -> Json:
    return {"flags": [flag], "token": _refer("OLD")}


def _refer(secret: str) -> Referenced:
    return Referenced(SECRETS[f"${{env.{secret}}}"], f"${{env.{secret}}}")


SCENARIOS: Mapping[str, Scenario] = {
    "Topic": Scenario(lambda role: (_topic("1000"), _topic("2000")), expect_object("configs.retention.ms")),
    "BrokerConfig": Scenario(
        lambda role: (_broker(role, 2), _broker(role, 3)),
        {
            FindingKind.MISSING: "Brokers always have configs. A removed key is changed.",
            FindingKind.CHANGED: expect(
                ("2", "configs.log.cleaner.threads"), ("3", "configs.log.cleaner.threads")
            ),
            FindingKind.PENDING: expect(("4", "configs.log.cleaner.threads")),
            FindingKind.ORPHANED: expect(("5", None)),
            FindingKind.UNMANAGED: expect(("1", "configs.num.io.threads")),
        },
        names={KEPT: "1", CHANGED: "2", MISSING: "3", PENDING: "4", ORPHANED: "5", UNMANAGED: "1"},
    ),
    "Reassignment": Scenario(
        lambda role: (_move(role, 2), _move(role, 3)),
        {
            FindingKind.MISSING: _ONE_TIME,
            FindingKind.CHANGED: _ONE_TIME,
            FindingKind.PENDING: expect(*_MOVES),
            FindingKind.ORPHANED: _ONE_TIME,
            FindingKind.UNMANAGED: _ONE_TIME,
        },
        needs=[("Topic", role, {"assignments": {"0": [1]}}) for role in ROLES],
    ),
    "ClientQuota": Scenario(
        lambda role: (_quota(role, 5), _quota(role, 6)),
        expect_object("limits.producer_byte_rate", unmanaged=f"user={UNMANAGED}"),
    ),
    "GroupConfig": Scenario(
        lambda role: (_group(50_000), _group(55_000)), expect_object(f"configs.{SESSION}")
    ),
    "ClientMetrics": Scenario(
        lambda role: ({"metrics": ["a."]}, {"metrics": ["b."]}), expect_object("configs.metrics")
    ),
    "ScramUser": Scenario(
        lambda role: (_user("OLD", 5000), _user("NEW", 6000)), expect_object("mechanisms.SCRAM-SHA-512")
    ),
    "Acl": Scenario(
        lambda role: (_acl(role, "READ", "WRITE"), _acl(role, "READ")),
        {
            FindingKind.MISSING: "A resource is a set of bindings. A deleted binding is changed.",
            FindingKind.CHANGED: expect(
                (CHANGED, f"bindings.topic:{CHANGED}"), (MISSING, f"bindings.topic:{MISSING}")
            ),
            FindingKind.PENDING: expect((PENDING, f"bindings.topic:{PENDING}")),
            FindingKind.ORPHANED: expect((ORPHANED, None)),
            FindingKind.UNMANAGED: expect((f"User:{UNMANAGED}", None)),
        },
    ),
    "ConnectWorkerConfig": Scenario(
        lambda role: (_worker_config(role, "/old"), _worker_config(role, "/new")),
        {
            FindingKind.MISSING: "Workers always exist. A removed key is changed.",
            FindingKind.CHANGED: expect(
                (CHANGED, f"configs.{LOCATION}"),
                (MISSING, f"configs.{LOCATION}"),
                (MISSING, f"configs.{PASSWORD}"),
            ),
            FindingKind.PENDING: expect((PENDING, f"configs.{LOCATION}"), (PENDING, f"configs.{PASSWORD}")),
            FindingKind.ORPHANED: expect((ORPHANED, None)),
            FindingKind.UNMANAGED: expect((KEPT, f"configs.{STORE_TYPE}")),
        },
        names={UNMANAGED: KEPT},
    ),
    "Connector": Scenario(
        lambda role: (_connector("f"), _connector("g")),
        expect_object("config.file", unmanaged=f"eu/{UNMANAGED}"),
    ),
    "Schema": Scenario(
        lambda role: (_schema("id"), _schema("id", "size")),
        expect_object("schema.Order.size (field-removed)"),
    ),
    "Flag": Scenario(lambda role: ({"rollout": 10}, {"rollout": 77}), expect_object("rollout")),
    "FlagClient": Scenario(
        lambda role: (_client("dark"), _client("light")),
        expect_object("flags"),
        needs=[("Flag", name, {"rollout": 1}) for name in ("dark", "light")],
    ),
}


@dataclass
class ScenarioTables:
    """The rows of both tables of an audit, after a round trip through Arrow."""

    declared: list[Row]
    live: list[Row]


def run_scenario(kind: str, folder: Path, *, ignored: str | None = None) -> ScenarioTables:
    """Apply the resources of a kind, let the other project work, and return what an audit compares.

    The cluster has the name of the kind.

    ignored: a field whose changes the manifests of the audited project ignore.
    """
    scenario = SCENARIOS[kind]
    if ignored is not None:
        scenario = replace(scenario, specs=_add_ignored(scenario.specs, ignored))
    connections = _make_systems(kind, folder)
    mine, others = (World(connections=connections, secrets=Secrets(SECRETS)) for _ in range(2))
    World(connections=connections).apply(*(declare(*item) for item in scenario.needs))
    kept, changed, missing, pending, orphaned = (scenario.declare(kind, role) for role in ROLES[:-1])
    mine.apply(kept, changed, missing, orphaned)
    unmanaged = scenario.declare(kind, UNMANAGED, by_other=True)
    others.apply(changed, missing, unmanaged)
    edited = scenario.declare(kind, CHANGED, by_other=True)
    others.apply(edited, unmanaged, scope=PlanScope(allow_deletes=True))
    declared = {str(item.id): item for item in mine.seal([kept, changed, missing, pending])}
    state = mine.store.read()
    records = state.resources if state is not None else {}
    rows = [build_declared_cluster_row(kind, {})]
    if is_fleet_comparable(kind):  # as when a fleet command reads a project
        for name in sorted({*declared, *records}):
            item, id_ = declared.get(name), ResourceId.parse(name)
            rows += build_declared_rows(kind, item, id_, records.get(name))
    known = [
        KnownResource(id_, declared[name].body if name in declared else None, records.get(name))
        for name in sorted({*declared, *records})
        for id_ in [ResourceId.parse(name)]
        if id_.kind == kind
    ]
    live_rows = read_live_rows(connections, kind, {}, NOW, lambda kinds: known if kind in kinds else [])
    live = pa.Table.from_batches(batch_rows(live_rows), LIVE)
    return ScenarioTables(rows, [dict(row) for row in live.to_pylist(maps_as_pydicts="strict")])


def _add_ignored(
    specs: Callable[[str], tuple[Json, Json]], ignored: str
) -> Callable[[str], tuple[Json, Json]]:
    def add(role: str) -> tuple[Json, Json]:
        mine, other = specs(role)
        return {**mine, "lifecycle": {"ignoreChanges": [ignored]}}, other

    return add


def _make_systems(kind: str, folder: Path) -> Connections:
    groups = {urls: MemoryWorkers(urls) for urls in WORKERS.values()}
    for workers in groups.values():
        workers.files = {path: Keystore(make_certificate(path), "pw") for path in ("/old", "/new")}
        workers.placeholders = {PLACEHOLDER: "pw"}
    registry, flags = MemoryRegistry(CONFLUENT), FlagService(folder / "flags.db")
    flags.create()
    cluster = MemoryCluster(dict.fromkeys(range(1, 6), "a"), cluster_id=f"id-{kind}")
    connections = connections_to(cluster, groups, {"eu": MemoryConnectCluster(lag=0)})
    return connections.with_part(RegistryClients(["main"], lambda name: registry)).with_part(flags)


def expect_findings(kind: str, finding: FindingKind, rows: Iterable[Row]) -> None:
    """Compare the findings of one type with the scenario of the kind.

    A resource that is a set has one finding for each element.
    """
    found = {(row["name"], row["path"]) for row in rows if (row["kind"], row["finding"]) == (kind, finding)}
    expected = SCENARIOS[kind].found[finding]
    assert found == (set() if isinstance(expected, str) else expected)
