"""Conformance cases for schemas, through the command line: in memory, and on Apicurio Registry.

Every case is named in the docstring of its test. The tests share a registry, so subjects have a prefix.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.schema_registry.client import rest
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    SchemaContent,
    SchemaReference,
    SchemaRegistry,
    SchemaType,
)
from kdeclare.providers.schema_registry.testing import APICURIO, CONFLUENT, KARAPACE, MemoryRegistry
from tests.commands import Ran, run_here
from tests.jsontypes import Json


@dataclass
class SchemasBed:
    """A project with one registry.

    registry: the connection of another client, whose requests are not recorded.
    registered: the subjects and contents that commands register.
    """

    folder: Path
    url: str
    registry: SchemaRegistry
    prefix: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}-")
    registered: list[tuple[str, SchemaContent]] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "manifests").mkdir()
        environment: Json = {"bootstrapServers": "lab:9092", "registries": {"main": {"urls": [self.url]}}}
        spec: Json = {"manifests": ["manifests"], "environments": {"lab": environment}}
        self._write(self.folder / "kdeclare.yaml", "Project", "conformance", spec)

    def _write(self, file: Path, kind: str, name: str, spec: Json) -> None:
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        file.write_text(yaml.safe_dump(document, sort_keys=False))

    def record(self, patch: pytest.MonkeyPatch, registry_class: type) -> None:
        """Record the registrations of commands."""
        send = registry_class.register  # type: ignore[attr-defined]

        def register(registry: object, subject: str, content: SchemaContent) -> object:
            if registry is not self.registry:
                self.registered.append((subject, content))
            return send(registry, subject, content)

        patch.setattr(registry_class, "register", register)

    def name(self, short: str) -> str:
        """Return a subject that no other test uses."""
        return f"{self.prefix}{short}"

    def declare(self, short: str, schema: Json, **more: Json) -> None:
        """Write a manifest."""
        name = self.name(short)
        self._write(
            self.folder / "manifests" / f"{short}.yaml",
            "Schema",
            name,
            {"registry": "main", "type": "AVRO", "schema": schema, **more},
        )

    def register(self, short: str, *texts: str) -> None:
        """Register texts as another client."""
        for text in texts:
            self.registry.register(self.name(short), SchemaContent(SchemaType.AVRO, text))

    def list_versions(self, short: str) -> list[int]:
        """Return the versions of a subject."""
        return list(self.registry.list_versions(self.name(short)))

    def __call__(self, *arguments: str) -> Ran:
        """Run a command."""
        return run_here(self.folder, *arguments)

    def plan(self, *options: str) -> tuple[int, dict[str, Any]]:
        """Make a plan. Return the exit code with --detailed-exitcode, and the plan as JSON."""
        ran = self("plan", "--detailed-exitcode", "--format", "json", *options)
        return int(ran.code), json.loads(ran.out)

    def apply(self) -> Ran:
        """Apply the manifests, which must succeed."""
        ran = self("apply", "--yes")
        assert ran.code == 0, ran
        return ran

    def expect_up_to_date(self) -> None:
        """Check that a plan has no changes."""
        ran = self("plan", "--detailed-exitcode")
        assert (ran.code, ran.out.startswith("No changes.")) == (0, True), ran


@pytest.fixture(params=["confluent", "karapace", "apicurio", pytest.param("real", marks=pytest.mark.kafka)])
def bed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SchemasBed]:
    """A project with one registry: in memory with the behavior of each product, and Apicurio Registry."""
    from kdeclare.providers.kafka import connection

    memory_cluster = MemoryCluster()
    monkeypatch.setattr(connection, "connect_cluster", lambda *_: memory_cluster)
    if request.param != "real":
        behaviors = {"confluent": CONFLUENT, "karapace": KARAPACE, "apicurio": APICURIO}
        registry = MemoryRegistry(behaviors[request.param])
        monkeypatch.setattr(rest, "open_rest_registry", lambda *_: registry)
        bed = SchemasBed(tmp_path, "http://127.0.0.1:1", registry.elsewhere())
        bed.record(monkeypatch, MemoryRegistry)
        yield bed
        return
    from kdeclare.http.target import HttpTarget

    url: str = request.getfixturevalue("registry_url")
    client = rest.open_rest_registry(HttpTarget((url,)))
    try:
        bed = SchemasBed(tmp_path, url, client)
        bed.record(monkeypatch, rest.RestRegistry)
        yield bed
    finally:
        client.close()


def record(name: str, **fields: Json) -> dict[str, Json]:
    """Return an Avro record."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def pick(document: Mapping[str, Any], *keys: str) -> tuple[Any, ...]:
    """Return the values of some keys."""
    return tuple(document[key] for key in keys)


def test_references_are_registered_first(bed: SchemasBed) -> None:
    """P-SCH-01."""
    order = bed.name("order")
    bed.declare("line", record("x.Line", o="x.Order"), references=[{"name": "x.Order", "subject": order}])
    bed.declare("order", record("x.Order", id="string"))
    bed.apply()
    assert [subject for subject, _ in bed.registered] == [order, bed.name("line")]
    assert bed.registered[1][1].references == (SchemaReference("x.Order", order, 1),)
    bed.expect_up_to_date()


def test_layout_is_no_change(bed: SchemasBed) -> None:
    """P-SCH-02."""
    text = '{"type":"record","name":"Order","namespace":"x","fields":[{"name":"id","type":"string"}]}'
    bed.register("order", text)
    bed.declare(
        "order",
        {"namespace": "x", "name": "Order", "fields": [{"type": "string", "name": "id"}], "type": "record"},
    )
    bed.expect_up_to_date()
    bed.apply()
    assert (bed.registered, bed.list_versions("order")) == ([], [1])


def test_incompatible_schema_is_found_while_planning(bed: SchemasBed) -> None:
    """P-SCH-03."""
    bed.register("order", json.dumps(record("Order", id="string")))
    bed.registry.set_level(bed.name("order"), CompatibilityLevel.BACKWARD)
    bed.declare("order", record("Order", id="int"), lifecycle={"adopt": True})
    code, plan = bed.plan()
    (problem,) = [d for d in plan["diagnostics"] if d["severity"] == "error"]
    assert (code, problem["code"]) == (1, "schema-incompatible")
    assert (problem["place"]["line"], problem["place"]["column"]) == (8, 3)
    assert bed("apply", "--yes").code == 1
    assert (bed.registered, bed.list_versions("order")) == ([], [1])


def test_older_version_is_an_error(bed: SchemasBed) -> None:
    """P-SCH-04."""
    first, second = record("Order", id="string"), record("Order", id="string", size="long")
    bed.register("order", json.dumps(first))
    bed.registry.set_level(bed.name("order"), CompatibilityLevel.NONE)
    bed.register("order", json.dumps(second))
    bed.declare("order", first)
    code, plan = bed.plan()
    (problem,) = [d for d in plan["diagnostics"] if d["severity"] == "error"]
    assert (code, problem["code"], plan["operations"]) == (1, "schema-older-version", [])
    assert "version 1 of subject" in problem["detail"]
    assert (bed.registered, bed.list_versions("order")) == ([], [1, 2])
