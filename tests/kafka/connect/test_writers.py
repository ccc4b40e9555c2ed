"""Many concurrent writers, and a leader that dies while they write."""

import http.client
import threading
import time

import pytest

from tests.kafka.connect.asking import KEYSTORE, TRUSTSTORE, Answer, WorkerClient
from tests.kafka.connect.certificates import PASSWORD
from tests.kafka.connect.workers import Crew, Worker, wait_for_result

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

_TLS = "listeners.https.ssl"
# The value of each key's placeholder, for any number.
_KEYS = {
    f"{_TLS}.keystore.password": PASSWORD,
    f"{_TLS}.keystore.type": "PKCS12",
    f"{_TLS}.key.password": PASSWORD,
    f"{_TLS}.truststore.password": PASSWORD,
    f"{_TLS}.truststore.type": "PKCS12",
    KEYSTORE: "",
}
_ROUNDS = 30
_GONE = (OSError, http.client.HTTPException)


@pytest.fixture
def values(crew: Crew) -> dict[str, list[str]]:
    """For each key, as many values as there are rounds: all different and all valid.

    The stores open fast, so that writing takes most of the time.
    """
    assert crew.leader().ask.patch({TRUSTSTORE: str(crew.certificates.fast_trust)}).status == 200
    file = crew.certificates.folder / "numbered.properties"
    stands_for = {**_KEYS, KEYSTORE: str(crew.certificates.store("fast"))}
    lines = [f"{key}.{number}={value}\n" for key, value in stands_for.items() for number in range(_ROUNDS)]
    file.write_text("".join(lines))
    return {key: [f"${{file:{file}:{key}.{number}}}" for number in range(_ROUNDS)] for key in _KEYS}


def write_together(crew: Crew, values: dict[str, list[str]], write: "Writer") -> None:
    """Run one writer per key, using the workers in turn, until each has written all of its values."""
    threads = [
        threading.Thread(target=write.all, args=(crew.workers[number % 3], key, values[key]))
        for number, key in enumerate(values)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Writer:
    """Writes values one after the other and records errors."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def all(self, worker: Worker, key: str, values: list[str]) -> None:
        """Write all values through one worker."""
        ask = worker.ask
        for value in values:
            self.one(ask, key, value)

    def one(self, ask: WorkerClient, key: str, value: str) -> None:
        """Every successful write returns a map that contains it."""
        answer = ask.patch({key: value})
        if answer.status != 200 or answer.body[key] != value:
            self.wrong.append(answer.text)


class InsistingWriter(Writer):
    """Retry until the value is written; errors must explain themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Answer] = []

    def one(self, ask: WorkerClient, key: str, value: str) -> None:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                answer = ask.patch({key: value})
            except _GONE:  # this worker was the leader
                return
            if answer.status == 200:
                return
            self.errors.append(answer)
            if not answer.message or answer.status not in (409, 500, 503):
                self.wrong.append(answer.text)
            time.sleep(0.2)
        self.wrong.append(f"{key} was never written")


def test_six_writers_through_three_workers_lose_no_writes(crew: Crew, values: dict[str, list[str]]) -> None:
    writing = Writer()
    began = time.monotonic()
    write_together(crew, values, writing)
    print(f"{6 * _ROUNDS} writes in {time.monotonic() - began:.1f} s")
    assert writing.wrong == []
    crew.await_settled()
    last = {key: of_key[-1] for key, of_key in values.items()}
    last[TRUSTSTORE] = str(crew.certificates.fast_trust)
    assert all(w.ask.overrides() == last for w in crew.workers)
    assert all(w.ask.status()["error"] is None for w in crew.workers)
    crew.await_served(crew.certificates.sha256["a"])


def test_killed_leader_leaves_no_partial_write(crew: Crew, values: dict[str, list[str]]) -> None:
    leading, writing = crew.leader(), InsistingWriter()
    few = {key: of_key[:6] for key, of_key in values.items()}
    killing = threading.Timer(1.0, leading.kill)
    killing.start()
    try:
        write_together(crew, few, writing)
    finally:
        killing.join()
    left = [w for w in crew.workers if w is not leading]
    assert writing.wrong == []
    wait_for_result(lambda: any(w.ask.status()["leader"] for w in left))
    leading.start()
    crew.await_settled()
    there = [w.ask.overrides() for w in crew.workers]
    assert there[0] == there[1] == there[2]
    through_survivors = [key for n, key in enumerate(few) if crew.workers[n % 3] is not leading]
    assert {key: there[0][key] for key in through_survivors} == {
        key: few[key][-1] for key in through_survivors
    }
    assert all(value in few[key] for key, value in there[0].items() if key in few)
    hashes = {w.ask.status()["applied"]["sha256"] for w in crew.workers}
    assert len(hashes) == 1
