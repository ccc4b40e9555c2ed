"""``kdeclare sandbox`` with several clusters, up to the point where brokers would start."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdeclare import sandbox
from kdeclare.cli.commands.sandbox_text import sandbox_schemas
from kdeclare.sandbox import BrokerStatus, GroupSettings, GroupStatus, SandboxSettings, SandboxStatus
from tests.unit.cli.command_line import CommandLine


def _make_member_status(settings: SandboxSettings) -> SandboxStatus:
    broker = BrokerStatus(1, 100, settings.port, "rack-a", alive=True, ready=True, log=Path("1.log"))
    return SandboxStatus(settings.folder, settings, f"id-{settings.port}", (broker,))


def _make_group_status(settings: GroupSettings) -> GroupStatus:
    return GroupStatus(settings, tuple(_make_member_status(one) for one in settings.members))


@pytest.fixture
def started_groups(kdeclare: CommandLine) -> list[GroupSettings]:
    """Record what would be started, without starting anything."""
    settings: list[GroupSettings] = []

    def start_group(wanted: GroupSettings, progress: object) -> GroupStatus:
        settings.append(wanted)
        return _make_group_status(wanted)

    kdeclare.monkeypatch.setattr(sandbox, "start_group", start_group)
    return settings


def test_sandbox_start_prints_one_address_per_line(
    kdeclare: CommandLine, started_groups: list[GroupSettings]
) -> None:
    ran = kdeclare("sandbox", "start", "--clusters", "3", "--brokers", "1")
    assert ran.out == "127.0.0.1:19092\n127.0.0.1:19292\n127.0.0.1:19492\n"
    assert "3 brokers in 3 clusters ready" in ran.err
    assert started_groups == [GroupSettings(Path(".sandbox"), 3, 1, 1)]


def test_sandbox_start_keeps_existing_settings(
    kdeclare: CommandLine, started_groups: list[GroupSettings]
) -> None:
    there = GroupSettings(Path(".sandbox"), 2, 1, 1, 29092)
    kdeclare.monkeypatch.setattr(sandbox, "group_settings", lambda folder: there)
    kdeclare("sandbox", "start")
    kdeclare("sandbox", "start", "--clusters", "1")
    kdeclare("sandbox", "start", "--port", "30000")
    assert started_groups == [there, replace(there, clusters=1), replace(there, port=30000)]


def test_sandbox_start_with_one_cluster_uses_folder_itself(
    kdeclare: CommandLine, started_groups: list[GroupSettings]
) -> None:
    kdeclare.monkeypatch.setattr(sandbox, "start", lambda settings, progress: _make_member_status(settings))
    assert kdeclare("sandbox", "start", "--clusters", "1").out.startswith("127.0.0.1:19092,")
    assert not started_groups


def test_sandbox_start_rejects_zero_clusters(kdeclare: CommandLine) -> None:
    assert kdeclare("sandbox", "start", "--clusters", "0").code == 64


def test_sandbox_status_shows_each_cluster(kdeclare: CommandLine) -> None:
    there = GroupSettings(Path(".sandbox"), 2, 1, 1)
    kdeclare.monkeypatch.setattr(sandbox, "group_settings", lambda folder: there)
    kdeclare.monkeypatch.setattr(sandbox, "group_status", _make_group_status)
    text = kdeclare("sandbox", "status").out
    assert "Sandbox in .sandbox/cluster-1: ready." in text
    assert "Address: 127.0.0.1:19292" in text
    document = json.loads(kdeclare("sandbox", "status", "--format", "json").out)
    Draft202012Validator(sandbox_schemas()["sandbox-status"]).validate(document)
    assert document["format_version"] == "1.0"
    assert (document["ready"], document["bootstrap"], document["brokers"]) == (True, "", [])
    shown = [(one["name"], one["bootstrap"], one["cluster_id"]) for one in document["clusters"]]
    assert shown == [
        ("cluster-1", "127.0.0.1:19092", "id-19092"),
        ("cluster-2", "127.0.0.1:19292", "id-19292"),
    ]
    assert "format_version" not in document["clusters"][0]


def test_sandbox_status_json_of_one_cluster_is_unchanged(kdeclare: CommandLine) -> None:
    kdeclare.monkeypatch.setattr(
        sandbox, "status", lambda folder: _make_member_status(SandboxSettings(folder, 1, 1))
    )
    document = json.loads(kdeclare("sandbox", "status", "--format", "json").out)
    Draft202012Validator(sandbox_schemas()["sandbox-status"]).validate(document)
    assert list(document) == [
        "format_version",
        "folder",
        "exists",
        "running",
        "ready",
        "bootstrap",
        "cluster_id",
        "brokers",
        "workers",
        "ca_file",
        "client_files",
    ]
    assert (document["workers"], document["ca_file"]) == ([], "")


def test_sandbox_stop_and_reset_affect_all_clusters(kdeclare: CommandLine) -> None:
    there = GroupSettings(Path(".sandbox"), 2, 1, 1)
    deleted: list[GroupSettings] = []
    kdeclare.monkeypatch.setattr(sandbox, "group_settings", lambda folder: there)
    kdeclare.monkeypatch.setattr(sandbox, "group_status", _make_group_status)
    kdeclare.monkeypatch.setattr(sandbox, "stop_group", _make_group_status)
    kdeclare.monkeypatch.setattr(sandbox, "reset_group", deleted.append)
    assert "Stopped" in kdeclare("sandbox", "stop").err
    assert kdeclare("sandbox", "reset").code == 64
    assert kdeclare("sandbox", "reset", answer="no\n").code == 1
    assert not deleted
    assert kdeclare("sandbox", "reset", "--yes").code == 0
    assert deleted == [there]
