"""Ports that tests reserve: never shared between processes, and available again when a process ends."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.sandbox import SandboxSettings
from tests.conftest import free_port, free_ports_of_clusters
from tests.ports import PortLocks, reserve_port, reserve_ports

# The seed makes all processes that run this choose the same ports at first.
CHOOSE = """
import random
from pathlib import Path
from kdeclare.sandbox import SandboxSettings
from tests.conftest import free_port
random.seed(20)
settings = SandboxSettings(Path(), 1, 1, free_port(1, 1, secure=True, registry=True), 1, 1, True, True)
print(*settings.ports(1), settings.get_worker_port(1), settings.registry_port, settings.registry_port + 1)
"""

RESERVE = """
import subprocess, sys
from pathlib import Path
from tests.ports import PortLocks
locks = PortLocks(Path({file!r}))
print(*(port for port in {ports} if locks.try_reserve([port])))
"""

WAIT = "sys.stdout.flush(); sys.stdin.read()"

# The child process ends when the test closes the standard input that it inherits.
START_CHILD = """
subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
"""


class Starter:
    """Starts Python processes that print ports, and kills them."""

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[str]] = []

    def start(self, script: str) -> "subprocess.Popen[str]":
        """Start a process."""
        command = [sys.executable, "-c", script]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._running.append(process)
        return process

    def kill_all(self) -> None:
        """Kill all processes, and wait for them."""
        while self._running:
            process = self._running.pop()
            process.kill()
            process.communicate()


@pytest.fixture
def starter() -> Iterator[Starter]:
    """Processes that end with the test."""
    starter = Starter()
    yield starter
    starter.kill_all()


@pytest.fixture
def ports() -> list[int]:
    """Ports that no other test uses, for reservations in a file of the test."""
    first = reserve_ports(lambda first: range(first, first + 10))
    return list(range(first, first + 10))


def read_ports(process: "subprocess.Popen[str]") -> list[int]:
    """Return the ports that the process prints."""
    assert process.stdout is not None
    return [int(port) for port in process.stdout.readline().split()]


@pytest.mark.slow
def test_processes_that_prefer_same_ports_get_different_ports(starter: Starter) -> None:
    started = [starter.start(f"import sys{CHOOSE}{WAIT}") for _ in range(2)]
    first, second = (read_ports(process) for process in started)
    assert len(first) == len(second) == 8
    assert not set(first) & set(second)


@pytest.mark.slow
def test_processes_divide_ports_and_leave_them_when_killed(
    starter: Starter, ports: list[int], tmp_path: Path
) -> None:
    script = RESERVE.format(file=str(tmp_path / "ports"), ports=ports) + WAIT
    started = [starter.start(script) for _ in range(3)]
    reserved = [port for process in started for port in read_ports(process)]
    assert sorted(reserved) == ports
    locks = PortLocks(tmp_path / "ports")
    assert not any(locks.try_reserve([port]) for port in ports)
    starter.kill_all()
    assert locks.try_reserve(ports)


def test_child_of_killed_process_does_not_keep_ports(
    starter: Starter, ports: list[int], tmp_path: Path
) -> None:
    script = RESERVE.format(file=str(tmp_path / "ports"), ports=ports) + START_CHILD + WAIT
    process = starter.start(script)
    assert read_ports(process) == ports
    locks = PortLocks(tmp_path / "ports")
    assert not locks.try_reserve(ports)
    process.kill()
    process.wait()
    assert locks.try_reserve(ports)


def test_unavailable_port_leaves_others_available(ports: list[int], tmp_path: Path) -> None:
    first, second, used, *_ = ports
    locks = PortLocks(tmp_path / "ports")
    with socket.create_server(("127.0.0.1", used)):
        assert not locks.try_reserve([first, used])
    assert locks.try_reserve([first])
    assert not locks.try_reserve([second, first]), "reserved by this process"
    assert locks.try_reserve([second, used])


def test_sandboxes_of_one_process_do_not_share_ports() -> None:
    reserved = [reserve_port(), reserve_port()]
    for _ in range(40):
        settings = SandboxSettings(Path(), 3, 1, free_port(3, secure=True), secure=True)
        reserved += [port for broker in settings.broker_ids for port in settings.ports(broker)]
    first = free_ports_of_clusters(2)
    reserved += [first, first + 100, first + 200, first + 300]
    assert len(reserved) == len(set(reserved))
