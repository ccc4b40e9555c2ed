"""The sandbox with real brokers."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox import SandboxSettings, SandboxStatus, processes
from kdeclare.sandbox.layout import resolve_layout
from tests.conftest import free_port

pytestmark = pytest.mark.kafka

TOPICS = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture
def single(tmp_path: Path) -> Iterator[SandboxSettings]:
    """Settings of a sandbox with one broker, not started; deleted after the test. Its name needs escaping."""
    settings = SandboxSettings(tmp_path / "a sänd=box", brokers=1, racks=1, port=free_port(1))
    yield settings
    kafka_sandbox.reset(settings.folder)


def start_quietly(settings: SandboxSettings) -> SandboxStatus:
    """Start without progress messages."""
    return kafka_sandbox.start(settings, lambda _: None)


def list_pids(status: SandboxStatus) -> list[int | None]:
    """Return the pids of all brokers."""
    return [b.pid for b in status.brokers]


def create_topic(status: SandboxStatus, name: str, *options: str) -> None:
    """Create a topic with Kafka's own tool."""
    done = kafka_sandbox.run_kafka_tool(
        TOPICS, "--bootstrap-server", status.bootstrap, "--create", "--topic", name, *options
    )
    assert done.returncode == 0, done.stderr + done.stdout


def list_topics(status: SandboxStatus) -> set[str]:
    """Return the names of all topics."""
    done = kafka_sandbox.run_kafka_tool(TOPICS, "--bootstrap-server", status.bootstrap, "--list")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_brokers_are_ready_and_spread_over_racks(sandbox: SandboxStatus) -> None:
    now = kafka_sandbox.status(sandbox.folder)
    assert now.ready
    assert [(b.id, b.rack, b.ready) for b in now.brokers] == [
        (1, "rack-a", True),
        (2, "rack-b", True),
        (3, "rack-c", True),
    ]
    assert all(path.stat().st_size > 0 for path in now.log_files)


def test_brokers_listen_only_on_loopback(sandbox: SandboxStatus) -> None:
    for broker in kafka_sandbox.status(sandbox.folder).brokers:
        listening = [c.laddr for c in psutil.Process(broker.pid).net_connections() if c.status == "LISTEN"]
        assert {address.ip for address in listening} <= {"127.0.0.1", "::ffff:127.0.0.1"}
        assert {address.port for address in listening} == {broker.port, broker.port + 100}


def test_broker_memory_is_limited(sandbox: SandboxStatus) -> None:
    for broker in kafka_sandbox.status(sandbox.folder).brokers:
        assert psutil.Process(broker.pid).memory_info().rss < 400 * 1024 * 1024


def test_second_start_does_nothing(sandbox: SandboxStatus) -> None:
    assert sandbox.settings is not None
    assert list_pids(start_quietly(sandbox.settings)) == list_pids(kafka_sandbox.status(sandbox.folder))


def test_start_with_other_settings_is_refused(sandbox: SandboxStatus) -> None:
    assert sandbox.settings is not None
    with pytest.raises(KdeclareError, match=r"was created with 3 broker\(s\) on 3 rack\(s\)") as failed:
        start_quietly(SandboxSettings(sandbox.folder, 2, 2, sandbox.settings.port))
    assert failed.value.diagnostics[0].code == "sandbox-differs"


def test_topic_gets_replicas_on_all_racks(sandbox: SandboxStatus) -> None:
    create_topic(sandbox, "sandbox-spread", "--partitions", "1", "--replication-factor", "3")
    assert "sandbox-spread" in list_topics(sandbox)


def test_killed_broker_is_down_until_started(sandbox: SandboxStatus) -> None:
    try:
        after = kafka_sandbox.kill_broker(sandbox.folder, 3)
        assert [b.alive for b in after.brokers] == [True, True, False]
        assert not after.ready
    finally:
        back = kafka_sandbox.start_broker(sandbox.folder, 3)
    assert back.ready


