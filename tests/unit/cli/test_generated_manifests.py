"""The commands with manifests that declare several resources (``forEach``)."""

import json
import re
from pathlib import Path

import pytest

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
    assert "item 'orders' at topics/events.yaml:2:1, by forEach at manifests/events.yaml:4:1" in ran.err
    assert kdeclare("plan", "--detailed-exitcode").code == 0
