"""Repeated rotations, with clients that must not notice."""

import http.client
import threading

import pytest

from tests.kafka.connect.asking import KEYSTORE, KEYSTORE_PASSWORD, WorkerClient, send_request
from tests.kafka.connect.certificates import PASSWORD
from tests.kafka.connect.workers import Crew
from tests.thoroughness import pick

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

_ROTATIONS = pick(5, 20)
_CLIENTS = 50
_PAUSE_SECONDS = 1.0


def build_change(crew: Crew, number: int) -> dict[str, str]:
    """Return the change of a rotation, each to a different certificate."""
    return {KEYSTORE: str(crew.certificates.store("ab"[number % 2])), KEYSTORE_PASSWORD: PASSWORD}


class Client(threading.Thread):
    """Sends requests to a worker repeatedly; every second client keeps one connection open."""

    def __init__(self, ask: WorkerClient, keeps: bool, over: threading.Event) -> None:
        super().__init__()
        self._ask, self._keeps, self._over = ask, keeps, over
        self.answered = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        """Run until the test ends."""
        connection = self._ask.connection()
        while not self._over.wait(_PAUSE_SECONDS):
            try:
                answer = send_request(connection, "GET", "/")
                if answer.status != 200:
                    self.wrong.append(answer.text)
                self.answered += 1
            except (OSError, http.client.HTTPException) as problem:
                self.wrong.append(repr(problem))
            if not self._keeps or self.wrong:
                connection.close()
        connection.close()


def test_rotations_drop_no_requests_of_fifty_clients(crew: Crew) -> None:
    over = threading.Event()
    clients = [Client(crew.workers[n % 3].ask, n % 2 == 0, over) for n in range(_CLIENTS)]
    for client in clients:
        client.start()
    try:
        for number in range(_ROTATIONS):
            assert crew.workers[number % 3].ask.patch(build_change(crew, number)).status == 200
            crew.await_served(crew.certificates.sha256["ab"[number % 2]])
    finally:
        over.set()
        for client in clients:
            client.join()
    assert [wrong for client in clients for wrong in client.wrong] == []
    assert all(client.answered > 0 for client in clients)
    print(f"{sum(client.answered for client in clients)} requests during {_ROTATIONS} rotations")
