"""A real broker whose metadata trails the controller: a controller, a broker, and a proxy between them.

The broker fetches the metadata log through the proxy, which can hold these requests back. Everything else
(heartbeats, forwarded requests) passes, so that the broker serves clients with old metadata.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kdeclare.providers.kafka.client import connect
from kdeclare.sandbox import SandboxSettings, broker_properties, launch, processes
from kdeclare.sandbox.layout import resolve_layout, write_atomically
from tests.conftest import free_port

_FETCH = 1
_STEP_S = 0.02


@dataclass
class Proxy:
    """Passes connections on to ``target``, and holds Fetch requests back while `holding`.

    hold_after: how many bytes of Fetch answers may still pass before it holds by itself.
    """

    target: tuple[str, int]
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    hold_after: float = float("inf")
    holding: bool = False
    closed: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def release(self) -> None:
        """Let the broker catch up."""
        self.hold_after, self.holding = float("inf"), False

    def close(self) -> None:
        self.closed = True
        self.listener.close()

    def _accept(self) -> None:
        while not self.closed:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                continue
            fetches: set[int] = set()
            for work in (self._requests, self._answers):
                threading.Thread(target=work, args=(client, server, fetches), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, fetches: set[int]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _read_frame(client)
                api, _, correlation = struct.unpack(">hhi", frame[4:12])
                if api == _FETCH:
                    fetches.add(correlation)
                    while self.holding and not self.closed:
                        time.sleep(_STEP_S)
                server.sendall(frame)
        _close_sockets(client, server)

    def _answers(self, client: socket.socket, server: socket.socket, fetches: set[int]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _read_frame(server)
                (correlation,) = struct.unpack(">i", frame[4:8])
                if correlation in fetches:
                    while self.holding and not self.closed:  # a long poll that was under way
                        time.sleep(_STEP_S)
                    with self._lock:
                        self.hold_after -= len(frame)
                        self.holding = self.holding or self.hold_after < 0
                client.sendall(frame)
        _close_sockets(client, server)


def _read_frame(source: socket.socket) -> bytes:
    head = _read_exactly(source, 4)
    return head + _read_exactly(source, int.from_bytes(head, "big"))


def _read_exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _close_sockets(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@dataclass(frozen=True)
class TrailingCluster:
    """A cluster of one controller and one broker."""

    bootstrap: str
    proxy: Proxy


@contextlib.contextmanager
def start_trailing_broker(folder: Path) -> Iterator[TrailingCluster]:
    """Node 1 is the controller, node 2 the only broker."""
    settings = SandboxSettings(folder, brokers=2, racks=1, port=free_port(2))
    layout, kafka = resolve_layout(folder), launch.resolve_runtime()
    proxy = Proxy(("127.0.0.1", settings.get_controller_port(1)))
    launch.format_storage(kafka, layout, settings, launch.generate_id())
    own = f"CONTROLLER://127.0.0.1:{settings.get_controller_port(1)}"
    told = f"CONTROLLER://127.0.0.1:{proxy.port}"  # where it tells brokers that it is
    different = {
        1: {"process.roles": "controller", "listeners": own, "advertised.listeners": told},
        2: {},
    }
    single = {
        "metadata.max.idle.interval.ms": "0",  # no records of its own: the broker trails only what is written
        "controller.quorum.voters": f"1@127.0.0.1:{proxy.port}",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    started = []
    try:
        for node, more in different.items():
            files = layout.broker(node)
            properties = (
                broker_properties.broker_properties(settings, node, *files.log_dirs(1)) | single | more
            )
            if node == 1:
                del properties["inter.broker.listener.name"]
            write_atomically(files.properties, broker_properties.render(properties))
            arguments = ("-Xms64m", "-Xmx512m", "kafka.Kafka", str(files.properties))
            started.append(launch.spawn(kafka, files, "broker", arguments))
        bootstrap = f"127.0.0.1:{settings.get_broker_port(2)}"
        _wait_for_broker(bootstrap)
        yield TrailingCluster(bootstrap, proxy)
    finally:
        proxy.close()
        processes.terminate(started, 5, 10)


def _wait_for_broker(bootstrap: str, timeout_s: float = 60) -> None:
    until = time.monotonic() + timeout_s
    while True:
        try:
            cluster = connect(bootstrap, {})
        except Exception:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
        else:
            cluster.close()
            return
