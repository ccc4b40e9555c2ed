"""`RestWorkers`: the port `ConnectWorkers` over HTTP, and the handshakes beside it.

The whole exchange has a limit; httpx alone limits each read, of any number.
"""

import hashlib
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpcore
import httpx

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.providers.connect.client import responses
from kdeclare.providers.connect.client.port import (
    BAD_ANSWER,
    INVALID,
    LOST,
    NO_OVERRIDE,
    NOT_AUTHORIZED,
    NOT_READY,
    NOT_TRUSTED,
    PLUGIN_MISSING,
    UNREACHABLE,
    Changes,
    Validation,
)
from kdeclare.providers.connect.worker_state import Certificate, PluginStatus, WorkerGroup


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
        started_at = time.monotonic()
        return _DeadlineStream(
            super().connect_tcp(host, port, timeout, local_address, socket_options), started_at
        )


class _DeadlineStream(httpcore.NetworkStream):
    """A stream whose timeouts count from ``started_at``, on the monotonic clock."""

    def __init__(self, stream: httpcore.NetworkStream, started_at: float) -> None:
        self._stream = stream
        self._started_at = started_at

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._compute_remaining_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._compute_remaining_s(timeout, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        remaining_s = self._compute_remaining_s(timeout, httpcore.ConnectTimeout)
        return _DeadlineStream(
            self._stream.start_tls(ssl_context, server_hostname, remaining_s), self._started_at
        )

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _compute_remaining_s(self, timeout: float | None, timeout_exception: type[Exception]) -> float | None:
        if timeout is None:
            return None
        remaining_s = self._started_at + timeout - time.monotonic()
        if remaining_s <= 0:
            raise timeout_exception
        return remaining_s


PATH = "/admin/dynamic-worker-config"

MAX_RESPONSE_BYTES = 1 << 20
"""Of a body. The plug-in takes 64 KiB of overrides, and a status holds a certificate for each listener."""
_CHANGE_S = 60.0
"""How long a change may take in all: it is written, read back and applied before the answer."""
_NO_SUCH_PATH = "HTTP 404 Not Found"
"""What Connect says where nobody serves a path; the plug-in's own 404 says more."""
_NOT_WRITTEN = "Nothing was written"
"""What the plug-in says where a change has certainly come to nothing."""
_TRUST_HINT = "is its issuer in the caFile, and the host among its names?"


class RestWorkers:
    """Workers at their URLs; made by `open_rest_workers`.

    No connection is kept, so that each request is a new handshake and none goes to a worker that has gone
    away meanwhile. Proxies of the environment are not used: the handshakes could not go through them.
    """

    def __init__(
        self,
        urls: tuple[str, ...],
        *,
        context: ssl.SSLContext,
        unverified_context: ssl.SSLContext,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> None:
        """context: verifies workers. unverified_context: verifies nothing; only to see what they show."""
        self.urls = urls
        self._unverified_context = unverified_context
        self._timeout_s = timeout_s
        self._client = httpx.Client(
            # What is compressed could be a thousand times as large as what is read.
            headers={"Accept": "application/json", "Accept-Encoding": "identity", **headers},
            timeout=timeout_s,
            transport=DeadlineTransport(context),
            trust_env=False,
        )

    def overrides(self, url: str) -> Mapping[str, str]:
        """See `ConnectWorkers.overrides`."""
        return responses.parse_overrides(self._send_request("GET", url, PATH))

    def status(self, url: str) -> PluginStatus:
        """See `ConnectWorkers.status`."""
        return responses.parse_status(self._send_request("GET", url, f"{PATH}/status"))

    def validate(self, url: str, changes: Changes) -> Validation:
        """See `ConnectWorkers.validate`. Keys that are not on the whitelist are a refusal (400)."""
        try:
            return responses.parse_validation(self._send_request("POST", url, f"{PATH}/validate", changes))
        except Fault as fault:
            if fault.error == INVALID:
                return Validation(False, {"": (fault.message,)})
            raise

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """See `ConnectWorkers.patch`."""
        body = self._send_request("PATCH", url, PATH, changes)
        try:
            return responses.parse_overrides(body)
        except Fault as fault:  # the answer is odd, and the change may be made
            raise Fault(fault.error, fault.message, FaultKind.UNKNOWN) from None

    def delete(self, url: str, key: str) -> None:
        """See `ConnectWorkers.delete`."""
        self._send_request("DELETE", url, f"{PATH}/{quote(key, safe='')}")

    def read_served_certificate(self, url: str) -> Certificate | None:
        """See `ConnectWorkers.handshake`."""
        parts = urlsplit(url)
        if parts.scheme != "https" or parts.hostname is None:
            return None
        try:
            with (
                socket.create_connection(
                    (parts.hostname, parts.port or 443), self._timeout_s
                ) as plain_socket,
                self._unverified_context.wrap_socket(
                    plain_socket, server_hostname=parts.hostname
                ) as tls_socket,
            ):
                certificate_der = tls_socket.getpeercert(binary_form=True)
            return parse_certificate(certificate_der) if certificate_der else None
        except (OSError, ValueError) as e:
            reason = f"no TLS handshake ({_explain_exception(e)})"
            raise Fault(UNREACHABLE, reason) from None

    def close(self) -> None:
        """See `ConnectWorkers.close`."""
        self._client.close()

    def _send_request(self, method: str, url: str, path: str, body: Changes | None = None) -> bytes:
        is_change = method in ("PATCH", "DELETE")
        content = None if body is None else json.dumps(dict(body)).encode()
        with (
            _translate_errors(is_change=is_change),
            self._client.stream(
                method,
                url + path,
                content=content,
                headers={"Content-Type": "application/json"} if content is not None else {},
                timeout=httpx.Timeout(self._timeout_s, read=_CHANGE_S if is_change else self._timeout_s),
            ) as response,
        ):
            response_body = _read_body(response, is_change=is_change)
        if not response.is_success:
            raise _build_refusal_fault(method, response, response_body)
        return response_body


def _read_body(response: httpx.Response, *, is_change: bool) -> bytes:
    """The body, up to a limit. Raises Fault."""
    kind = FaultKind.UNKNOWN if is_change else FaultKind.REFUSED
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise Fault(BAD_ANSWER, "its answer is compressed, which was not asked for", kind)
    body = bytearray()
    for part in response.iter_raw():
        body += part
        if len(body) > MAX_RESPONSE_BYTES:
            raise Fault(BAD_ANSWER, f"its answer is larger than {MAX_RESPONSE_BYTES} bytes", kind)
    return bytes(body)


@contextmanager
def _translate_errors(*, is_change: bool) -> Iterator[None]:
    """Turn what HTTP and TLS raise into a Fault."""
    try:
        yield
    except httpx.HTTPError as e:
        tls_error = _find_tls_error(e)
        if isinstance(tls_error, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted ({tls_error.verify_message}); {_TRUST_HINT}"
            raise Fault(NOT_TRUSTED, reason) from None
        if tls_error is not None:
            raise Fault(
                NOT_TRUSTED, f"it refuses the TLS connection ({_explain_exception(tls_error)})"
            ) from None
        if isinstance(e, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            raise Fault(UNREACHABLE, f"it cannot be reached ({_explain_exception(e)})") from None
        kind = FaultKind.UNKNOWN if is_change else FaultKind.RETRIABLE
        raise Fault(LOST, f"its answer did not come ({_explain_exception(e)})", kind) from None
    except (httpx.InvalidURL, UnicodeError):  # what is in it is not repeated
        raise Fault(UNREACHABLE, "it cannot be reached (its URL holds what no URL can)") from None


def _build_refusal_fault(method: str, response: httpx.Response, body: bytes) -> Fault:
    """What a status other than 2xx means, in the worker's own words."""
    code, worker_message = response.status_code, responses.parse_error_message(body)
    message = worker_message or f"HTTP {code} {response.reason_phrase}".strip()
    if code in (401, 403):
        return Fault(NOT_AUTHORIZED, message)
    if code == 404 and method == "DELETE" and worker_message and worker_message != _NO_SUCH_PATH:
        return Fault(NO_OVERRIDE, message)
    if code in (404, 405):
        reason = f"it does not serve {PATH}: kdeclare's plug-in is not installed there"
        return Fault(PLUGIN_MISSING, reason)
    if code == 409:  # a rebalance is under way
        return Fault(NOT_READY, message, FaultKind.RETRIABLE)
    if code == 503 or (code >= 500 and _NOT_WRITTEN in message):
        return Fault(NOT_READY, message)
    if code >= 500:
        return Fault(
            LOST, message, FaultKind.UNKNOWN if method in ("PATCH", "DELETE") else FaultKind.RETRIABLE
        )
    return Fault(INVALID, message)


def _find_tls_error(exception: BaseException | None) -> ssl.SSLError | None:
    """The TLS error beneath, if there is one; a connection that only broke off is none."""
    while exception is not None:
        if isinstance(exception, ssl.SSLError) and not isinstance(
            exception, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            return exception
        exception = exception.__cause__ or exception.__context__
    return None


def _explain_exception(exception: BaseException) -> str:
    if isinstance(exception, TimeoutError | httpx.TimeoutException):
        return "no answer in time"
    if isinstance(exception, httpx.LocalProtocolError | UnicodeError):
        return "the request cannot be sent; check the headers and the URL"  # its own words can hold a secret
    cause: BaseException | None = exception
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return str(exception) or type(exception).__name__


def parse_certificate(der: bytes) -> Certificate:
    """Read the certificate from its DER. Raises ValueError for what is none.

    The standard library decodes a certificate only once it has verified it, and an expired or foreign one is
    just what is looked for here.
    """
    from cryptography import x509  # 40 ms, for handshakes only

    certificate = x509.load_der_x509_certificate(der)
    return Certificate(
        hashlib.sha256(der).hexdigest(),
        certificate.subject.rfc4514_string(),
        certificate.issuer.rfc4514_string(),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
    )


def open_rest_workers(
    group: WorkerGroup, folder: Path, resolve: Callable[[str], str], timeout_s: float = 10.0
) -> RestWorkers:
    """The workers of ``group``; nothing is sent yet.

    folder: what its files are relative to. resolve: the value of a header's reference.
    timeout_s: how long one worker may take to answer. Raises KdeclareError.
    """
    context = _create_tls_context(group, folder)
    unverified_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified_context.check_hostname = False
    unverified_context.verify_mode = ssl.CERT_NONE
    for ssl_context in (context, unverified_context):
        _load_identity(ssl_context, group, folder)
    headers = {name: _validate_header(name, resolve(reference)) for name, reference in group.headers}
    for value in headers.values():
        SCRUBBER.register(value)
        SCRUBBER.register(value.partition(" ")[2])  # without "Basic" or "Bearer"
    return RestWorkers(
        group.urls,
        context=context,
        unverified_context=unverified_context,
        headers=headers,
        timeout_s=timeout_s,
    )


def _validate_header(name: str, value: str) -> str:
    """A header's value. Raises KdeclareError, which does not repeat it, where HTTP has no such value."""
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    raise KdeclareError(
        error(
            "connect-header",
            "A header cannot be sent",
            f"What stands behind the header '{name}' has blanks around it, or holds what no header can hold.",
            hint="Take that out of the variable or the file; a line break at a file's end is no trouble.",
        )
    )


def _create_tls_context(group: WorkerGroup, folder: Path) -> ssl.SSLContext:
    if group.ca_file is None:
        return ssl.create_default_context()
    path = _require_file(folder, group.ca_file, "caFile")
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise _build_file_error("caFile", group.ca_file, "it holds no certificates in PEM") from None


def _load_identity(context: ssl.SSLContext, group: WorkerGroup, folder: Path) -> None:
    """Show a certificate of one's own, if there is one."""
    if group.cert_file is None:
        return
    cert = _require_file(folder, group.cert_file, "certFile")
    key = _require_file(folder, group.key_file, "keyFile") if group.key_file else None
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # or it would ask on the terminal
    except (ssl.SSLError, ValueError):
        reason = "it is no PEM, its key is under a password, or the key is another certificate's"
        raise _build_file_error("certFile", group.cert_file, reason) from None


def _require_file(folder: Path, file: str, field: str) -> Path:
    path = folder / file
    try:
        path.open("rb").close()
    except OSError as e:
        raise _build_file_error(field, file, (e.strerror or "it cannot be opened").lower()) from None
    return path


def _build_file_error(field: str, file: str, reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "connect-tls-file",
            "A file for the connection to Connect workers cannot be used",
            f"{field} '{file}' cannot be used: {reason}.",
            hint="In a manifest it is relative to the project's folder; keys and certificates are PEM.",
        )
    )
