"""Processes that share a state in a topic: they race, die at the worst moment, and lose brokers."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.storage.conditional_objects import ConditionalObjects, StoredObject
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.records import expect
from tests.kafka.state.worker import COUNTER
from tests.polling import retry_until_passes
from tests.thoroughness import pick

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

ROOT = Path(__file__).parents[3]

LONGER_THAN_ANY_WAIT_S = 600
"""A transaction timeout that no command waits for; brokers allow at most 900 s."""

Open = Callable[[], ConditionalObjects]


@pytest.fixture
def counter(open_objects: Open) -> ConditionalObjects:
    """The objects, with a counter."""
    objects = open_objects()
    objects.create(COUNTER, b"0")
    return objects


def start_worker(mode: str, sandbox: SandboxStatus, topic: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.kafka.state.worker", mode, sandbox.bootstrap, topic, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def leave_transaction_open(sandbox: SandboxStatus, topic: str, *timeout: str) -> None:
    """Kill a process between its write and its commit."""
    worker = start_worker("hang", sandbox, topic, *timeout)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "written\n"
    worker.kill()
    worker.wait()
    worker.stdout.close()


def read_figures(worker: subprocess.Popen[str], timeout_s: float) -> dict[str, float]:
    try:
        output, _ = worker.communicate(timeout=timeout_s)
    finally:
        worker.kill()
    assert worker.returncode == 0
    figures: dict[str, float] = json.loads(output)
    print(figures)
    return figures


def get_existing(objects: ConditionalObjects, key: str) -> StoredObject:
    stored = objects.get(key)
    assert stored is not None
    return stored


def check_nothing_is_lost(objects: ConditionalObjects, names: str, times: int) -> None:
    assert int(get_existing(objects, COUNTER).data) == len(names) * times
    keys = objects.list_keys("journals/")
    assert len(keys) == len(names) * times
    seen = {int(get_existing(objects, key).data) for key in keys}
    assert seen == set(range(len(names) * times)), "each value was seen by exactly one writer"


@pytest.mark.parametrize(
    "parities",
    [pytest.param(("0", "1"), id="alternating", marks=pytest.mark.thorough), pytest.param((), id="racing")],
)
def test_two_processes_lose_no_write(
    counter: ConditionalObjects, sandbox: SandboxStatus, topic: str, parities: tuple[str, ...]
) -> None:
    times = pick(15, 50)
    workers = [
        start_worker("count", sandbox, topic, name, str(times), *parities[number : number + 1])
        for number, name in enumerate("ab")
    ]
    for worker in workers:
        figures = read_figures(worker, 300)
        assert figures["failures"] == 0
    check_nothing_is_lost(counter, "ab", times)


def test_killed_process_leaves_no_lock(
    counter: ConditionalObjects, open_objects: Open, sandbox: SandboxStatus, topic: str
) -> None:
    reader, writer = open_objects(), open_objects()
    version = get_existing(reader, COUNTER).version
    leave_transaction_open(sandbox, topic, str(LONGER_THAN_ANY_WAIT_S))
    # The coordinator does not abort this transaction in time, so the writer must fence the dead process.
    assert writer.replace(COUNTER, b"1", version) != version
    assert get_existing(reader, COUNTER).data == b"1"


def test_reader_waits_until_transaction_of_killed_process_is_aborted(
    counter: ConditionalObjects, open_objects: Open, sandbox: SandboxStatus, topic: str
) -> None:
    reader = open_objects()
    leave_transaction_open(sandbox, topic)
    assert get_existing(reader, COUNTER).data == b"0"


@pytest.mark.thorough
def test_writes_survive_loss_of_each_broker(
    counter: ConditionalObjects, kafka_bed: KafkaBed, sandbox: SandboxStatus, topic: str
) -> None:
    times = 400
    worker = start_worker("count", sandbox, topic, "a", str(times))

    def count_in_sync() -> int:
        return len(kafka_bed.topic(topic).partitions[0].isr)

    for _ in range(2):  # the second time, the coordinator or the controller may be lost
        leader = kafka_bed.topic(topic).partitions[0].leader
        assert leader is not None
        try:
            kafka_sandbox.kill_broker(sandbox.folder, leader)
            retry_until_passes(lambda: expect(count_in_sync() == 2))
        finally:
            kafka_sandbox.start_broker(sandbox.folder, leader)
        retry_until_passes(lambda: expect(count_in_sync() == 3))
    read_figures(worker, 200)
    check_nothing_is_lost(counter, "a", times)
