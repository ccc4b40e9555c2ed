"""The measured cluster: a new sandbox with three brokers, or an existing cluster."""

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from kdeclare.sandbox import SandboxSettings, is_free, reset, start
from kdeclare.sandbox.security import ADMIN, get_password
from kdeclare.sandbox.settings import HOST

HEAP = "-Xms512m -Xmx1536m"
"""The JVM heap of one broker.

The sandbox's default of 384 MB is too small for 5,000 topics with three replicas: brokers would spend most of
their time on garbage collection.
"""

_QUIET = 0.75
"""Brokers count as idle if together they use less than this share of a core.

With 5,000 topics, idle brokers use half a core.
"""
_LIMIT_S = 180


@dataclass(frozen=True, slots=True)
class Bench:
    """A reachable cluster.

    pids: the process ids of the brokers, if known.
    client: the client properties of the admin of a secured cluster.
    """

    bootstrap: str
    pids: tuple[int, ...] = ()
    client: Path | None = None

    def settle(self) -> None:
        """Wait until the brokers are idle, because they continue to work long after they have responded."""
        if not self.pids:
            time.sleep(10)
        limit = time.monotonic() + _LIMIT_S
        while self.pids and time.monotonic() < limit:
            before = self._cpu_s()
            time.sleep(2)
            if self._cpu_s() - before < 2 * _QUIET:
                return

    def _cpu_s(self) -> float:
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in self.pids)


@contextmanager
def cluster(given: str | None = None, brokers: int = 3) -> Iterator[Bench]:
    """Yield the cluster at the address ``given``, or a temporary sandbox with this number of brokers."""
    if given is not None:
        yield Bench(given)
        return
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as folder:
        sandbox = Path(folder) / "sandbox"
        try:
            status = start(SandboxSettings(sandbox, brokers, min(3, brokers), free_port()), lambda _: None)
            pids = tuple(broker.pid for broker in status.brokers if broker.pid is not None)
            yield Bench(status.bootstrap or "", pids)
        finally:
            reset(sandbox)


@contextmanager
def secured_broker() -> Iterator[Bench]:
    """Yield a temporary sandbox with one broker that has an authorizer. Clients connect without TLS."""
    with tempfile.TemporaryDirectory(prefix="kdeclare-benchmark-") as folder:
        settings = SandboxSettings(Path(folder) / "sandbox", 1, 1, free_port(secure=True), secure=True)
        try:
            status = start(settings, lambda _: None)
            pids = tuple(broker.pid for broker in status.brokers if broker.pid is not None)
            address = f"{HOST}:{settings.get_listener_port(1, 'SASL_PLAINTEXT')}"
            client = Path(folder) / "client.properties"
            client.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="{ADMIN}" password="{get_password(ADMIN)}";\n'
            )
            yield Bench(address, pids, client)
        finally:
            reset(settings.folder)


def free_port(*, secure: bool = False) -> int:
    """Return the first port of a block of free ports for a sandbox."""
    while True:
        port = random.randrange(20_000, 32_000, 10)
        settings = SandboxSettings(Path("sandbox"), port=port, secure=secure)
        if all(is_free(taken) for broker in settings.broker_ids for taken in settings.ports(broker)):
            return port
