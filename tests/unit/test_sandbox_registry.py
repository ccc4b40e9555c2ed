"""The schema registry of a sandbox, without starting any: settings, files, unpacking, and waiting."""

import io
import socket
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare import java
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox import SandboxSettings, health, ivy, jars, processes, reset, start, status, stop
from kdeclare.sandbox.layout import Layout, Marker, read_marker, resolve_layout, write_marker
from kdeclare.sandbox.registry import archive
from kdeclare.sandbox.registry.registry_startup import RegistryStartup, build_registry_properties
from kdeclare.sandbox.settings import MAX_BROKERS, MAX_WORKERS, validate_settings
from tests.conftest import free_port

MARKER = Marker(1, 1, 19092, "abc", "4.3.1", formatted=True, registry=True)
SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@given(brokers=st.integers(1, MAX_BROKERS), workers=st.integers(0, MAX_WORKERS))
def test_registry_ports_are_distinct(brokers: int, workers: int) -> None:
    settings = SandboxSettings(Path("/s"), brokers, 1, connect_workers=workers, secure=True, registry=True)
    validate_settings(settings)
    ports = [port for i in settings.broker_ids for port in settings.ports(i)]
    ports += map(settings.get_worker_port, settings.worker_ids)
    ports += [settings.registry_port, settings.registry_management_port]
    assert len(set(ports)) == len(ports)


def test_registry_ports_must_be_allowed() -> None:
    settings = SandboxSettings(Path("/s"), 1, 1, 65500, registry=True)
    with pytest.raises(KdeclareError, match="ports 65500 to 65600"):
        validate_settings(settings)


def test_marker_stores_registry(tmp_path: Path) -> None:
    layout = resolve_layout(tmp_path)
    write_marker(layout, MARKER)
    assert read_marker(layout) == MARKER
    assert MARKER.settings(tmp_path).registry


def test_old_marker_means_no_registry(tmp_path: Path) -> None:
    layout = resolve_layout(tmp_path)
    write_marker(layout, replace(MARKER, registry=False))
    text = layout.marker.read_text().replace(',\n  "registry": false', "")
    assert "registry" not in text
    layout.marker.write_text(text)
    assert read_marker(layout) == replace(MARKER, registry=False)


def test_registry_listens_only_on_loopback() -> None:
    settings = SandboxSettings(Path("/s"), registry=True)
    properties = build_registry_properties(settings, Layout(Path("/s")).registry)
    assert (properties["quarkus.http.host"], properties["quarkus.http.port"]) == ("127.0.0.1", "19132")
    assert properties["quarkus.management.host"] == "127.0.0.1"
    assert settings.registry_url == "http://127.0.0.1:19132/apis/ccompat/v7"


def test_registry_does_not_expand_folder_name() -> None:
    settings = SandboxSettings(Path("/${s}"), registry=True)
    properties = build_registry_properties(settings, Layout(settings.folder).registry)
    assert properties["apicurio.datasource.url"] == "jdbc:h2:file:/\\${s}/registry/data/registry"


# --- archive


def write_archive(path: Path, content: bytes) -> Path:
    """Write an archive with one file."""
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("lib/one.jar")
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))
    return path


def test_archive_is_unpacked_once(tmp_path: Path) -> None:
    source, folder = write_archive(tmp_path / "one.tar.gz", b"first"), tmp_path / "app"
    archive.install_archive(source, folder)
    assert (folder / "lib/one.jar").read_bytes() == b"first"
    (folder / "lib/one.jar").write_bytes(b"changed")
    archive.install_archive(source, folder)
    assert (folder / "lib/one.jar").read_bytes() == b"changed"


