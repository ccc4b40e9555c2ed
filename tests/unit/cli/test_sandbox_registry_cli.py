"""``kdeclare sandbox`` with a schema registry, without starting any."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdeclare import sandbox
from kdeclare.cli.commands.sandbox_text import sandbox_schemas
from kdeclare.sandbox import (
    BrokerStatus,
    GroupSettings,
    GroupStatus,
    RegistryStatus,
    SandboxSettings,
    SandboxStatus,
    WorkerStatus,
)
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.sandbox_starts import record_starts

FOLDER = Path("/sandbox")


def _make_status(settings: SandboxSettings) -> SandboxStatus:
    broker = BrokerStatus(1, 100, settings.port, "rack-a", alive=True, ready=True, log=Path("b.log"))
    workers = tuple(
        WorkerStatus(i, 200 + i, settings.get_worker_url(i), alive=True, ready=True, log=Path(f"w{i}.log"))
        for i in settings.worker_ids
    )
    registry = RegistryStatus(300, settings.registry_url, alive=True, ready=True, log=Path("r.log"))
    return SandboxStatus(
        settings.folder, settings, "abc", (broker,), workers, registry if settings.registry else None
    )


@pytest.fixture
def started_sandboxes(kdeclare: CommandLine) -> list[SandboxSettings]:
    """Record which sandbox would be started, without starting it."""
    return record_starts(kdeclare, _make_status)


def test_sandbox_start_prints_registry_url_last(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    ran = kdeclare("sandbox", "start", "--brokers", "1", "--registry", "--folder", str(FOLDER))
    assert ran.out.splitlines() == ["127.0.0.1:19092", "http://127.0.0.1:19132/apis/ccompat/v7"]
    assert "1 broker and schema registry ready after" in ran.err
    assert "Address for clients, and URL of the schema registry:" in ran.err
    url = ran.out.splitlines()[-1]
    assert f"to the environment in kdeclare.yaml: registries: {{main: {{urls: [{url}]}}}}" in ran.err
    assert started_sandboxes == [SandboxSettings(FOLDER, 1, 1, registry=True)]


def test_sandbox_start_combines_registry_with_workers_and_secure(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    options = ("--brokers", "1", "--registry", "--connect-workers", "1", "--secure")
    ran = kdeclare("sandbox", "start", *options, "--folder", str(FOLDER))
    assert ran.out.splitlines() == [
        "127.0.0.1:19092",
        "https://127.0.0.1:19142",
        "/sandbox/connect/ca.pem",
        "/sandbox/security/admin.properties",
        "/sandbox/security/reader.properties",
        "http://127.0.0.1:19132/apis/ccompat/v7",
    ]
    assert "1 broker, 1 Connect worker and schema registry ready after" in ran.err
    assert started_sandboxes == [SandboxSettings(FOLDER, 1, 1, connect_workers=1, secure=True, registry=True)]


def test_sandbox_start_keeps_and_adds_registry(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    there = SandboxSettings(Path(".sandbox"), 1, 1)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(there))
    kdeclare("sandbox", "start", "--registry")
    there = replace(there, registry=True)
    kdeclare("sandbox", "start")
    assert started_sandboxes == [there, there]


def test_sandbox_status_shows_registry(kdeclare: CommandLine) -> None:
    there = SandboxSettings(FOLDER, 1, 1, registry=True)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(there))
    assert kdeclare("sandbox", "status").out.splitlines() == [
        "Sandbox in /sandbox: ready.",
        "  broker 1  127.0.0.1:19092  rack-a  ready      process 100  b.log",
        "  schema registry  http://127.0.0.1:19132/apis/ccompat/v7  ready      process 300  r.log",
        "Address: 127.0.0.1:19092",
    ]
    document = json.loads(kdeclare("sandbox", "status", "--format", "json").out)
    Draft202012Validator(sandbox_schemas()["sandbox-status"]).validate(document)
    assert document["registry"] == {
        "pid": 300,
        "url": "http://127.0.0.1:19132/apis/ccompat/v7",
        "alive": True,
        "ready": True,
        "log": "r.log",
    }


def test_sandbox_status_without_registry_has_no_field_for_it(kdeclare: CommandLine) -> None:
    there = SandboxSettings(FOLDER, 1, 1)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(there))
    document = json.loads(kdeclare("sandbox", "status", "--format", "json").out)
    Draft202012Validator(sandbox_schemas()["sandbox-status"]).validate(document)
    assert "registry" not in document


def test_sandbox_start_gives_registry_to_each_cluster(kdeclare: CommandLine) -> None:
    groups: list[GroupSettings] = []

    def start_group(settings: GroupSettings, progress: object) -> GroupStatus:
        groups.append(settings)
        return GroupStatus(settings, tuple(map(_make_status, settings.members)))

    kdeclare.monkeypatch.setattr(sandbox, "start_group", start_group)
    ran = kdeclare("sandbox", "start", "--clusters", "2", "--brokers", "1", "--registry", "--folder", "/s")
    assert groups == [GroupSettings(Path("/s"), 2, 1, 1, registry=True)]
    assert ran.out.splitlines() == [
        "127.0.0.1:19092",
        "http://127.0.0.1:19132/apis/ccompat/v7",
        "127.0.0.1:19292",
        "http://127.0.0.1:19332/apis/ccompat/v7",
    ]
    assert "Addresses and files of each cluster:" in ran.err
    kdeclare.monkeypatch.setattr(sandbox, "group_settings", lambda folder: groups[0])
    kdeclare("sandbox", "start", "--folder", "/s")
    assert groups[1] == groups[0]
