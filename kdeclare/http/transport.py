"""An httpx transport with one time limit for the whole response.

By contrast, the timeouts of httpx apply to each read.
"""

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

_started_at: ContextVar[float] = ContextVar("_started_at")
"""The start time of the current thread's request, on the monotonic clock."""


@contextmanager
def start_deadline() -> Iterator[None]:
    """Start the time limit of the request that is sent inside the ``with`` block."""
    token = _started_at.set(time.monotonic())
    try:
        yield
    finally:
        _started_at.reset(token)


class DeadlineTransport(httpx.HTTPTransport):
    """An httpx transport whose timeouts count from the start of the request (`start_deadline`).

    Therefore, a server that sends one byte at a time cannot make a request last longer than its ``read``
    timeout.
    """

    def __init__(
        self, context: ssl.SSLContext, kept_connections: int = 0, proxy_url: str | None = None
    ) -> None:
        """Create the connection pool.

        kept_connections: the maximum number of idle connections that stay open for later requests. If 0, each
            request starts with a new TLS handshake, and never uses a connection that the server has closed.
        proxy_url: the URL of an HTTP proxy; None to connect to servers directly.
        """
        super().__init__(verify=context, trust_env=False)
        if proxy_url is None:
            self._pool = httpcore.ConnectionPool(
                ssl_context=context,
                max_keepalive_connections=kept_connections,
                network_backend=_DeadlineBackend(),
            )
            return
        proxy = httpx.Proxy(proxy_url)
        self._pool = httpcore.HTTPProxy(
            proxy_url=httpcore.URL(
                scheme=proxy.url.raw_scheme,
                host=proxy.url.raw_host,
                port=proxy.url.port,
                target=proxy.url.raw_path,
            ),
            proxy_auth=proxy.raw_auth,
            ssl_context=context,
            max_keepalive_connections=kept_connections,
            network_backend=_DeadlineBackend(),
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
        return _DeadlineStream(super().connect_tcp(host, port, timeout, local_address, socket_options))


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _compute_remaining_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _compute_remaining_s(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        remaining_s = _compute_remaining_s(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, remaining_s))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _compute_remaining_s(timeout: float | None, timeout_exception: type[Exception]) -> float | None:
    if timeout is None:
        return None
    remaining_s = _started_at.get(time.monotonic()) + timeout - time.monotonic()
    if remaining_s <= 0:
        raise timeout_exception
    return remaining_s
