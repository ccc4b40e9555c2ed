"""A proxy on 127.0.0.1 that ends TLS in front of a server, as load balancers do for Spark Connect."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def start_tls_proxy(cert: Path, key: Path, target_port: int) -> Iterator[int]:
    """Forward decrypted connections to a port of this machine. Yield the port of the proxy."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2"])  # gRPC requires HTTP/2
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context, target_port), daemon=True).start()
        yield listener.getsockname()[1]


def _accept(listener: socket.socket, context: ssl.SSLContext, target_port: int) -> None:
    with suppress(OSError):  # the listener is closed at the end
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_forward, args=(connection, context, target_port), daemon=True).start()


def _forward(connection: socket.socket, context: ssl.SSLContext, target_port: int) -> None:
    with suppress(OSError), context.wrap_socket(connection, server_side=True) as client:
        client.settimeout(None)
        with socket.create_connection(("127.0.0.1", target_port)) as server:
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
