"""``python s3_server.py PORT``: moto's S3, one request at a time.

S3 compares the condition of a write and writes in one step. moto does so in two steps, so that two concurrent
writes with the same condition could both succeed.
"""

import sys
import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import run_simple


class SerialApplication:
    """Passes one request at a time to moto."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Respond to a request."""
        with self._lock:
            return list(self._moto(environ, start_response))


if __name__ == "__main__":
    run_simple(
        "127.0.0.1", int(sys.argv[1]), SerialApplication(), threaded=True, request_handler=MotoRequestHandler
    )