def test_archive_replaces_other_version_and_partial_content(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    archive.install_archive(write_archive(tmp_path / "one.tar.gz", b"first"), folder)
    (folder / "old.jar").touch()
    archive.install_archive(write_archive(tmp_path / "two.tar.gz", b"second"), folder)
    assert not (folder / "old.jar").exists()
    assert (folder / "lib/one.jar").read_bytes() == b"second"


def make_ivy_environment(cache: Path) -> dict[str, str]:
    """Return an environment in which Ivy downloads the archive."""
    return {jars.CACHE_VARIABLE: str(cache), ivy.SETTINGS_VARIABLE: "ivysettings.xml", "PATH": ""}


def test_altered_archive_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = make_ivy_environment(tmp_path)
    (path,) = jars.read_pins(archive.PINS)
    name = path.rpartition("/")[2]
    altered = write_archive(tmp_path / name, b"altered")
    monkeypatch.setattr(ivy, "resolve", lambda *_: (altered,))
    monkeypatch.setattr(java, "find_java", lambda _: "java")
    reports: list[str] = []
    with pytest.raises(KdeclareError) as failed:
        archive.resolve_archive(reports.append, environment)
    assert failed.value.diagnostics[0].code == "jars-altered"
    assert name in failed.value.diagnostics[0].detail
    assert reports == ["downloading Apicurio Registry 3.0.9 (109 MB, only the first time)"]


def test_missing_archive_does_not_mention_kafka_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ivy.ResolutionError("unknown host h")

    monkeypatch.setattr(ivy, "resolve", fail)
    monkeypatch.setattr(java, "find_java", lambda _: "java")
    with pytest.raises(KdeclareError) as failed:
        archive.resolve_archive(environment=make_ivy_environment(tmp_path))
    (only,) = failed.value.diagnostics
    assert "Apicurio Registry 3.0.9 are not in the cache" in only.detail
    assert only.hint is not None
    assert "KAFKA_HOME" not in only.hint


# --- processes


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    """The files of a stopped sandbox with one broker and a registry."""
    layout = resolve_layout(tmp_path)
    layout.broker(1).data.mkdir(parents=True)
    layout.registry.logs.mkdir(parents=True)
    write_marker(layout, replace(MARKER, port=free_port(1)))
    yield layout
    stop(layout.folder)


def start_process(layout: Layout) -> processes.ProcessRecord:
    """Start a process that stands for the registry, and does not respond."""
    mark = f"-Dkdeclare.sandbox.registry={layout.registry.folder}"
    record = processes.spawn((*SLEEP, mark), {}, layout.registry.console_log, mark)
    processes.write_record(record, layout.registry.process)
    return record


def test_status_shows_stopped_registry(layout: Layout) -> None:
    observed = status(layout.folder)
    assert observed.settings is not None
    assert observed.registry is not None
    assert (observed.registry.pid, observed.registry.alive, observed.registry.ready) == (None, False, False)
    assert observed.registry.url == observed.settings.registry_url
    assert observed.log_files[-1] == layout.registry.server_log


def test_status_shows_registry_that_does_not_respond(layout: Layout) -> None:
    record = start_process(layout)
    observed = status(layout.folder)
    assert observed.registry is not None
    assert (observed.registry.pid, observed.registry.alive, observed.registry.ready) == (
        record.pid,
        True,
        False,
    )
    assert observed.running
    assert not observed.ready


def test_stop_ends_registry(layout: Layout) -> None:
    record = start_process(layout)
    stop(layout.folder)
    assert not processes.is_alive(record)
    assert layout.registry.folder.exists()


def test_reset_deletes_registry(layout: Layout) -> None:
    record = start_process(layout)
    reset(layout.folder)
    assert not processes.is_alive(record)
    assert not layout.registry.folder.exists()


def test_start_reports_taken_registry_port(tmp_path: Path) -> None:
    settings = SandboxSettings(tmp_path / "s", 1, 1, free_port(1), registry=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", settings.registry_management_port))
        taken.listen()
        with pytest.raises(KdeclareError, match=f"{settings.registry_management_port} .schema registry."):
            start(settings, lambda _: None)


def test_registry_cannot_be_removed(layout: Layout) -> None:
    marker = read_marker(layout)
    assert marker is not None
    settings = replace(marker.settings(layout.folder), registry=False)
    with pytest.raises(KdeclareError, match=r"was created with .*a schema registry, not"):
        start(settings, lambda _: None)


def test_wait_reports_registry_that_ended(layout: Layout) -> None:
    marker = read_marker(layout)
    assert marker is not None
    layout.registry.console_log.write_text("Error: out of memory\n")
    startup = RegistryStartup(
        layout, marker.settings(layout.folder), "java", Path("a.tar.gz"), lambda _: None
    )
    with pytest.raises(KdeclareError, match=r"(?s)exited during startup.*Error: out of memory"):
        startup.wait(10)


def test_wait_is_limited(layout: Layout) -> None:
    marker = read_marker(layout)
    assert marker is not None
    start_process(layout)
    startup = RegistryStartup(
        layout, marker.settings(layout.folder), "java", Path("a.tar.gz"), lambda _: None
    )
    with pytest.raises(KdeclareError, match="was not ready within 0 s"):
        startup.wait(0)


def test_registry_is_started_with_its_properties(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def spawn(command: list[str], *_: object) -> processes.ProcessRecord:
        commands.append(command)
        return processes.ProcessRecord(1, "", "")

    monkeypatch.setattr(processes, "spawn", spawn)
    marker = read_marker(layout)
    assert marker is not None
    settings = marker.settings(layout.folder)
    RegistryStartup(layout, settings, "java", Path("a.tar.gz"), lambda _: None).spawn()
    assert commands[0][0] == "java"
    assert commands[0][-2:] == ["-jar", str(layout.registry.app / archive.RUNNER)]
    assert f"-Dquarkus.config.locations={layout.registry.properties.as_uri()}" in commands[0]
    assert f"quarkus.http.port={settings.registry_port}\n" in layout.registry.properties.read_text()


def test_closed_port_is_not_ready() -> None:
    assert not health.is_registry_ready(free_port(1), 1)
