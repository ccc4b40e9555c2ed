"""urllib handlers that limit how long an answer may take in all, where urllib limits each read."""

import http.client
import io
import socket
import ssl
import time
import urllib.request
from functools import partial
from typing import Any


class _DeadlineReader(io.RawIOBase):
    """Bytes of a socket, until a time on the monotonic clock. Raises TimeoutError after it."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, until: float) -> None:
        self._sock = sock
        self._raw = raw
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _DeadlineResponse(http.client.HTTPResponse):
    """An answer of which status, headers and body together have to come within ``timeout_s``."""

    def __init__(self, sock: socket.socket, *args: Any, timeout_s: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        reader = _DeadlineReader(sock, self.fp.detach(), time.monotonic() + timeout_s)
        self.fp = io.BufferedReader(reader)


def _connection(
    kind: type[http.client.HTTPConnection], timeout_s: float, host: str, **kwargs: Any
) -> http.client.HTTPConnection:
    connection = kind(host, **kwargs)
    connection.response_class = partial(_DeadlineResponse, timeout_s=timeout_s)  # type: ignore[assignment]
    return connection


class PlainHandler(urllib.request.HTTPHandler):
    """``http:``, each answer within ``timeout_s``."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._timeout_s = timeout_s

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_connection, http.client.HTTPConnection, self._timeout_s), req)


class TlsHandler(urllib.request.HTTPSHandler):
    """``https:``, each answer within ``timeout_s``."""

    def __init__(self, context: ssl.SSLContext, timeout_s: float) -> None:
        super().__init__(context=context)
        self._tls = context
        self._timeout_s = timeout_s

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        make = partial(_connection, http.client.HTTPSConnection, self._timeout_s)
        return self.do_open(make, req, context=self._tls)
