"""A sandbox with real Connect workers: one broker, and two workers that become three."""

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox import KAFKA_VERSION, SandboxSettings, SandboxStatus
from tests.conftest import free_port
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

PLUG_IN = "/admin/dynamic-worker-config"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxSettings]:
    """Settings of a sandbox that starts on first use and is deleted at the end. Its name needs escaping."""
    folder = tmp_path_factory.mktemp("connect") / "a sänd=box"
    settings = SandboxSettings(folder, 1, 1, free_port(1, workers=3), connect_workers=2)
    yield settings
    kafka_sandbox.reset(folder)


@pytest.fixture
def running(settings: SandboxSettings) -> SandboxStatus:
    """The running sandbox with all its processes, restarted if an earlier test stopped any."""
    now = kafka_sandbox.status(settings.folder)
    return now if now.ready else kafka_sandbox.start(now.settings or settings, print)


def create_tls_context(now: SandboxStatus) -> ssl.SSLContext:
    """Return the TLS context of a client that trusts only the sandbox's authority."""
    return ssl.create_default_context(cafile=now.ca_file)


def send_request(
    now: SandboxStatus, worker_id: int, path: str, method: str = "GET", body: object = None
) -> Any:
    """Return a worker's response; fails with the response body on an error status."""
    content = None if body is None else json.dumps(body).encode()
    request = Request(
        now.workers[worker_id - 1].url + path, content, {"Content-Type": "application/json"}, method=method
    )
    try:
        with urlopen(request, timeout=20, context=create_tls_context(now)) as answer:
            return json.loads(answer.read() or "null")
    except HTTPError as problem:
        pytest.fail(f"{problem.code}: {problem.read().decode()}")


def read_certificate(now: SandboxStatus, worker_id: int) -> tuple[str, int]:
    """Return the subject of a worker's certificate, verified by the client, and its validity in days."""
    port = now.settings.get_worker_port(worker_id) if now.settings else 0
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        create_tls_context(now).wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        certificate: Any = secured.getpeercert() or {}
    ends, begins = (ssl.cert_time_to_seconds(certificate[key]) for key in ("notAfter", "notBefore"))
    names = dict(pair for group in certificate["subject"] for pair in group)
    return names["commonName"], round((ends - begins) / 86400)


def list_pids(now: SandboxStatus) -> list[int | None]:
    """Return the pids of all workers."""
    return [worker.pid for worker in now.workers]


def test_workers_are_ready_and_serve_https(running: SandboxStatus) -> None:
    assert all(worker.ready for worker in running.workers)
    for worker in running.workers:
        told = send_request(running, worker.id, "/")
        assert (told["version"], told["kafka_cluster_id"]) == (KAFKA_VERSION, running.cluster_id)
        assert read_certificate(running, worker.id) == (f"worker-{worker.id}", 365)
    assert all(path.stat().st_size > 0 for path in running.log_files)


def test_second_start_does_nothing(running: SandboxStatus) -> None:
    assert running.settings is not None
    assert list_pids(kafka_sandbox.start(running.settings, lambda _: None)) == list_pids(running)


def test_workers_are_small_and_listen_only_on_loopback(running: SandboxStatus) -> None:
    assert running.settings is not None
    for worker in running.workers:
        process = psutil.Process(worker.pid)
        assert process.memory_info().rss < 400 * 1024 * 1024
        listening = [c.laddr for c in process.net_connections() if c.status == "LISTEN"]
        assert {address.ip for address in listening} <= {"127.0.0.1", "::ffff:127.0.0.1"}
        assert {address.port for address in listening} == {running.settings.get_worker_port(worker.id)}


def test_connector_runs_through_any_worker(running: SandboxStatus, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\ntwo\n")
    for worker in running.workers:
        name = f"lines-{worker.id}"
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(tmp_path / "lines"),
            "topic": name,
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
        }
        send_request(running, worker.id, f"/connectors/{name}/config", "PUT", config)
        assert wait_for_task_states(running, worker.id, name) == ["RUNNING"]


def test_one_change_rotates_certificates_of_all_workers(running: SandboxStatus) -> None:
    for worker in running.workers:
        kafka_sandbox.issue_certificate(running.folder, worker.id, "next.p12", days=30)
    changes = {
        f"listeners.https.ssl.{key}": value
        for key, value in {
            "keystore.location": "${env:WORKER_FOLDER}/next.p12",
            "keystore.password": "${env:KEYSTORE_PASSWORD}",
        }.items()
    }
    before = [read_certificate(running, worker.id) for worker in running.workers]
    send_request(running, 1, PLUG_IN, "PATCH", changes)
    wanted = [("worker-1", 30), ("worker-2", 30), ("worker-3", 30)][: len(before)]
    wait_for(
        lambda: [read_certificate(running, worker.id) for worker in running.workers] == wanted, 20, every=0.1
    )
    send_request(running, 2, PLUG_IN, "PATCH", dict.fromkeys(changes))
    wait_for(
        lambda: [read_certificate(running, worker.id) for worker in running.workers] == before, 20, every=0.1
    )


def wait_for_task_states(now: SandboxStatus, worker_id: int, connector: str) -> list[str]:
    """Return the states of a connector's tasks, once there are some and none is unassigned."""

    def find_states() -> list[str]:
        states = [
            one["state"]
            for known in send_request(now, worker_id, "/connectors?expand=status").items()
            for one in known[1]["status"]["tasks"]
            if known[0] == connector
        ]
        return [] if "UNASSIGNED" in states else states

    return wait_for(find_states, 90, every=0.2)


def test_killed_worker_is_down_until_started(running: SandboxStatus) -> None:
    after = kafka_sandbox.kill_worker(running.folder, 2)
    assert [one.id for one in after.workers if not one.alive] == [2]
    assert not after.ready
    back = kafka_sandbox.start_worker(running.folder, 2)
    assert back.ready
    assert [one.id for one in back.workers if one.pid not in list_pids(running)] == [2]


def test_worker_that_cannot_start_is_quoted_and_stopped(running: SandboxStatus) -> None:
    kafka_sandbox.kill_worker(running.folder, 2)
    with pytest.raises(KdeclareError, match=r"(?s)Worker 2 exited during startup\..*no\.Such") as failed:
        kafka_sandbox.start_worker(running.folder, 2, overrides={"key.converter": "no.Such"})
    assert failed.value.diagnostics[0].code == "sandbox-start"
    now = kafka_sandbox.status(running.folder)
    assert [one.id for one in now.workers if not one.alive] == [2]


@pytest.mark.thorough
def test_workers_can_be_added_to_running_sandbox(running: SandboxStatus) -> None:
    assert running.settings is not None
    more = kafka_sandbox.start(replace(running.settings, connect_workers=3), print)
    assert more.ready
    assert list_pids(more)[:2] == list_pids(running)[:2]
    assert read_certificate(more, 3) == ("worker-3", 365)


@pytest.mark.thorough
def test_workers_survive_stop_but_not_reset(running: SandboxStatus) -> None:
    assert running.settings is not None
    authority = Path(running.ca_file or "").read_bytes()
    stopped = kafka_sandbox.stop(running.folder)
    assert not stopped.running
    assert not any(psutil.pid_exists(pid or 0) for pid in list_pids(running))
    back = kafka_sandbox.start(running.settings, print)
    assert back.ready
    assert Path(back.ca_file or "").read_bytes() == authority
    assert isinstance(send_request(back, 1, "/connectors"), list)

    assert not kafka_sandbox.reset(running.folder).exists
    assert not any(psutil.pid_exists(pid or 0) for pid in list_pids(back))
    assert not running.folder.exists()
