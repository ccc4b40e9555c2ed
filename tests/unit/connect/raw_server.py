"""A server that sends bytes at its own pace, over plain HTTP."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def run_raw_server(parts: Iterable[bytes], pause_s: float = 0.0) -> Iterator[str]:
    """Yield the URL of a server that sends ``parts`` to each client one by one, then disconnects."""
    over = threading.Event()

    def serve(peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            peer.recv(1 << 16)
            for part in parts:
                peer.sendall(part)
                if over.wait(pause_s) if pause_s else over.is_set():
                    return
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(1 << 16):  # closing the connection with unread data would truncate the response
                pass

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)


def split_into_bytes(text: bytes, times: int) -> list[bytes]:
    """Yield a text byte by byte, then spaces."""
    return [bytes([byte]) for byte in text] + [b" "] * times


def measure_elapsed(begun: float) -> float:
    """Return the seconds since then."""
    return time.monotonic() - begun
