"""Connect workers of a sandbox, without starting any: settings, files, rejected input, and waiting."""

import socket
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox import (
    SandboxSettings,
    certificates,
    health,
    issue_certificate,
    kill_worker,
    processes,
    reset,
    start,
    start_worker,
    status,
    stop,
)
from kdeclare.sandbox.broker_properties import render
from kdeclare.sandbox.connect_jars import ConnectJars
from kdeclare.sandbox.layout import Layout, Marker, read_marker, resolve_layout, write_marker
from kdeclare.sandbox.settings import MAX_BROKERS, MAX_WORKERS, validate_settings
from kdeclare.sandbox.workers import plugins, worker_startup
from kdeclare.sandbox.workers.properties import build_worker_environment, build_worker_properties
from kdeclare.sandbox.workers.worker_startup import WorkerStartup
from tests.conftest import free_port

MARKER = Marker(1, 1, 19092, "abc", "4.3.1", formatted=True, connect_workers=2)
EXTENSIONS = "META-INF/services/org.apache.kafka.connect.rest.ConnectRestExtension"


def create_sandbox(folder: Path) -> Layout:
    """Create the files of a stopped sandbox with one broker and two workers."""
    layout = resolve_layout(folder)
    layout.broker(1).data.mkdir(parents=True)
    for worker_id in (1, 2):
        files = layout.connect.worker(worker_id)
        files.logs.mkdir(parents=True)
        files.keystore.touch()
    for file in (layout.connect.authority, layout.connect.authority_pem, layout.connect.truststore):
        file.write_text("made before")
    write_marker(layout, MARKER)
    return layout


def catch_start_error(settings: SandboxSettings) -> KdeclareError:
    """Return the error of a start that must fail before it looks for Java."""
    with pytest.raises(KdeclareError) as failed:
        start(settings, lambda _: None)
    assert failed.value.diagnostics[0].hint
    return failed.value


# --- settings


@given(brokers=st.integers(1, MAX_BROKERS), workers=st.integers(0, MAX_WORKERS))
def test_ports_of_brokers_and_workers_are_distinct(brokers: int, workers: int) -> None:
    settings = SandboxSettings(Path("/s"), brokers, 1, connect_workers=workers)
    validate_settings(settings)
    ports = [port for i in settings.broker_ids for port in settings.ports(i)]
    ports += map(settings.get_worker_port, settings.worker_ids)
    assert len(set(ports)) == len(ports)
    assert max(ports) < settings.port + 200, "the next cluster of a folder begins there"


@pytest.mark.parametrize("workers", [-1, 11])
def test_validate_settings_limits_number_of_workers(workers: int) -> None:
    with pytest.raises(KdeclareError, match=f"0 to 10 Connect workers, not {workers}"):
        validate_settings(SandboxSettings(Path("/s"), connect_workers=workers))


def test_marker_stores_number_of_workers(tmp_path: Path) -> None:
    layout = create_sandbox(tmp_path)
    assert read_marker(layout) == MARKER
    assert MARKER.settings(tmp_path).connect_workers == 2


def test_old_marker_means_no_workers(tmp_path: Path) -> None:
    layout = resolve_layout(tmp_path)
    write_marker(layout, replace(MARKER, connect_workers=0))
    text = layout.marker.read_text().replace(',\n  "connect_workers": 0', "")
    assert "connect_workers" not in text
    layout.marker.write_text(text)
    assert read_marker(layout) == replace(MARKER, connect_workers=0)


# --- properties


def make_worker_properties(brokers: int = 3, worker_id: int = 2, *extensions: str) -> dict[str, str]:
    """Return a worker's properties."""
    settings = SandboxSettings(Path("/s"), brokers, 1, connect_workers=3)
    layout = Layout(Path("/s"))
    return build_worker_properties(settings, worker_id, layout.connect, extensions, layout.security)