@pytest.mark.thorough
def test_start_starts_only_brokers_that_are_down(sandbox: SandboxStatus) -> None:
    assert sandbox.settings is not None
    before = list_pids(kafka_sandbox.kill_broker(sandbox.folder, 1))
    after = start_quietly(sandbox.settings)
    assert after.ready
    assert list_pids(after)[1:] == before[1:]


@pytest.mark.thorough
def test_topics_survive_stop_but_not_reset(single: SandboxSettings) -> None:
    first = start_quietly(single)
    create_topic(first, "kept")
    stopped = kafka_sandbox.stop(single.folder)
    assert stopped.exists
    assert not stopped.running
    assert not psutil.pid_exists(first.brokers[0].pid or 0)
    assert list_topics(start_quietly(single)) == {"kept"}
    assert not kafka_sandbox.reset(single.folder).exists
    assert not single.folder.exists()


def test_concurrent_starts_create_one_sandbox(single: SandboxSettings) -> None:
    with ThreadPoolExecutor() as pool:
        one, two = pool.map(start_quietly, [single, single])
    assert list_pids(one) == list_pids(two)


def test_brokers_survive_the_process_that_started_them(single: SandboxSettings) -> None:
    program = (
        "import sys; from pathlib import Path; from kdeclare.sandbox import *;"
        "start(SandboxSettings(Path(sys.argv[1]), 1, 1, int(sys.argv[2])), print)"
    )
    subprocess.run([sys.executable, "-c", program, str(single.folder), str(single.port)], check=True)
    assert kafka_sandbox.status(single.folder).ready


def test_interrupted_start_leaves_no_process(single: SandboxSettings) -> None:
    program = (
        "import sys; from pathlib import Path; from kdeclare.sandbox import *;"
        "start(SandboxSettings(Path(sys.argv[1]), 1, 1, int(sys.argv[2])), lambda t: print(t, flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(single.folder), str(single.port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("starting"):
                process.send_signal(signal.SIGINT)
                break
    recorded = processes.read_record(resolve_layout(single.folder).broker(1).process)
    assert recorded is not None
    assert not processes.is_alive(recorded)
    assert start_quietly(single).ready


def test_broker_that_cannot_start_is_quoted_and_stopped(single: SandboxSettings) -> None:
    start_quietly(single)
    kafka_sandbox.stop(single.folder)
    data = resolve_layout(single.folder).broker(1).data
    meta = data / "meta.properties"
    meta.write_text(meta.read_text("latin-1").replace("node.id=1", "node.id=7"), "latin-1")
    with pytest.raises(
        KdeclareError, match=r"(?s)Broker 1 exited during startup\..*Stored node id 7"
    ) as failed:
        start_quietly(single)
    assert failed.value.diagnostics[0].code == "sandbox-start"
    assert not kafka_sandbox.status(single.folder).running


def test_stop_ignores_reused_process_id(single: SandboxSettings) -> None:
    start_quietly(single)
    kafka_sandbox.kill_broker(single.folder, 1)
    files = resolve_layout(single.folder).broker(1)
    recorded = processes.read_record(files.process)
    assert recorded is not None
    with subprocess.Popen(["sleep", "60"]) as stranger:
        processes.write_record(
            processes.ProcessRecord(stranger.pid, recorded.began, recorded.mark), files.process
        )
        assert not kafka_sandbox.stop(single.folder).running
        time.sleep(0.2)
        assert stranger.poll() is None
        stranger.kill()


def test_start_with_taken_port_creates_nothing(single: SandboxSettings) -> None:
    with socket.create_server(("127.0.0.1", single.port)), pytest.raises(KdeclareError) as failed:
        start_quietly(single)
    assert failed.value.diagnostics[0].code == "port-taken"
    assert f"Port {single.port} (broker 1) on" in str(failed.value)
    assert not single.folder.exists()
