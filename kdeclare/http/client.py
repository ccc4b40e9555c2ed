"""Send requests to an HTTP endpoint, and convert failures to faults."""

import ssl
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import httpx

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.send_permit import check_send_permit
from kdeclare.http.target import HttpTarget
from kdeclare.http.transport import DeadlineTransport, start_deadline

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

MAX_RESPONSE_BYTES = 1 << 20
"""The default maximum size of a response body, in bytes."""
_KEPT_CONNECTIONS = 2
"""The maximum number of idle connections per client. An endpoint rarely has more than two URLs."""
_TRUST_HINT = "check that the caFile contains the issuer and that the certificate is valid for the host"


@dataclass(frozen=True, slots=True)
class HttpErrorCodes:
    """The error codes that a provider uses for faults that the HTTP client detects.

    unreachable: the request was not sent.
    not_trusted: the TLS handshake failed, so the request was not sent.
    lost: the request was sent, but no complete response arrived.
    bad_response: the response is not a valid response of the system.
    """

    unreachable: str
    not_trusted: str
    lost: str
    bad_response: str


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response with any status, including errors."""

    status: int
    reason: str
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300


class HttpClient:
    """Sends requests to the servers of one endpoint. Safe to use from several threads.

    Redirects are not followed. Proxy settings of the environment are ignored, because the separate TLS
    handshakes of some providers cannot use a proxy.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        headers: Mapping[str, str],
        timeout_s: float,
        codes: HttpErrorCodes,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
        keeps_connections: bool = False,
    ) -> None:
        """Create the client without connecting to a server.

        timeout_s: how long to wait for a response, in seconds.
        keeps_connections: whether later read requests reuse connections. Changes always use a new connection,
            because a request over a connection that the server is closing gets no response.
        """
        self._timeout_s = timeout_s
        self._codes = codes
        self._content_type = content_type
        # No compression: a decompressed body could be a thousand times as large as the data read.
        all_headers = {"Accept": accept, "Accept-Encoding": "identity", **headers}
        self._changing_clients = _ClientPool(lambda: _create_client(context, all_headers, timeout_s))
        self._reading_clients = (
            _ClientPool(lambda: _create_client(context, all_headers, timeout_s, _KEPT_CONNECTIONS))
            if keeps_connections
            else self._changing_clients
        )

    def send(
        self,
        method: Method,
        url: str,
        body: bytes | None = None,
        *,
        is_change: bool,
        timeout_s: float | None = None,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> HttpResponse:
        """Send a request, and return the response. Raises Fault if there is no complete response.

        is_change: whether the request changes anything. A change that got no response might have taken
            effect, so the kind of the fault is UNKNOWN. For a read, the kind is RETRIABLE.
        timeout_s: how long to wait for the response; None for the client's default timeout.
        max_bytes: the maximum size of the response body.
        """
        clients = self._changing_clients if is_change else self._reading_clients
        if is_change:
            check_send_permit()
        with (
            clients.borrow() as client,
            start_deadline(),
            self._translate_errors(is_change=is_change),
            client.stream(
                method,
                url,
                content=body,
                headers={"Content-Type": self._content_type} if body is not None else {},
                timeout=httpx.Timeout(self._timeout_s, read=timeout_s or self._timeout_s),
            ) as response,
        ):
            content = self._read_body(response, max_bytes, is_change=is_change)
        return HttpResponse(response.status_code, response.reason_phrase, content)

    def close(self) -> None:
        """Close all connections. A second call has no effect."""
        self._changing_clients.close()
        self._reading_clients.close()

    def _read_body(self, response: httpx.Response, max_bytes: int, *, is_change: bool) -> bytes:
        kind = FaultKind.UNKNOWN if is_change else FaultKind.REFUSED
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            message = "its response is compressed although no compression was requested"
            raise Fault(self._codes.bad_response, message, kind)
        body = bytearray()
        for part in response.iter_raw():
            body += part
            if len(body) > max_bytes:
                raise Fault(self._codes.bad_response, f"its response is larger than {max_bytes} bytes", kind)
        return bytes(body)

    @contextmanager
    def _translate_errors(self, *, is_change: bool) -> Iterator[None]:
        """Convert HTTP and TLS exceptions to Faults, whose messages refer to the server as "it"."""
        codes = self._codes
        try:
            yield
        except httpx.HTTPError as e:
            tls_error = _find_tls_error(e)
            if isinstance(tls_error, ssl.SSLCertVerificationError):
                reason = f"its certificate is not trusted ({tls_error.verify_message}); {_TRUST_HINT}"
                raise Fault(codes.not_trusted, reason) from None
            if tls_error is not None:
                reason = f"it rejected the TLS connection ({explain_exception(tls_error)})"
                raise Fault(codes.not_trusted, reason) from None
            if isinstance(e, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
                raise Fault(codes.unreachable, f"it is unreachable ({explain_exception(e)})") from None
            kind = FaultKind.UNKNOWN if is_change else FaultKind.RETRIABLE
            raise Fault(codes.lost, f"it did not respond ({explain_exception(e)})", kind) from None
        except (httpx.InvalidURL, UnicodeError):  # do not repeat the URL, which can contain a secret
            message = "it is unreachable (its URL has invalid characters)"
            raise Fault(codes.unreachable, message) from None


class _ClientPool:
    """A pool of HTTP clients, each of which sends one request at a time.

    If several threads share a client, its connection pool can close a connection that it has just given to
    another thread, because the pool considers the connection idle until the thread starts to send. The
    request of that thread is then lost.
    """

    def __init__(self, create: Callable[[], httpx.Client]) -> None:
        self._create = create
        self._idle_clients: deque[httpx.Client] = deque()  # appending and popping are thread-safe

    @contextmanager
    def borrow(self) -> Iterator[httpx.Client]:
        """Yield a client that no other thread uses until the end of the ``with`` block."""
        try:
            client = self._idle_clients.pop()
        except IndexError:
            client = self._create()
        try:
            yield client
        finally:
            self._idle_clients.append(client)

    def close(self) -> None:
        """Close the clients that no thread uses at the moment."""
        while self._idle_clients:
            self._idle_clients.pop().close()


def open_http_client(
    target: HttpTarget,
    timeout_s: float,
    codes: HttpErrorCodes,
    *,
    accept: str = "application/json",
    content_type: str = "application/json",
    keeps_connections: bool = False,
) -> HttpClient:
    """Read the TLS files of an endpoint, and return a client for it. Sends no request.

    See `HttpClient` for the parameters. Raises KdeclareError if a file or header cannot be used.
    """
    return HttpClient(
        target.create_tls_context(),
        target.build_headers(),
        timeout_s,
        codes,
        accept=accept,
        content_type=content_type,
        keeps_connections=keeps_connections,
    )


def _create_client(
    context: ssl.SSLContext, headers: Mapping[str, str], timeout_s: float, kept_connections: int = 0
) -> httpx.Client:
    return httpx.Client(
        headers=headers,
        timeout=timeout_s,
        transport=DeadlineTransport(context, kept_connections),
        trust_env=False,
    )


def _find_tls_error(exception: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error that caused the exception; None if there is none.

    A closed connection does not count as a TLS error.
    """
    while exception is not None:
        if isinstance(exception, ssl.SSLError) and not isinstance(
            exception, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            return exception
        exception = exception.__cause__ or exception.__context__
    return None


def explain_exception(exception: BaseException) -> str:
    """Describe the cause of a failed connection in a few words, without secrets."""
    if isinstance(exception, TimeoutError | httpx.TimeoutException):
        return "timed out"
    if isinstance(exception, httpx.LocalProtocolError | UnicodeError):
        return "the request cannot be sent; check the headers and the URL"  # the exception can be secret
    cause: BaseException | None = exception
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return str(exception) or type(exception).__name__