def test_clients_of_secure_workers_log_in() -> None:
    settings = SandboxSettings(Path("/s"), 1, 1, connect_workers=1, secure=True)
    layout = Layout(Path("/s"))
    properties = build_worker_properties(settings, 1, layout.connect, (), layout.security)
    for prefix in ("", "producer.", "consumer.", "admin."):
        assert properties[f"{prefix}security.protocol"] == "SASL_SSL"
        assert 'username="connect"' in properties[f"{prefix}sasl.jaas.config"]
    assert properties["bootstrap.servers"] == settings.bootstrap
    assert not [key for key in make_worker_properties() if "sasl" in key or key.endswith("security.protocol")]


def test_worker_serves_https_on_loopback_with_own_certificate() -> None:
    properties = make_worker_properties()
    assert properties["listeners"] == "https://127.0.0.1:19143"
    assert (properties["rest.advertised.host.name"], properties["rest.advertised.port"]) == (
        "127.0.0.1",
        "19143",
    )
    assert properties["listeners.https.ssl.keystore.location"] == "/s/connect/workers/2/keystore.p12"
    assert properties["listeners.https.ssl.truststore.location"] == "/s/connect/truststore.p12"
    assert properties["bootstrap.servers"] == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"


def test_workers_share_group_settings() -> None:
    one, other = make_worker_properties(worker_id=1), make_worker_properties(worker_id=3)
    of_its_own = {key for key in one if one[key] != other[key]}
    assert of_its_own == {"listeners", "rest.advertised.port", "listeners.https.ssl.keystore.location"}


@pytest.mark.parametrize(("brokers", "copies"), [(1, "1"), (2, "2"), (5, "3")])
def test_worker_topic_replication_follows_number_of_brokers(brokers: int, copies: str) -> None:
    factors = {
        value for key, value in make_worker_properties(brokers).items() if key.endswith("replication.factor")
    }
    assert factors == {copies}


def test_placeholders_differ_between_workers() -> None:
    shared = Layout(Path("/s")).connect
    named = make_worker_properties()["listeners.https.ssl.keystore.password"]
    assert named == "${env:KEYSTORE_PASSWORD}"
    assert build_worker_environment(2, shared)["KEYSTORE_PASSWORD"]
    folders = [build_worker_environment(i, shared)["WORKER_FOLDER"] for i in (1, 2)]
    assert folders == ["/s/connect/workers/1", "/s/connect/workers/2"]


def test_worker_properties_list_extensions_if_any() -> None:
    assert "rest.extension.classes" not in make_worker_properties()
    assert make_worker_properties(3, 1, "a.B", "c.D")["rest.extension.classes"] == "a.B,c.D"


def test_worker_config_is_open_only_with_extension_on_loopback() -> None:
    properties = make_worker_properties(3, 1, "a.B")
    assert properties["kdeclare.worker.config.open"] == "true"
    assert properties["listeners"].startswith("https://127.0.0.1:")
    assert "kdeclare.worker.config.open" not in make_worker_properties()


def test_overrides_change_and_remove_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = create_sandbox(tmp_path)
    written = []

    def spawn(command: object, environment: object, output: Path, mark: str) -> processes.ProcessRecord:
        written.append(layout.connect.worker(1).properties.read_text())
        return processes.ProcessRecord(1, "", mark)

    monkeypatch.setattr(processes, "spawn", spawn)
    connectors = tmp_path / "connect-file-4.3.1.jar"
    jars = ConnectJars("4.3.1", (), connectors)
    changed = {"ssl.client.auth": "required", "plugin.discovery": None}
    crew = WorkerStartup(layout, MARKER.settings(tmp_path), [1], "java", jars, lambda _: None, changed)
    assert [one.mark for one in crew.spawn()] == [
        f"-Dkdeclare.sandbox.worker={layout.connect.worker(1).folder}"
    ]
    usual = build_worker_properties(MARKER.settings(tmp_path), 1, layout.connect, (), layout.security)
    usual["ssl.client.auth"] = "required"
    del usual["plugin.discovery"]
    assert written == [render(usual)]


# --- plug-ins


