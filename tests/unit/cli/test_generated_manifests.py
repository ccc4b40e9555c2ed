"""The commands with manifests that declare several resources (``forEach``)."""

import json
import re
from pathlib import Path

import pytest

from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from tests.unit.cli.command_line import CommandLine
from tests.unit.docs.written import ROOT, list_code_blocks


@pytest.fixture
def documented_example(kdeclare: CommandLine) -> Path:
    """The files of the example in docs/composition.md."""
    for language, text in list_code_blocks(ROOT / "docs" / "composition.md"):
        name = re.match("# (manifests/events.yaml|topics/events.yaml)\n", text)
        if language == "yaml" and name is not None:
            path = kdeclare.folder / name[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return kdeclare.folder


def test_documented_example_is_planned_and_applied(kdeclare: CommandLine, documented_example: Path) -> None:
    plan = json.loads(kdeclare("plan", "--format", "json").out)
    assert {change["id"]: change["action"] for change in plan["changes"]} == {
        "Topic/events.orders": "create",
        "Topic/events.returns": "create",
    }
    assert plan["changes"][1]["source"] == {"file": "topics/events.yaml", "line": 3, "column": 1}
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_removed_item_becomes_an_orphan(kdeclare: CommandLine, documented_example: Path) -> None:
    assert kdeclare("apply", "--yes").code == 0
    items = documented_example / "topics" / "events.yaml"
    items.write_text(items.read_text().replace("returns:", "other:"))
    plan = json.loads(kdeclare("plan", "--format", "json").out)
    assert plan["summary"]["orphaned"] == 1
    assert plan["summary"]["create"] == 1


def test_write_manifest_refuses_generated_manifest(kdeclare: CommandLine, documented_example: Path) -> None:
    assert kdeclare("apply", "--yes").code == 0
    arguments = ("config", "alter", "--topic", "events.orders", "--add-config", "retention.ms=1000")
    ran = kdeclare(*arguments, "--write-manifest", "--yes")
    assert ran.code == 1
    assert "Manifest is generated" in ran.err
    assert "item 'orders' at topics/events.yaml:2:1, by forEach at manifests/events.yaml:7:1" in ran.err
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_ignored_fields_of_generated_resources_can_differ_between_items(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "manifests" / "all.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\n"
        "forEach:\n  a: [configs.retention.ms]\n  b: []\n"
        'metadata: {name: "${each.key}"}\n'
        "spec:\n  partitions: 1\n  replicationFactor: 1\n  configs: {retention.ms: 1000}\n"
        "  lifecycle: {ignoreChanges: '${each.value}'}\n"
    )
    assert kdeclare("apply", "--yes").code == 0
    for name in ("a", "b"):
        alter = ("config", "alter", "--topic", name, "--add-config", "retention.ms=5000", "--yes")
        assert kdeclare(*alter).code == 0
    plan = json.loads(kdeclare("plan", "--format", "json").out)
    assert [change["id"] for change in plan["changes"]] == ["Topic/b"]
    assert kdeclare("apply", "--yes").code == 0
    retention = {
        name: kdeclare.cluster.overrides(ConfigResource(ConfigScope.TOPIC, name))["retention.ms"]
        for name in ("a", "b")
    }
    assert retention == {"a": "5000", "b": "1000"}
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_ad_hoc_change_is_written_to_the_overlay_of_a_generated_resource(
    kdeclare: CommandLine, documented_example: Path
) -> None:
    kdeclare.write(
        "kdeclare.yaml",
        "Project",
        "shop",
        environments={"lab": {"bootstrapServers": "lab:9092", "overlays": ["overlays/lab.yaml"]}},
    )
    overlay = documented_example / "overlays" / "lab.yaml"
    overlay.parent.mkdir()
    overlay.write_text(
        "kind: Topic\nmetadata: {name: events.orders}\n"
        "spec:\n  configs:\n    retention.ms: 2000   # in the lab\n"
    )
    template = (documented_example / "manifests" / "events.yaml").read_bytes()
    items = (documented_example / "topics" / "events.yaml").read_bytes()
    assert kdeclare("apply", "--yes").code == 0
    alter = ("topic", "alter", "events.orders", "--yes", "--write-manifest", "--add-config")
    ran = kdeclare(*alter, "retention.ms=3000")
    assert ran.code == 0, ran.err
    assert "    retention.ms: 3000   # in the lab\n" in overlay.read_text()
    assert (documented_example / "manifests" / "events.yaml").read_bytes() == template
    assert (documented_example / "topics" / "events.yaml").read_bytes() == items
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    # a field that the overlay does not set belongs to the generated manifest
    ran = kdeclare(*alter, "cleanup.policy=compact")
    assert ran.code == 1
    assert "Manifest is generated" in ran.err
    orders = kdeclare.cluster.overrides(ConfigResource(ConfigScope.TOPIC, "events.orders"))
    assert orders == {"retention.ms": "3000"}
