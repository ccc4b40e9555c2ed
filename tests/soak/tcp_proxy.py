"""A TCP proxy in front of one broker, which can cut, delay, truncate or swallow what passes through it."""

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from enum import StrEnum

_CHUNK_BYTES = 1 << 16
_STEP_S = 0.05


class NetworkFault(StrEnum):
    """What the proxy does to connections while the fault lasts."""

    CUT = "cut"  # close some connections when a request or response passes
    DELAY = "delay"  # hold each request and response back for a while
    TRUNCATE = "truncate"  # close some connections in the middle of a response
    BLACK_HOLE = "black hole"  # accept everything and pass nothing on
    REFUSE = "refuse"  # close new connections at once


class FaultyProxy:
    """Passes connections on to a port of this machine. Without a fault, it changes nothing.

    affected: how many connections each type of fault has disturbed.
    """

    def __init__(self, port: int, seed: int) -> None:
        self.affected: Counter[str] = Counter()
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._fault: NetworkFault | None = None
        self._is_closed = False
        self._random = random.Random(seed)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return int(self._listener.getsockname()[1])

    def start_fault(self, fault: NetworkFault) -> None:
        """Begin a fault. It lasts until `heal`."""
        self._fault = fault

    def heal(self) -> None:
        """End the fault. Connections whose data was swallowed are closed."""
        self._fault = None

    def close(self) -> None:
        """Accept no more connections."""
        self._is_closed = True
        self.heal()
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._fault is NetworkFault.REFUSE:
                self.affected[NetworkFault.REFUSE] += 1
                client.close()
                continue
            try:
                server = socket.create_connection(self._target, timeout=5)
            except OSError:  # the broker is down
                client.close()
                continue
            server.settimeout(None)
            for source, sink, is_response in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pump, args=(source, sink, is_response), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_response: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                passed = self._disturb(data, is_response)
                if passed:
                    sink.sendall(passed)
                if len(passed) < len(data):
                    break
        _close_sockets(source, sink)

    def _disturb(self, data: bytes, is_response: bool) -> bytes:
        """Return what passes. The connection is closed if this is not everything."""
        fault = self._fault
        if fault is NetworkFault.CUT and self._random.random() < 0.15:
            self.affected[fault] += 1
            return b""
        if fault is NetworkFault.TRUNCATE and is_response and self._random.random() < 0.15:
            self.affected[fault] += 1
            return data[: len(data) // 2]
        if fault is NetworkFault.DELAY:
            self.affected[fault] += 1
            time.sleep(self._random.uniform(0.1, 1.0))
        if fault is NetworkFault.BLACK_HOLE:
            self.affected[fault] += 1
            while self._fault is NetworkFault.BLACK_HOLE:
                time.sleep(_STEP_S)
            return b""
        return data


def _close_sockets(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
