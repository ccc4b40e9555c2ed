"""The cluster of a soak: three real brokers, each behind a proxy that only kdeclare's connections pass."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from kdeclare import sandbox as kafka_sandbox
from kdeclare.sandbox import SandboxSettings, broker_properties
from tests.conftest import free_port
from tests.ports import reserve_port
from tests.soak.tcp_proxy import FaultyProxy, NetworkFault

BROKERS = (1, 2, 3)
_LISTENER = "SOAK"
_READY_S = 120.0


@dataclass
class SoakCluster:
    """A running cluster.

    bootstrap: the addresses for the checker and for other clients. proxied: the addresses for kdeclare. They
        belong to a listener of their own, whose advertised addresses are those of the proxies.
    faults: how often each type of fault was begun.
    """

    settings: SandboxSettings
    bootstrap: str
    proxies: dict[int, FaultyProxy]
    faults: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def folder(self) -> Path:
        return self.settings.folder

    @property
    def proxied(self) -> str:
        return ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies.values())

    def connect(self) -> KafkaAdminClient:
        """Open a client of kafka-python."""
        return KafkaAdminClient(
            bootstrap_servers=self.bootstrap, request_timeout_ms=10_000, client_id="soak-other"
        )

    @contextmanager
    def open_admin(self) -> Iterator[KafkaAdminClient]:
        """Open a client of kafka-python for the block."""
        admin = self.connect()
        try:
            yield admin
        finally:
            admin.close()

    def find_controller(self) -> int:
        """Return the id of the active controller."""
        deadline = time.monotonic() + _READY_S
        while True:
            try:
                with self.open_admin() as admin:
                    quorum = admin.describe_metadata_quorum()
                return int(quorum["topics"][0]["partitions"][0]["leader_id"])
            except Exception:  # whatever a client raises while a broker is down
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def restart_broker(self, broker: int, down_s: float, what: str) -> None:
        """Kill a broker, and start it again after a while. Never kills two brokers at the same time."""
        with self._lock:
            self.faults[what] += 1
            kafka_sandbox.kill_broker(self.folder, broker)
            try:
                time.sleep(down_s)
            finally:
                kafka_sandbox.start_broker(self.folder, broker, timeout=_READY_S)

    def restart_all_brokers(self, what: str) -> None:
        """Kill all brokers at once, and start them again."""
        with self._lock:
            self.faults[what] += 1
            for broker in BROKERS:
                kafka_sandbox.kill_broker(self.folder, broker)
            kafka_sandbox.start(self.settings, print, timeout=_READY_S)

    def disturb_network(self, broker: int, fault: NetworkFault, seconds: float) -> None:
        """Disturb kdeclare's connections to one broker for a while."""
        self.faults[f"network: {fault}"] += 1
        self.proxies[broker].start_fault(fault)
        try:
            time.sleep(seconds)
        finally:
            self.proxies[broker].heal()

    def heal(self) -> None:
        """End all faults, and wait until all brokers run and all replicas are in sync."""
        for proxy in self.proxies.values():
            proxy.heal()
        with self._lock:
            for broker in BROKERS:
                kafka_sandbox.start_broker(self.folder, broker, timeout=_READY_S)
        deadline = time.monotonic() + _READY_S
        while not self._is_in_sync():
            if time.monotonic() > deadline:
                raise TimeoutError("the brokers did not recover")
            time.sleep(0.5)

    def _is_in_sync(self) -> bool:
        with suppress(Exception), self.open_admin() as admin:
            brokers = {broker["broker_id"] for broker in admin.describe_cluster()["brokers"]}
            moving = {(at.topic, at.partition) for at in admin.list_partition_reassignments()}
            return brokers == set(BROKERS) and all(
                len(partition["isr_nodes"]) == len(partition["replica_nodes"])
                for topic in admin.describe_topics()
                for partition in topic["partitions"]
                if (topic["name"], partition["partition_index"]) not in moving
            )
        return False


@contextmanager
def run_soak_cluster(folder: Path, seed: int) -> Iterator[SoakCluster]:
    """Start the brokers, and delete them at the end. ANONYMOUS is a super user, so ACLs restrict nobody."""
    settings = SandboxSettings(folder, port=free_port(len(BROKERS)))
    ports = {broker: reserve_port() for broker in BROKERS}
    chance = random.Random(seed)
    proxies = {broker: FaultyProxy(port, chance.randrange(1 << 30)) for broker, port in ports.items()}
    usual = broker_properties.broker_properties

    def add_listener(of: SandboxSettings, broker: int, *log_dirs: Path) -> dict[str, str]:
        properties = usual(of, broker, *log_dirs)
        if of.folder != settings.folder:
            return properties  # other sandboxes of this process
        usual_address = f"127.0.0.1:{of.get_broker_port(broker)}"
        protocols = properties["listener.security.protocol.map"]
        return properties | {
            "listeners": f"{properties['listeners']},{_LISTENER}://127.0.0.1:{ports[broker]}",
            "advertised.listeners": f"PLAINTEXT://{usual_address},"
            f"{_LISTENER}://127.0.0.1:{proxies[broker].port}",
            "listener.security.protocol.map": f"{protocols},{_LISTENER}:PLAINTEXT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker_properties, "broker_properties", add_listener)
        try:
            status = kafka_sandbox.start(settings, print)
            yield SoakCluster(settings, status.bootstrap, proxies)
        finally:
            kafka_sandbox.reset(settings.folder)
            for proxy in proxies.values():
                proxy.close()
