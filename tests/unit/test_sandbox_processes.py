"""Identifying processes, querying brokers, and the folder lock."""

import dataclasses
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.sandbox import health, processes
from kdeclare.sandbox.folder_lock import hold_lock

MARK = "-Dkdeclare.test=/some/folder"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[processes.ProcessRecord]:
    """Start a process that sleeps."""
    program = "import time; print('up', flush=True); time.sleep(60)"
    out = tmp_path / "out"
    recorded = processes.spawn([sys.executable, "-c", program, MARK], {}, out, MARK)
    while "up" not in out.read_text():  # While the process starts, its command line may be empty.
        time.sleep(0.01)
    yield recorded
    processes.terminate([recorded], 5, 5)


def test_process_is_identified_by_pid_start_and_mark(sleeper: processes.ProcessRecord) -> None:
    assert processes.is_alive(sleeper)
    assert not processes.is_alive(dataclasses.replace(sleeper, began="1"))
    assert not processes.is_alive(dataclasses.replace(sleeper, mark="/another/folder"))


def test_terminated_process_leaves_no_zombie(sleeper: processes.ProcessRecord) -> None:
    processes.terminate([sleeper], 5, 5)
    assert not processes.is_alive(sleeper)
    assert processes.observe(sleeper.pid) is None


def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True);"
        "time.sleep(60)"
    )
    out = tmp_path / "out"
    recorded = processes.spawn([sys.executable, "-c", program, MARK], {}, out, MARK)
    while not out.read_text():
        assert processes.is_alive(recorded)
    processes.terminate([recorded], 0.2, 0.2)
    assert not processes.is_alive(recorded)


def test_terminate_ignores_other_process_with_same_pid() -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        processes.terminate([processes.ProcessRecord(stranger.pid, "1", MARK)], 1, 1)
        assert stranger.poll() is None
        stranger.kill()


def test_process_record_round_trips(tmp_path: Path, sleeper: processes.ProcessRecord) -> None:
    path = tmp_path / "process.json"
    assert processes.read_record(path) is None
    processes.write_record(sleeper, path)
    assert processes.read_record(path) == sleeper
    path.write_text("{")
    assert processes.read_record(path) is None


def test_parse_ps_returns_process() -> None:
    line = "Ss   Sat Nov 21 13:14:33 2026     /usr/bin/java -Dx=/a b kafka.Kafka\n"
    assert processes.parse_ps(line) == processes.ObservedProcess(
        "Sat Nov 21 13:14:33 2026", "/usr/bin/java -Dx=/a b kafka.Kafka", False
    )
    ended = processes.parse_ps("Z    Sat Nov 21 13:14:33 2026     \n")
    assert ended is not None
    assert ended.ended
    assert processes.parse_ps("") is None


def make_response(*broker_ids: int, cluster_id: bytes = b"abc") -> bytes:
    """Return a Metadata response, version 5, with the fields that are read."""
    body = struct.pack(">iii", 1, 0, len(broker_ids))
    for broker_id in broker_ids:
        body += struct.pack(">ih", broker_id, 9) + b"127.0.0.1" + struct.pack(">ih", 19092, -1)
    return body + struct.pack(">h", len(cluster_id)) + cluster_id + struct.pack(">ii", 1, 0)


def test_parse_response_returns_unfenced_brokers() -> None:
    view = health.parse_response(make_response(1, 3))
    assert view == health.ClusterView("abc", frozenset({1, 3}))


def test_parse_response_rejects_truncated_response() -> None:
    for length in (0, 3, 11, 20, 40):
        with pytest.raises(ValueError, match="truncated"):
            health.parse_response(make_response(1, 3)[:length])


def test_request_starts_with_its_length() -> None:
    request = health.build_request()
    assert struct.unpack(">i", request[:4])[0] == len(request) - 4


def test_ask_on_closed_port_returns_none() -> None:
    assert health.ask("127.0.0.1", 1, 0.5) is None


def test_hold_lock_is_exclusive_after_file_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    order: list[str] = []
    waits = threading.Event()

    def hold_second() -> None:
        with hold_lock(path, waits.set):
            order.append("second")

    with hold_lock(path, pytest.fail):
        other = threading.Thread(target=hold_second)
        other.start()
        assert waits.wait(60)
        order.append("first")
        path.unlink()
    other.join(60)
    assert order == ["first", "second"]
    assert path.exists()
