"""HTTP servers of tests, on free ports of this machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler], methods: tuple[str, ...] = ()) -> Iterator[str]:
    """Serve requests until the block ends, and yield the URL.

    methods: the HTTP methods for which the method ``respond`` of the handler is called.
    """
    for method in methods:
        setattr(handler, f"do_{method}", handler.respond)  # type: ignore[attr-defined]
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
