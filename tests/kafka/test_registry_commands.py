"""`kdeclare schema-registry` on a real Apicurio Registry: list, describe, diff and check."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.http.target import HttpTarget
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    SchemaReference,
    SchemaRegistry,
)
from kdeclare.providers.schema_registry.client.rest import open_rest_registry
from tests.commands import Ran, run_here
from tests.registries import ID, build_avro, build_record

pytestmark = pytest.mark.kafka

V1 = build_record(ID)
V2 = build_record(ID, ("amount", "int", 0))
INCOMPATIBLE = build_record(ID, ("amount", "int", 0), ("note", "string"))


@pytest.fixture
def registry(registry_url: str) -> Iterator[SchemaRegistry]:
    registry = open_rest_registry(HttpTarget((registry_url,)))
    yield registry
    registry.close()


def test_subjects_are_listed_compared_and_checked(
    registry: SchemaRegistry, registry_url: str, tmp_path: Path
) -> None:
    # Nothing listens at this address: the commands need no broker.
    environment = {"bootstrapServers": "127.0.0.1:1", "registries": {"main": {"urls": [registry_url]}}}
    project = {
        "apiVersion": "kdeclare/v1",
        "kind": "Project",
        "metadata": {"name": "shop"},
        "spec": {"environments": {"lab": environment}},
    }
    (tmp_path / "kdeclare.yaml").write_text(json.dumps(project))

    def run(*arguments: str) -> Ran:
        return run_here(tmp_path, "schema-registry", *arguments)

    def read(*arguments: str, code: ExitCode = ExitCode.OK) -> dict[str, Any]:
        ran = run(*arguments, "--format", "json")
        assert ran.code == code, ran
        document: dict[str, Any] = json.loads(ran.out)
        return document

    def find_row(subject: str, *options: str) -> dict[str, Any] | None:
        rows = read("list", *options)["subjects"]
        return next((row for row in rows if row["subject"] == subject), None)

    prefix = f"cmd{uuid.uuid4().hex[:8]}"
    orders, user = f"{prefix}-orders-value", f"{prefix}-user"
    registry.register(orders, V1)
    registry.register(orders, V2)
    registry.set_level(orders, CompatibilityLevel.BACKWARD)
    reference = SchemaReference("x.Order", orders, 2)
    fields = [{"name": "order", "type": "x.Order"}]
    registry.register(user, build_avro({"type": "record", "name": "x.User", "fields": fields}, reference))

    row = find_row(orders)
    assert row is not None
    assert (row["type"], row["latest_version"], row["versions"]) == ("AVRO", 2, 2)
    assert (row["level"], row["level_origin"], row["owned_by"]) == ("BACKWARD", "own", None)
    row = find_row(user)
    assert row is not None
    assert (row["level"], row["level_origin"]) == ("NONE", "unknown")

    described = read("describe", orders)
    assert described["text"] == V2.text
    assert described["referrers"] == [{"subject": user, "version": 1}]
    assert described["naming"]["topic"] == f"{prefix}-orders"
    assert read("describe", user)["references"] == [{"name": "x.Order", "subject": orders, "version": 2}]

    compared = read("diff", orders, "--detailed-exitcode", code=ExitCode.CHANGES)
    assert [one["kind"] for one in compared["differences"]] == ["field-added"]

    file = tmp_path / "order.avsc"
    check = ("check", str(file), "--subject", orders)
    file.write_text(json.dumps(json.loads(V2.text), indent=4))  # the registry would take it as a new version
    checked = read(*check)
    assert checked["registration"]["outcome"] == "latest-version"
    assert checked["compatibility"]["result"] == "compatible"
    assert "No differences, except in the layout" in run("diff", orders, "--file", str(file)).out
    file.write_text(V1.text)
    assert read(*check)["registration"]["outcome"] == "older-version"
    file.write_text(INCOMPATIBLE.text)
    checked = read(*check, code=ExitCode.ERROR)
    assert checked["compatibility"]["result"] == "incompatible"
    assert checked["registration"]["outcome"] == "new-version"
    assert registry.list_versions(orders) == (1, 2)

    registry.delete_subject(user)
    assert find_row(user) is None
    row = find_row(user, "--deleted")
    assert row is not None
    assert (row["latest_version"], row["versions"], row["deleted_versions"]) == (None, 0, 1)
