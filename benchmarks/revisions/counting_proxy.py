"""A proxy in front of one broker. The proxy counts the requests of a client, for any revision of kdeclare."""

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafka.protocol.api_key import ApiKey

_HOST = "127.0.0.1"


@dataclass
class CountingProxy:
    """A proxy that forwards connections to the broker on ``port`` of this machine.

    The broker reports its own address to clients. The proxy replaces the port in all responses, without
    changing their length, so that clients open later connections through the proxy, too.
    """

    port: int
    listener: socket.socket = field(default_factory=lambda: socket.create_server((_HOST, 0)))
    _counts: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        host, own_port = self.listener.getsockname()
        self._told = _HOST.encode() + struct.pack(">i", self.port)
        self._own = _HOST.encode() + struct.pack(">i", own_port)
        self.bootstrap = f"{host}:{own_port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def take_counts(self) -> Mapping[str, int]:
        """Return the number of requests per API since the last call."""
        counts, self._counts = self._counts, Counter()
        return {ApiKey(key).name: counts[key] for key in sorted(counts)}

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection((_HOST, self.port))
            for work in (self._pass_requests, self._pass_answers):
                threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        for frame in _read_frames(client, server):
            self._counts[struct.unpack_from(">h", frame, 4)[0]] += 1
            server.sendall(frame)

    def _pass_answers(self, client: socket.socket, server: socket.socket) -> None:
        for frame in _read_frames(server, client):
            client.sendall(frame.replace(self._told, self._own))


@contextmanager
def count_requests(port: int) -> Iterator[CountingProxy]:
    """Run a proxy for the broker on ``port`` until the block ends."""
    proxy = CountingProxy(port)
    try:
        yield proxy
    finally:
        proxy.listener.close()


def _read_frames(source: socket.socket, target: socket.socket) -> Iterator[bytes]:
    """Yield complete requests or responses until one side closes its connection. Then close both sides."""
    with source, target, contextlib.suppress(OSError), source.makefile("rb") as stream:
        while len(head := stream.read(4)) == 4:
            yield head + stream.read(int.from_bytes(head, "big"))
        target.shutdown(socket.SHUT_RDWR)
