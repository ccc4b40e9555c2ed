"""``kdeclare sandbox --secure``, without starting a sandbox."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kdeclare import sandbox
from kdeclare.sandbox import BrokerStatus, SandboxSettings, SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.sandbox_starts import record_starts

FILES = ["/sandbox/security/admin.properties", "/sandbox/security/reader.properties"]


def _make_status(settings: SandboxSettings) -> SandboxStatus:
    broker = BrokerStatus(1, 100, settings.port, "rack-a", alive=True, ready=True, log=Path("b.log"))
    return SandboxStatus(settings.folder, settings, "abc", (broker,))


@pytest.fixture
def started_sandboxes(kdeclare: CommandLine) -> list[SandboxSettings]:
    """Record which sandbox would be started, without starting it."""
    return record_starts(kdeclare, _make_status)


def test_secure_sandbox_start_prints_client_properties_files(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    ran = kdeclare("sandbox", "start", "--brokers", "1", "--secure", "--folder", "/sandbox")
    assert ran.out.splitlines() == ["127.0.0.1:19092", *FILES]
    assert f"To check the cluster: kdeclare doctor --command-config {FILES[0]}" in ran.err
    assert started_sandboxes == [SandboxSettings(Path("/sandbox"), 1, 1, secure=True)]


def test_secure_sandbox_stays_secure_on_restart(
    kdeclare: CommandLine, started_sandboxes: list[SandboxSettings]
) -> None:
    there = SandboxSettings(Path(".sandbox"), 1, 1)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(replace(there, secure=True)))
    kdeclare("sandbox", "start")
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(there))
    kdeclare("sandbox", "start", "--secure")  # rejected on start, because the sandbox has different settings
    assert started_sandboxes == [replace(there, secure=True)] * 2


def test_secure_sandbox_status_names_client_properties_files(kdeclare: CommandLine) -> None:
    there = SandboxSettings(Path("/sandbox"), 1, 1, secure=True)
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(there))
    assert kdeclare("sandbox", "status").out.splitlines()[-2:] == [
        f"Client properties of admin: {FILES[0]}",
        f"Client properties of reader: {FILES[1]}",
    ]
    assert json.loads(kdeclare("sandbox", "status", "--format", "json").out)["client_files"] == FILES


def test_sandbox_start_rejects_secure_for_existing_clusters_without_security(
    kdeclare: CommandLine, tmp_path: Path
) -> None:
    layout = resolve_layout(tmp_path / "s")
    layout.folder.mkdir()
    made = {"kdeclare_sandboxes": 1, "clusters": 2, "brokers": 1, "racks": 1, "port": 19092}
    layout.group_marker.write_text(json.dumps(made))
    ran = kdeclare("sandbox", "start", "--secure", "--folder", layout.folder)
    assert ran.code == 1
    assert "was created with 2 clusters of 1 broker(s) on 1 rack(s), port 19092, not 2 clusters" in ran.err
    assert "port 19092, secure." in ran.err
