"""A fleet of one cluster with two Connect clusters and two schema registries, one of each out of order."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import time_machine

from kdeclare.cli.main import main
from kdeclare.core.documents import dump_document
from kdeclare.core.jsontypes import dump_canonical_json
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from kdeclare.engine.state.document import encode_stored_state
from kdeclare.fleet.local.counts import summarize_snapshot_clusters
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.tables.row_builder import read_live_rows
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.snapshots import SnapshotRecord, format_snapshot_path
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client.port import UNREACHABLE, SchemaContent, SchemaType
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.testing import CONFLUENT, MemoryRegistry
from kdeclare.testing.world import World, declare
from tests.connections import connections_to
from tests.jsontypes import Json
from tests.spark.real_fleet import TAKEN_AT, write_rows

CLUSTER_NAME = "eu-1"
REFUSED = Fault(UNREACHABLE, "connection refused")
Identity = tuple[str, str, str, str | None]
"""The kind and name of a finding, its type and its path."""


def make_connector(endpoint: str, file: str) -> Json:
    return {"connect": endpoint, "class": "FileStreamSink", "config": {"topics": "a", "file": file}}


def make_schema(registry: str, *fields: str) -> Json:
    items = [{"name": name, "type": "long", "default": 0} for name in fields]
    return {"registry": registry, "schema": {"type": "record", "name": "Order", "fields": items}}


DECLARED: Mapping[tuple[str, str], tuple[Json, Json]] = {
    ("Connector", "edited"): (make_connector("eu", "f"), make_connector("eu", "g")),
    ("Connector", "fine"): (make_connector("us", "f"), make_connector("us", "f")),
    ("Schema", "wider"): (make_schema("spare", "id"), make_schema("spare", "id", "size")),
    ("Schema", "same"): (make_schema("main", "id"), make_schema("main", "id")),
}
"""The declared resources, and what another client makes of them."""
ORPHANS: Mapping[tuple[str, str], Json] = {
    ("Connector", "old"): make_connector("eu", "f"),
    ("Schema", "past"): {**make_schema("spare", "id"), "onDelete": "keep"},
}
"""Resources that were applied and are no longer declared."""


def drop_column(file: Path, column: str) -> None:
    """Make a file look as if an earlier version of kdeclare had written it."""
    table = pq.ParquetFile(file).read()
    assert column in table.column_names
    pq.write_table(table.drop_columns(column), file)


@dataclass
class Outages:
    """The fleet and its systems. The Connect cluster ``eu`` and the registry ``spare`` can be down."""

    folder: Path
    kafka: MemoryCluster = field(default_factory=lambda: MemoryCluster({1: "a"}, cluster_id="id-1"))
    connect: dict[str, MemoryConnectCluster] = field(
        default_factory=lambda: {name: MemoryConnectCluster(lag=0) for name in ("eu", "us")}
    )
    registries: dict[str, MemoryRegistry] = field(
        default_factory=lambda: {name: MemoryRegistry(CONFLUENT) for name in ("main", "spare")}
    )
    days: int = 0

    @property
    def connections(self) -> Connections:
        registries = RegistryClients(self.registries, self.registries.__getitem__)
        return connections_to(self.kafka, None, self.connect).with_part(registries)

    @property
    def audits(self) -> Path:
        return self.folder / "audits"

    @property
    def snapshots(self) -> Path:
        return self.folder / "snapshots"

    def set_up(self) -> None:
        """Apply the project, let another client work, and write the files of the fleet."""
        world, other = World(connections=self.connections), World(connections=self.connections)
        declared = [declare(kind, name, mine) for (kind, name), (mine, _) in DECLARED.items()]
        world.apply(*declared, *(declare(kind, name, spec) for (kind, name), spec in ORPHANS.items()))
        edited: list[DesiredResource] = [
            declare(kind, name, theirs) for (kind, name), (mine, theirs) in DECLARED.items() if mine != theirs
        ]
        for item in edited:
            other.apply(item)
            other.apply(item, scope=PlanScope(adopt=True))
        self.create_connector("eu", "unknown")
        self.create_connector("us", "other")
        self.register("spare", "stray")
        documents = [
            {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": mine}
            for (kind, name), (mine, _) in DECLARED.items()
        ]
        self.write("manifests/all.yaml", "\n---\n".join(json.dumps(item) for item in documents))
        environments = {CLUSTER_NAME: {"bootstrapServers": "localhost:1"}}
        self.write_document("kdeclare.yaml", "Project", {"environments": environments})
        entry = {"name": CLUSTER_NAME, "project": "kdeclare.yaml", "env": CLUSTER_NAME}
        self.write_document("fleet.yaml", "Fleet", {"clusters": [entry]})
        state = world.store.read()
        assert state is not None
        self.write(f"state/shop/{CLUSTER_NAME}/state.json", encode_stored_state(state).decode())

    def create_connector(self, endpoint: str, name: str) -> None:
        config = {"connector.class": "FileStreamSink", "topics": "a", "file": "f"}
        self.connect[endpoint].elsewhere().create_connector(name, config)

    def register(self, registry: str, subject: str) -> None:
        schema = make_schema(registry, "id")["schema"]
        content = SchemaContent(SchemaType.AVRO, dump_canonical_json(schema))
        self.registries[registry].elsewhere().register(subject, content)

    def write_document(self, name: str, kind: str, spec: Json) -> None:
        head = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": "shop"}}
        self.write(name, json.dumps({**head, "spec": spec}))

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def go_down(self) -> None:
        self.connect["eu"].faults.fail(REFUSED, nth=None, method="list_connectors")
        self.registries["spare"].faults.fail(REFUSED, nth=None, method="identify")

    def come_back(self) -> None:
        self.connect["eu"].faults.clear()
        self.registries["spare"].faults.clear()

    def take_snapshot(self) -> str:
        """Read the cluster on the next day, and return the id of the snapshot."""
        taken_at = TAKEN_AT + timedelta(days=self.days)
        self.days += 1
        snapshot_id = f"{taken_at:%Y%m%dT%H%M%SZ}-0001"
        rows = list(read_live_rows(self.connections, CLUSTER_NAME, {}, taken_at))
        path = format_snapshot_path(snapshot_id, taken_at)
        write_rows(self.snapshots / path, {CLUSTER_NAME: rows})
        if self.days == 1:
            drop_column(self.snapshots / path / f"cluster={CLUSTER_NAME}" / "part-0.parquet", "is_part")
        record = SnapshotRecord(snapshot_id, "shop", taken_at, 1.0, path, summarize_snapshot_clusters(rows))
        self.write(f"snapshots/snapshots/{snapshot_id}.json", json.dumps(dump_document(record)))
        return snapshot_id

    def audit(self, engine: str, *, is_complete: bool = True) -> dict[str, Any]:
        """Audit the latest snapshot at the time when it was taken, and return the summary."""
        line = ["fleet", "audit", str(self.folder / "fleet.yaml"), "--out", str(self.audits)]
        line += ["--snapshot", str(self.snapshots), "--engine", engine]
        with time_machine.travel(TAKEN_AT + timedelta(days=self.days - 1)):
            assert main(line) == (0 if is_complete else 1)
        summary: dict[str, Any] = json.loads((self.audits / "summary.json").read_text())
        return summary

    def read(self, table: str, summary: Mapping[str, Any]) -> dict[Identity, dict[str, Any]]:
        """Return the findings in a table of an audit."""
        rows = read_rows(LocalStorage(self.audits), f"{table}/audit_id={summary['audit_id']}", FINDINGS)
        return {(row["kind"], row["name"], row["finding"], row["path"]): row for row in rows}

    def run(self, capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, dict[str, Any]]:
        """Run a fleet command that prints JSON, and return the exit code and the document."""
        capsys.readouterr()
        code = main(["fleet", *line, "--format", "json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document


DRIFT: frozenset[Identity] = frozenset(
    {
        ("Connector", "edited", "changed", "config.file"),
        ("Connector", "old", "orphaned", None),
        ("Connector", "eu/unknown", "unmanaged", None),
        ("Schema", "wider", "changed", "schema.Order.size (field-removed)"),
        ("Schema", "past", "orphaned", None),
        ("Schema", "stray", "unmanaged", None),
    }
)
"""The findings about objects of the systems that go down."""
OTHER: Identity = ("Connector", "us/other", "unmanaged", None)
"""The finding about an object of a Connect cluster that stays up."""
UNREACHABLE_FINDINGS: frozenset[Identity] = frozenset(
    (kind, name, "unreachable", None)
    for kind, name in (("Connector", "edited"), ("Connector", "old"), ("Schema", "wider"), ("Schema", "past"))
)


def expect_nights(fleet: Outages, engines: Iterator[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Audit the fleet in three nights. In the second night, two systems are down.

    engines: the engine of each command.
    """
    fleet.set_up()
    first_id = fleet.take_snapshot()
    first = fleet.audit(next(engines))
    assert fleet.read("findings", first).keys() == {*DRIFT, OTHER}
    assert not fleet.read("unseen", first)

    fleet.go_down()
    fleet.connect["us"].elsewhere().delete_connector("other")
    second_id = fleet.take_snapshot()
    second = fleet.audit(next(engines), is_complete=False)
    unreachable = fleet.read("findings", second)
    assert unreachable.keys() == UNREACHABLE_FINDINGS
    assert all("did not respond: connection refused." in row["message"] for row in unreachable.values())
    assert fleet.read("unseen", second).keys() == DRIFT
    assert (second["since"]["new"], second["since"]["mended"]) == (len(UNREACHABLE_FINDINGS), 1)
    (cluster,) = second["clusters"]
    assert (
        "Not all Connector objects were read: connect/eu did not respond: connection refused."
        in (cluster["error"])
    )
    assert "Not all Schema objects were read: registries/spare did not respond" in cluster["error"]
    report = ("report", "--out", str(fleet.audits), "--since", first["audit_id"], "--engine", next(engines))
    _, document = fleet.run(capsys, *report)
    assert [item["name"] for item in document["fixed"]] == ["us/other"]

    fleet.come_back()
    third_id = fleet.take_snapshot()
    third = fleet.audit(next(engines))
    found = fleet.read("findings", third)
    assert found.keys() == DRIFT
    assert not fleet.read("unseen", third)
    assert third["since"]["new"] == 0
    assert {row["first_seen"] for row in found.values()} == {
        datetime.fromisoformat(first["clusters"][0]["taken_at"])
    }

    diff = ("diff", "--out", str(fleet.snapshots), "--engine", next(engines))
    code, document = fleet.run(capsys, *diff, first_id, second_id)
    assert code == 1
    assert [(item["name"], item["change"]) for item in document["changes"]] == [("us/other", "gone")]
    assert [(item["kind"], item["name"], item["prefix"]) for item in document["unknown"]] == [
        ("Connector", None, "eu/"),
        ("Schema", None, None),
    ]
    code, document = fleet.run(capsys, *diff, second_id, third_id)
    assert (code, document["changes"]) == (1, [])
    code, document = fleet.run(capsys, *diff, first_id, third_id)
    assert (code, document["unknown"]) == (0, [])
    assert [item["name"] for item in document["changes"]] == ["us/other"]

    history = ("history", "--out", str(fleet.snapshots), "--engine", next(engines), CLUSTER_NAME)
    for name in ("Connector/eu/unknown", "Connector/eu/edited", "Schema/stray", "Schema/wider"):
        _, document = fleet.run(capsys, *history, name)
        assert [turn["turn"] for turn in document["history"]] == ["appeared", "unknown"], name
        assert "did not respond: connection refused." in document["history"][1]["error"]
    _, document = fleet.run(capsys, *history, "Connector/us/other")
    assert [turn["turn"] for turn in document["history"]] == ["appeared", "gone"]
