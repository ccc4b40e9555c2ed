"""``kdeclare sandbox`` with Connect workers, without starting any."""

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
        WorkerStatus(
            worker_id,
            None if worker_id == 2 else 200 + worker_id,
            settings.get_worker_url(worker_id),
            alive=worker_id != 2,
            ready=worker_id != 2,
            log=Path(f"w{worker_id}.log"),
        )
        for worker_id in settings.worker_ids
    )
    return SandboxStatus(settings.folder, settings, "abc", (broker,), workers)


@pytest.fixture
def started_sandboxes(kdeclare: CommandLine) -> list[SandboxSettings]:
    """Record which sandbox would be started, without starting it."""
    return record_starts(kdeclare, _make_status)


def test_sandbox_start_prints_worker_urls_and_ca(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    line = ("sandbox", "start", "--brokers", "1", "--connect-workers", "2", "--folder", str(FOLDER))
    ran = kdeclare(*line)
    assert ran.out.splitlines() == [
        "127.0.0.1:19092",
        "https://127.0.0.1:19142",
        "https://127.0.0.1:19143",
        "/sandbox/connect/ca.pem",
    ]
    assert "1 broker and 2 Connect workers ready" in ran.err
    assert started_sandboxes == [SandboxSettings(FOLDER, 1, 1, connect_workers=2)]


def test_sandbox_start_keeps_existing_workers(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    there = SandboxSettings(Path(".sandbox"), 1, 1, connect_workers=2)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(there))
    kdeclare("sandbox", "start")
    kdeclare("sandbox", "start", "--connect-workers", "3")
    assert started_sandboxes == [there, replace(there, connect_workers=3)]


def test_sandbox_status_shows_each_worker(kdeclare: CommandLine) -> None:
    there = SandboxSettings(FOLDER, 1, 1, connect_workers=2)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(there))
    assert kdeclare("sandbox", "status").out.splitlines() == [
        "Sandbox in /sandbox: not ready.",
        "  broker 1  127.0.0.1:19092  rack-a  ready      process 100  b.log",
        "  worker 1  https://127.0.0.1:19142  ready      process 201  w1.log",
        "  worker 2  https://127.0.0.1:19143  stopped  w2.log",
        "Address: 127.0.0.1:19092",
        "The workers' certificates are signed by: /sandbox/connect/ca.pem",
    ]
    document = json.loads(kdeclare("sandbox", "status", "--format", "json").out)
    Draft202012Validator(sandbox_schemas()["sandbox-status"]).validate(document)
    assert document["ca_file"] == "/sandbox/connect/ca.pem"
    assert document["workers"][1] == {
        "id": 2,
        "pid": None,
        "url": "https://127.0.0.1:19143",
        "alive": False,
        "ready": False,
        "log": "w2.log",
    }


def test_sandbox_start_gives_workers_to_each_cluster(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    groups: list[GroupSettings] = []

    def start_group(settings: GroupSettings, progress: object) -> GroupStatus:
        groups.append(settings)
        return GroupStatus(settings, tuple(map(_make_status, settings.members)))

    kdeclare.monkeypatch.setattr(sandbox, "start_group", start_group)
    options = ("--clusters", "2", "--brokers", "1", "--connect-workers", "1", "--secure")
    ran = kdeclare("sandbox", "start", *options, "--folder", "/s")
    assert groups == [GroupSettings(Path("/s"), 2, 1, 1, connect_workers=1, secure=True)]
    lines = ran.out.splitlines()
    assert len(lines) == 2 * 5
    assert lines[5:] == [
        "127.0.0.1:19292",
        "https://127.0.0.1:19342",
        "/s/cluster-2/connect/ca.pem",
        "/s/cluster-2/security/admin.properties",
        "/s/cluster-2/security/reader.properties",
    ]
    assert "Addresses and files of each cluster:" in ran.err
    kdeclare.monkeypatch.setattr(sandbox, "group_settings", lambda folder: groups[0])
    kdeclare("sandbox", "start", "--folder", "/s")
    assert groups[1] == groups[0]
    assert not started_sandboxes
