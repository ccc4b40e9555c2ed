"""Producers and consumers of secured brokers that send without a pause, and record every refusal."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import kafka
from kafka.errors import AuthorizationError, TopicAuthorizationFailedError

from kdeclare.sandbox import SandboxSettings
from kdeclare.sandbox.settings import HOST
from tests.kafka.group_consumers import resubscribe

_REFUSED = (AuthorizationError, TopicAuthorizationFailedError)
_TIMEOUT_S = 60
_IN_A_ROW = 3
_QUIET_S = 0.7
"""For how long no request must succeed to count as refused."""
_STUCK_S = 10
"""After how long without partitions a consumer subscribes again."""


@dataclass(frozen=True)
class Credential:
    """A user's password for one mechanism."""

    user: str
    password: str
    mechanism: str = "SCRAM-SHA-512"

    def connect_to(self, settings: SandboxSettings) -> Mapping[str, Any]:
        """Return the arguments of kafka-python's clients."""
        return {
            "bootstrap_servers": f"{HOST}:{settings.get_listener_port(1, 'SASL_PLAINTEXT')}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
            "metadata_max_age_ms": 200,  # so that a client notices new and lost rights soon
            "bootstrap_timeout_ms": 10_000,
        }


@dataclass
class Load:
    """A client in a thread.

    attempts, refused: the times of all requests with a result, and of those that were refused.
    failures: the texts of all errors, refusals included.
    """

    settings: SandboxSettings
    credential: Credential
    topic: str
    attempts: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run for as long as the block lasts."""
        self.start()
        try:
            yield
        finally:
            self.stop()

    def start(self) -> None:
        """Connect and begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and close the connection."""
        self._stop.set()
        self._thread.join(_TIMEOUT_S)
        assert not self._thread.is_alive()

    def wait_for_attempts(self, count: int = 3) -> None:
        """Wait until that many further requests were answered."""
        target, deadline = len(self.attempts) + count, time.monotonic() + _TIMEOUT_S
        while len(self.attempts) < target:
            assert self._thread.is_alive(), self.failures
            assert time.monotonic() < deadline, f"the client gets no result: {self.describe()}"
            time.sleep(0.01)

    def is_refused(self) -> bool:
        """Return whether requests from now on are refused. Some clients then wait before they try again."""
        begun = time.monotonic()
        while time.monotonic() < begun + _TIMEOUT_S:
            time.sleep(0.05)
            refused = set(self.refused)
            new = [(at, at in refused) for at in self.attempts if at > begun]
            if len(new) >= _IN_A_ROW and not any(is_refused for _, is_refused in new[-_IN_A_ROW:]):
                return False
            if new and new[-1][1] and time.monotonic() > new[0][0] + _QUIET_S:
                last_success = max((at for at, is_refused in new if not is_refused), default=begun)
                if time.monotonic() > last_success + _QUIET_S:
                    return True
        raise AssertionError(f"{self.failures[-3:]}, {len(self.attempts)} attempts")

    def describe(self) -> str:
        """Return what is known about the client, for the message of a failed test."""
        return f"{self.topic}, {len(self.attempts)} attempts, {self.failures[-3:]}"

    def _run(self) -> None:
        client: Any = None
        try:
            client = self._connect(dict(self.credential.connect_to(self.settings)))
            while not self._stop.is_set():
                self._attempt(client)
        except Exception as exc:  # noqa: BLE001  a test reports it
            self.failures.append(repr(exc))
        finally:
            if client is not None:
                client.close()

    def _attempt(self, client: Any) -> None:
        at = time.monotonic()
        try:
            has_effect = self._send(client)
        except _REFUSED as exc:
            has_effect = True
            self.refused.append(at)
            self.failures.append(repr(exc))
            time.sleep(0.01)
        except Exception as exc:  # noqa: BLE001  counted, and the client goes on
            has_effect = True
            self.failures.append(repr(exc))
        if has_effect:
            self.attempts.append(at)

    def _connect(self, arguments: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _send(self, client: Any) -> bool:
        """Return whether a broker has done something. Raises an error if it refused to."""
        raise NotImplementedError


@dataclass
class LoadProducer(Load):
    """Sends one record after the other. acknowledged: their keys."""

    name: str = "p"
    acknowledged: list[str] = field(default_factory=list)

    def _connect(self, arguments: dict[str, Any]) -> Any:
        return kafka.KafkaProducer(**arguments, acks="all", enable_idempotence=False, retries=0)

    def _send(self, client: Any) -> bool:
        key = f"{self.name}-{len(self.attempts)}"
        client.send(self.topic, b"x", key=key.encode()).get(_TIMEOUT_S)
        self.acknowledged.append(key)
        time.sleep(0.002)
        return True


@dataclass
class LoadConsumer(Load):
    """Reads a topic from the beginning as a member of a group. received: the keys of its records."""

    group: str = "readers"
    received: list[str] = field(default_factory=list)
    positions: dict[int, int] = field(default_factory=dict)
    assigned_at: float = 0.0

    def _connect(self, arguments: dict[str, Any]) -> Any:
        self.assigned_at = time.monotonic()
        return kafka.KafkaConsumer(
            self.topic,
            **arguments,
            group_id=self.group,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
            fetch_max_wait_ms=20,
            heartbeat_interval_ms=200,
            check_crcs=False,
        )

    def describe(self) -> str:
        """Return also the assigned partitions, and the positions."""
        return f"{super().describe()}, positions {self.positions}"

    def _send(self, client: Any) -> bool:
        if client.assignment():
            self.assigned_at = time.monotonic()
        elif time.monotonic() > self.assigned_at + _STUCK_S:
            resubscribe(client, self.topic)
            self.assigned_at = time.monotonic()
        batches = client.poll(timeout_ms=500)
        self.positions = dict.fromkeys((one.partition for one in client.assignment()), -1) | self.positions
        for partition, records in batches.items():
            self.received += [record.key.decode() for record in records]
            self.positions[partition.partition] = records[-1].offset + 1
        return bool(batches)
