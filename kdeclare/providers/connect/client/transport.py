"""HTTP to workers with a limit on the whole exchange; httpx alone limits each read, of any number."""

import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx


class DeadlineTransport(httpx.HTTPTransport):
    """httpx's transport, whose timeouts all count from when the connection was begun.

    So a worker that sends one byte at a time is given up on when the request's ``read`` timeout has passed.
    No connection is kept, so that each request is a new handshake.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context, max_keepalive_connections=0, network_backend=_DeadlineBackend()
        )


class _DeadlineBackend(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        begun = time.monotonic()
        return _DeadlineStream(super().connect_tcp(host, port, timeout, local_address, socket_options), begun)


class _DeadlineStream(httpcore.NetworkStream):
    """A stream whose timeouts count from ``begun``, on the monotonic clock."""

    def __init__(self, stream: httpcore.NetworkStream, begun: float) -> None:
        self._stream = stream
        self._begun = begun

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._left(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left), self._begun)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _left(self, timeout: float | None, passed: type[Exception]) -> float | None:
        if timeout is None:
            return None
        left = self._begun + timeout - time.monotonic()
        if left <= 0:
            raise passed
        return left