def create_jar(path: Path, *services: str) -> Path:
    """Create a jar that offers these REST extensions."""
    with zipfile.ZipFile(path, "w") as content:
        content.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        if services:
            content.writestr(EXTENSIONS, "# ours\n" + "".join(f"{name}  # a class\n" for name in services))
    return path


def test_find_extensions_returns_extensions_of_jars(tmp_path: Path) -> None:
    assert plugins.find_extensions(tmp_path) == ()
    create_jar(tmp_path / "connect-file-4.3.1.jar")
    (tmp_path / "torn.jar").write_bytes(b"PK")
    create_jar(tmp_path / "two.jar", "z.Last", "m.Middle")
    create_jar(tmp_path / "one.jar", "a.First")
    assert plugins.find_extensions(tmp_path) == ("a.First", "m.Middle", "z.Last")


@pytest.fixture
def build_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[KdeclareError]:
    """Replace the build of the plug-in: it creates a jar with ``k.Own``, or fails with these errors."""
    failures: list[KdeclareError] = []

    def build(out: Path, progress: object) -> Path:
        if failures:
            raise failures[0]
        return create_jar(out / "kdeclare-connect-2.jar", "k.Own")

    monkeypatch.setenv("KDECLARE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("kdeclare.sandbox.connect_jars.build", build)
    return failures


def install_plugins(folder: Path) -> list[str]:
    """Install and return the progress messages; a second run must leave the same files as the first."""
    said: list[str] = []
    jars = ConnectJars("4.3.1", (), create_jar(folder.parent / "connect-file-4.3.1.jar"))
    plugins.install(folder, jars, said.append)
    first = list_names(folder)
    plugins.install(folder, jars, lambda _: None)
    assert list_names(folder) == first
    return said


def list_names(folder: Path) -> list[str]:
    """Return the names of all files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_install_replaces_other_versions_and_keeps_other_jars(tmp_path: Path, build_failures: object) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    for name in ("connect-file-4.0.1.jar", "kdeclare-connect-1.jar", "mine.jar"):
        create_jar(folder / name)
    assert install_plugins(folder) == []
    assert list_names(folder) == ["connect-file-4.3.1.jar", "kdeclare-connect-2.jar", "mine.jar"]
    assert plugins.find_extensions(folder) == ("k.Own",)


def test_install_without_compiler_omits_plug_in(tmp_path: Path, build_failures: list[KdeclareError]) -> None:
    build_failures.append(KdeclareError(error("javac-missing", "A Java compiler was not found", "None.")))
    (said,) = install_plugins(tmp_path / "plugins")
    assert "no Java compiler" in said
    assert list_names(tmp_path / "plugins") == ["connect-file-4.3.1.jar"]


def test_install_passes_on_build_error(tmp_path: Path, build_failures: list[KdeclareError]) -> None:
    build_failures.append(KdeclareError(error("plugin-build", "The plug-in could not be compiled", "Why.")))
    with pytest.raises(KdeclareError, match="Why"):
        install_plugins(tmp_path / "plugins")


# --- certificates


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_certificates_are_created_once(tmp_path: Path) -> None:
    files = resolve_layout(tmp_path / "s").connect
    worker_startup.create_worker_certificates(files, [1, 2])
    first = read_files(files.folder)
    stores = {str(files.worker(i).keystore.relative_to(files.folder)) for i in (1, 2, 3)}
    assert len(first.keys() & stores) == 2
    worker_startup.create_worker_certificates(files, [1, 2])
    assert read_files(files.folder) == first
    worker_startup.create_worker_certificates(files, [1, 2, 3])
    third = read_files(files.folder)
    assert third.keys() - first.keys() == stores - first.keys()
    assert {name: third[name] for name in first} == first


def test_authority_signs_certificates(tmp_path: Path) -> None:
    files = resolve_layout(tmp_path / "s").connect
    worker_startup.create_worker_certificates(files, [1])
    password = certificates.KEYSTORE_PASSWORD.encode()
    key, certificate, issuers = pkcs12.load_key_and_certificates(
        files.worker(1).keystore.read_bytes(), password
    )
    authority = x509.load_pem_x509_certificate(files.authority_pem.read_bytes())
    assert key is not None
    assert certificate is not None
    assert key.public_key() == certificate.public_key()
    assert issuers == [authority]
    assert certificate.subject.rfc4514_string() == "CN=worker-1"
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(name.value) for name in names] == ["127.0.0.1", "localhost"]
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(days=365)


def test_keystore_can_contain_expired_certificate(tmp_path: Path) -> None:
    files = resolve_layout(tmp_path / "s").connect
    certificates.create_authority(files)
    certificates.issue_keystore(files, tmp_path / "expired.p12", "worker-1", 1, days_ago=10)
    store = pkcs12.load_pkcs12(
        (tmp_path / "expired.p12").read_bytes(), certificates.KEYSTORE_PASSWORD.encode()
    )
    assert store.cert is not None
    assert store.cert.certificate.not_valid_after_utc < datetime.now(UTC) - timedelta(days=8)


def test_incomplete_authority_is_created_again(tmp_path: Path) -> None:
    files = resolve_layout(tmp_path / "s").connect
    files.folder.mkdir(parents=True)
    files.authority.write_text("half")
    worker_startup.create_worker_certificates(files, [1])
    assert files.authority.read_bytes() != b"half"
    assert files.truststore.exists()


def test_folder_that_is_not_writable_is_reported(tmp_path: Path) -> None:
    files = resolve_layout(tmp_path / "s").connect
    files.folder.parent.mkdir(parents=True)
    files.folder.touch()
    with pytest.raises(KdeclareError, match=r"ca\.p12 could not be written") as failed:
        worker_startup.create_worker_certificates(files, [1])
    assert failed.value.diagnostics[0].code == "sandbox-certificates"


def test_damaged_authority_is_reported(tmp_path: Path) -> None:
    files = resolve_layout(tmp_path / "s").connect
    certificates.create_authority(files)
    files.authority.write_text("damaged")
    with pytest.raises(KdeclareError, match=r"ca\.p12 could not be read") as failed:
        worker_startup.create_worker_certificates(files, [1])
    assert failed.value.diagnostics[0].code == "sandbox-certificates"


# --- rejected input, and what stays unchanged


def test_start_rejects_fewer_workers(tmp_path: Path) -> None:
    create_sandbox(tmp_path)
    failure = catch_start_error(SandboxSettings(tmp_path, 1, 1, connect_workers=1))
    assert failure.diagnostics[0].code == "sandbox-differs"
    assert "port 19092, 2 Connect worker(s), not" in str(failure)


def test_start_names_taken_worker_port_and_changes_nothing(tmp_path: Path) -> None:
    layout = create_sandbox(tmp_path)
    port = free_port(1)
    write_marker(layout, replace(MARKER, port=port))
    with socket.create_server(("127.0.0.1", port + 52)):
        failure = catch_start_error(SandboxSettings(tmp_path, 1, 1, port, connect_workers=3))
    assert failure.diagnostics[0].code == "port-taken"
    assert f"Port {port + 52} (Connect worker 3) on" in str(failure)
    assert f"Connect worker ports at {port + 50}" in failure.diagnostics[0].hint
    assert read_marker(layout) == replace(MARKER, port=port), "the third worker was not added"


def test_worker_commands_reject_missing_worker(tmp_path: Path) -> None:
    create_sandbox(tmp_path)

    def certify(folder: Path, worker_id: int) -> object:
        return issue_certificate(folder, worker_id, "next.p12")

    for act in (kill_worker, start_worker, certify):
        for folder, worker_id in ((tmp_path, 3), (tmp_path / "absent", 1)):
            with pytest.raises(
                KdeclareError, match=f"There is no sandbox with Connect worker {worker_id}"
            ) as failed:
                act(folder, worker_id)
            assert failed.value.diagnostics[0].code == "sandbox-missing"


def test_status_of_stopped_workers_has_urls(tmp_path: Path) -> None:
    create_sandbox(tmp_path)
    for now in (status(tmp_path), stop(tmp_path)):
        assert [(one.id, one.url, one.alive, one.ready) for one in now.workers] == [
            (1, "https://127.0.0.1:19142", False, False),
            (2, "https://127.0.0.1:19143", False, False),
        ]
        assert now.ca_file == tmp_path / "connect" / "ca.pem"
        assert not now.running
        assert len(now.log_files) == 3


def test_reset_deletes_worker_files(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    create_sandbox(folder)
    assert not reset(folder).exists
    assert not folder.exists()


# --- waiting


@pytest.fixture
def sleeping_sandbox(tmp_path: Path) -> Iterator[Layout]:
    """Create a sandbox whose two workers are processes that sleep."""
    layout = create_sandbox(tmp_path)
    recorded = []
    for worker_id in (1, 2):
        files = layout.connect.worker(worker_id)
        mark = f"-Dworker={worker_id}"
        command = [sys.executable, "-c", "import time; time.sleep(60)", mark]
        recorded.append(processes.spawn(command, {}, files.console_log, mark))
        processes.write_record(recorded[-1], files.process)
    yield layout
    processes.terminate(recorded, 5, 5)


def await_sandbox_workers(layout: Layout, timeout: float, started: Sequence[int] = (1, 2)) -> list[str]:
    """Return the progress messages while waiting for the workers."""
    said: list[str] = []
    worker_startup.await_workers(layout, MARKER.settings(layout.folder), started, said.append, timeout)
    return said


def test_await_workers_requires_all_healthy_at_once(
    sleeping_sandbox: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {19142: iter([True, True, False, True]), 19143: iter([False, True, True, True])}
    monkeypatch.setattr(health, "is_healthy", lambda port, timeout: next(answers[port]))
    monkeypatch.setattr(worker_startup, "_POLL_SECONDS", 0)
    said = await_sandbox_workers(sleeping_sandbox, 60)
    assert [line.partition(" after")[0] for line in said] == [
        "starting Connect worker(s) 1, 2",
        "worker 1 is ready",
        "worker 2 is ready",
    ]
    assert [next(left, None) for left in answers.values()] == [None, None]


def test_progress_names_only_workers_that_were_down(
    sleeping_sandbox: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "is_healthy", lambda port, timeout: True)
    monkeypatch.setattr(worker_startup, "_POLL_SECONDS", 0)
    said = await_sandbox_workers(sleeping_sandbox, 60, started=[2])
    assert [line.partition(" after")[0] for line in said] == [
        "starting Connect worker(s) 2",
        "worker 2 is ready",
    ]


def test_await_workers_quotes_log_of_late_worker(
    sleeping_sandbox: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeping_sandbox.connect.worker(2).server_log.write_text(
        "[now] ERROR out of patience\n\tat a.b(C.java:1)\n"
    )
    monkeypatch.setattr(health, "is_healthy", lambda port, timeout: port == 19142)
    with pytest.raises(
        KdeclareError, match=r"(?s)Worker\(s\) 2 were not ready within 0 s.*patience$"
    ) as failed:
        await_sandbox_workers(sleeping_sandbox, 0)
    assert failed.value.diagnostics[0].summary == "Sandbox process did not start"


def test_await_workers_quotes_log_of_ended_worker(
    sleeping_sandbox: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sleeping_sandbox.connect.worker(1)
    files.server_log.write_text("[now] ERROR Stopping due to error\n")

    def end_worker(port: int, timeout: float) -> bool:
        recorded = processes.read_record(files.process)
        assert recorded is not None
        processes.terminate([recorded], 5, 5)
        return False

    monkeypatch.setattr(health, "is_healthy", end_worker)
    monkeypatch.setattr(worker_startup, "_POLL_SECONDS", 0)
    with pytest.raises(KdeclareError, match=r"(?s)Worker 1 exited during startup.*Stopping due to"):
        await_sandbox_workers(sleeping_sandbox, 60)


def test_is_healthy_on_closed_port_is_false() -> None:
    assert not health.is_healthy(1, 0.5)
