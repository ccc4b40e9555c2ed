"""``kdeclare sandbox --secure``, without starting a sandbox."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kdeclare import sandbox
from kdeclare.sandbox import BrokerStatus, GroupSettings, SandboxSettings, SandboxStatus
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.sandbox_starts import starts

FILES = ["/sandbox/security/admin.properties", "/sandbox/security/reader.properties"]


def _status(settings: SandboxSettings) -> SandboxStatus:
    broker = BrokerStatus(1, 100, settings.port, "rack-a", alive=True, ready=True, log=Path("b.log"))
    return SandboxStatus(settings.folder, settings, "abc", (broker,))


@pytest.fixture
def asked(kdeclare: CommandLine) -> list[SandboxSettings]:
    """Record which sandbox would be started, without starting it."""
    return starts(kdeclare, _status)


def test_start_prints_the_files_of_client_properties(
    kdeclare: CommandLine, asked: list[SandboxSettings]
) -> None:
    ran = kdeclare("sandbox", "start", "--brokers", "1", "--secure", "--folder", "/sandbox")
    assert ran.out.splitlines() == ["127.0.0.1:19092", *FILES]
    assert f"To check it: kdeclare doctor --command-config {FILES[0]}" in ran.err
    assert asked == [SandboxSettings(Path("/sandbox"), 1, 1, secure=True)]


def test_a_secure_sandbox_stays_one(kdeclare: CommandLine, asked: list[SandboxSettings]) -> None:
    there = SandboxSettings(Path(".sandbox"), 1, 1)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _status(replace(there, secure=True)))
    kdeclare("sandbox", "start")
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _status(there))
    kdeclare("sandbox", "start", "--secure")  # rejected on start, because the sandbox has different settings
    assert asked == [replace(there, secure=True)] * 2


def test_status_names_the_files(kdeclare: CommandLine) -> None:
    there = SandboxSettings(Path("/sandbox"), 1, 1, secure=True)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _status(there))
    assert kdeclare("sandbox", "status").out.splitlines()[-2:] == [
        f"Client properties of admin: {FILES[0]}",
        f"Client properties of reader: {FILES[1]}",
    ]
    assert json.loads(kdeclare("sandbox", "status", "--format", "json").out)["client_files"] == FILES


def test_several_clusters_are_not_secure(kdeclare: CommandLine) -> None:
    ran = kdeclare("sandbox", "start", "--clusters", "2", "--secure")
    assert (ran.code, "Users with ACLs are supported only in a sandbox with one cluster" in ran.err) == (
        1,
        True,
    )
    several = GroupSettings(Path(".sandbox"), 2)
    kdeclare.monkeypatch.setattr(sandbox, "group_settings", lambda folder: several)
    assert "--secure" in kdeclare("sandbox", "start", "--secure").err
