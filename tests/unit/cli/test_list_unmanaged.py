"""``kdeclare plan --list-unmanaged``: what exists and the project neither declares nor owns."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.exit_codes import ExitCode
from kdeclare.engine.planning.planfile import parse_plan
from kdeclare.engine.planning.planfile_schema import build_plan_schema
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """A declared topic, an orphan, an internal topic, and objects that the project does not manage."""
    for name in ("orders", "orphan"):
        kdeclare.topic(name)
    assert kdeclare("apply", "--yes").code == 0
    (kdeclare.folder / "manifests" / "orphan.yaml").unlink()
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in ("stray", "hidden")])
    kdeclare.cluster.mark_internal("hidden")
    for principal in ("User:alice", "User:bob"):
        for topic in ("a", "b"):
            given = ("--allow-principal", principal, "--operation", "Read", "--topic", topic)
            assert kdeclare("acl", "add", *given, "--yes").code == 0
    kdeclare.write(
        "manifests/bob.yaml", "Acl", "bob", principal="User:bob", bindings=[{"topic": "b", "allow": ["READ"]}]
    )
    return kdeclare


def read_unmanaged(kdeclare: CommandLine, *arguments: str) -> dict[str, int]:
    ran = kdeclare("plan", "--list-unmanaged", "--format", "json", *arguments)
    document: dict[str, Any] = json.loads(ran.out)
    Draft202012Validator(build_plan_schema()).validate(document)
    assert document["unmanaged"]["unread"] == []
    return {f"{item['kind']}/{item['name']}": item["count"] for item in document["unmanaged"]["objects"]}


def test_document_lists_objects_and_counts_groups(shop: CommandLine) -> None:
    assert read_unmanaged(shop) == {"Acl/User:alice": 2, "Acl/User:bob": 1, "Topic/stray": 1}


def test_list_does_not_change_the_plan(shop: CommandLine) -> None:
    with_list = shop("plan", "--list-unmanaged", "--format", "json", "--detailed-exitcode")
    without = shop("plan", "--format", "json", "--detailed-exitcode")
    assert with_list.code == without.code
    documents = [json.loads(ran.out) for ran in (with_list, without)]
    assert documents[0]["plan_id"] == documents[1]["plan_id"]
    assert documents[0].keys() - documents[1].keys() == {"unmanaged"}
    read_back = parse_plan(with_list.out, "it.plan")
    assert read_back.unmanaged is not None
    assert [item.name for item in read_back.unmanaged.objects] == ["User:alice", "User:bob", "stray"]


def test_saved_plan_does_not_contain_the_list(shop: CommandLine) -> None:
    ran = shop("plan", "--list-unmanaged", "--out", "it.plan")
    assert "Topic/stray" in ran.out
    assert "stray" not in (shop.folder / "it.plan").read_text()


@pytest.mark.parametrize("output", ["text", "markdown", "html"])
def test_reports_for_people_contain_the_list(shop: CommandLine, output: str) -> None:
    listed = shop("plan", "--list-unmanaged", "--format", output).out
    for text in ("Unmanaged resources", "Topic/stray", "Acl/User:alice (2 objects)", "import --unmanaged"):
        assert text in listed.replace("&#45;", "-")
    assert "Topic/stray" not in shop("plan", "--format", output).out


def test_empty_list_is_shown(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("apply", "--yes").code == 0
    ran = kdeclare("plan", "--list-unmanaged")
    assert ran.code == ExitCode.OK
    assert "Unmanaged resources (neither declared nor owned, left unchanged):\n  None.\n" in ran.out


def test_names_outside_the_scope_of_the_project_are_left_out(shop: CommandLine) -> None:
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    shop.write("kdeclare.yaml", "Project", "shop", environments=environments, scope={"Topic": ["/o.*/"]})
    assert read_unmanaged(shop) == {"Acl/User:alice": 2, "Acl/User:bob": 1}


def test_part_of_the_project_is_refused(shop: CommandLine) -> None:
    ran = shop("plan", "manifests/orders.yaml", "--list-unmanaged")
    assert ran.code == ExitCode.ERROR
    assert "a manifest that is not loaded may declare resources that look unmanaged" in " ".join(
        ran.err.split()
    )
