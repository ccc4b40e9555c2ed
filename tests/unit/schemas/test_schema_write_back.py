"""`rollback --write-manifest` brings the manifest of a schema, and the file beside it, in line."""

import json
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import UNREACHABLE
from kdeclare.providers.schema_registry.testing import MemoryRegistry
from tests.unit.cli.command_line import CommandLine
from tests.unit.schemas.conftest import write_schema
from tests.unit.schemas.test_schema_commands import ID, ORDER, ORDER_WITH_SIZE, apply

HEAD = "apiVersion: kdeclare/v1\nkind: Schema\nmetadata: {name: order}\n"


def write_files(
    kdeclare: CommandLine, schema: Any, level: str = "BACKWARD", path: str = "order.avsc"
) -> None:
    """Write a manifest with a comment, and the file with the schema."""
    folder = kdeclare.folder / "manifests"
    (folder / path).write_text(json.dumps(schema, indent=2) + "\n")
    (folder / "order.yaml").write_text(
        f"{HEAD}spec:\n  file: {path}   # of the shop\n  compatibility: {level}\n"
    )


def roll_back(kdeclare: CommandLine) -> str:
    ran = kdeclare("rollback", "--yes", "--write-manifest")
    assert ran.code == ExitCode.OK, ran
    return ran.out + ran.err


def expect_no_changes(kdeclare: CommandLine) -> None:
    plan = kdeclare("plan", "--detailed-exitcode")
    assert plan.code == ExitCode.OK, plan


def test_rollback_writes_the_schema_file_and_the_level(
    kdeclare: CommandLine, registry: MemoryRegistry
) -> None:
    write_files(kdeclare, ORDER)
    folder = kdeclare.folder / "manifests"
    texts = [(folder / name).read_text() for name in ("order.avsc", "order.yaml")]
    apply(kdeclare)
    write_files(kdeclare, ORDER_WITH_SIZE, "FULL")
    apply(kdeclare)
    said = roll_back(kdeclare)
    assert "manifests/order.avsc" in said
    assert "manifests/order.yaml" in said
    assert "The manifests are unchanged" not in said
    assert [(folder / name).read_text() for name in ("order.avsc", "order.yaml")] == texts
    expect_no_changes(kdeclare)


def test_rollback_leaves_files_that_are_already_reverted(
    kdeclare: CommandLine, registry: MemoryRegistry
) -> None:
    write_files(kdeclare, ORDER)
    apply(kdeclare)
    write_files(kdeclare, ORDER_WITH_SIZE)
    apply(kdeclare)
    write_files(kdeclare, ORDER)
    file = kdeclare.folder / "manifests" / "order.avsc"
    file.write_text(json.dumps(ORDER))  # another layout of the same schema
    assert "already declare" in roll_back(kdeclare)
    assert file.read_text() == json.dumps(ORDER)


@pytest.mark.parametrize("as_text", [True, False])
def test_rollback_writes_an_inline_schema(
    kdeclare: CommandLine, registry: MemoryRegistry, *, as_text: bool
) -> None:
    for schema in (ORDER, ORDER_WITH_SIZE):
        write_schema(kdeclare, json.dumps(schema) if as_text else schema)
        apply(kdeclare)
    roll_back(kdeclare)
    expect_no_changes(kdeclare)
    assert registry.list_versions("order") == (1,)


def test_rollback_of_a_deletion_writes_a_new_manifest(
    kdeclare: CommandLine, registry: MemoryRegistry
) -> None:
    write_schema(kdeclare, ORDER, compatibility="FULL")
    write_schema(kdeclare, {**ORDER, "name": "x.Other"}, "other")
    apply(kdeclare)
    (kdeclare.folder / "manifests" / "order.yaml").unlink()
    apply(kdeclare, "--allow-deletes")
    roll_back(kdeclare)
    expect_no_changes(kdeclare)


def test_file_of_two_manifests_is_not_written(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    write_files(kdeclare, ORDER)
    (kdeclare.folder / "manifests" / "copy.yaml").write_text(
        f"{HEAD.replace('order', 'copy')}spec: {{file: ./order.avsc}}\n"
    )
    apply(kdeclare)
    write_files(kdeclare, ORDER_WITH_SIZE)
    apply(kdeclare)
    ran = kdeclare("rollback", "--yes", "--write-manifest")
    assert ran.code == ExitCode.ERROR, ran
    assert "File is shared" in ran.err
    assert "Schema/copy also uses it" in ran.err
    assert registry.list_versions("order") == (1, 2)


def test_file_outside_the_project_is_not_written(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    path = "../../outside.avsc"
    write_files(kdeclare, ORDER, path=path)
    apply(kdeclare)
    write_files(kdeclare, ORDER_WITH_SIZE, path=path)
    apply(kdeclare)
    text = (kdeclare.folder.parent / "outside.avsc").read_text()
    ran = kdeclare("rollback", "--yes", "--write-manifest")
    assert ran.code == ExitCode.ERROR, ran
    assert "File is outside the project" in ran.err
    assert (kdeclare.folder.parent / "outside.avsc").read_text() == text
    assert registry.list_versions("order") == (1, 2)


def test_type_is_not_written(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    write_schema(kdeclare, ORDER, compatibility="NONE")
    apply(kdeclare)
    write_schema(kdeclare, {"type": "object"}, type="JSON", compatibility="NONE")
    apply(kdeclare)
    ran = kdeclare("rollback", "--yes", "--write-manifest")
    assert ran.code == ExitCode.ERROR, ran
    assert "In Schema/order, the type of the schema changes." in ran.err
    assert registry.list_versions("order") == (1, 2)


def test_failed_rollback_does_not_write_the_manifest(kdeclare: CommandLine, registry: MemoryRegistry) -> None:
    write_files(kdeclare, ORDER)
    apply(kdeclare)
    write_files(kdeclare, {**ORDER, "fields": [ID], "doc": "Changed."})
    apply(kdeclare)
    changed = (kdeclare.folder / "manifests" / "order.avsc").read_text()
    registry.faults.fail(Fault(UNREACHABLE, "connection refused"), nth=None, method="delete_version")
    ran = kdeclare("rollback", "--yes", "--write-manifest")
    assert ran.code != ExitCode.OK, ran
    assert (kdeclare.folder / "manifests" / "order.avsc").read_text() == changed
