"""HTTP servers of tests, on free ports of this machine."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    # With the default of 5, the kernel resets some connections if many threads connect at the same time.
    request_queue_size = 128
    daemon_threads = True


@contextmanager
def serve(
    handler: type[BaseHTTPRequestHandler], methods: tuple[str, ...] = (), tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Serve requests until the block ends, and yield the URL.

    methods: the HTTP methods for which the method ``respond`` of the handler is called.
    tls: the certificate of the server and its key, for HTTPS.
    """
    for method in methods:
        setattr(handler, f"do_{method}", handler.respond)  # type: ignore[attr-defined]
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
