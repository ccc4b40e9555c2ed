"""`RestWorkers`, which implements `ConnectWorkers` over HTTP and HTTPS.

Each request has a time limit for the whole response. The timeouts of httpx limit only single reads.
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
    """An httpx transport whose timeouts count from the start of the connection.

    A worker that sends one byte at a time therefore cannot exceed the ``read`` timeout of the request.
    Connections are not reused, so each request starts with a new TLS handshake.
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
    """A network stream whose timeouts count from ``started_at`` (monotonic clock)."""

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
"""The maximum size of a response body, in bytes. The overrides alone can take up to 64 KiB."""
_CHANGE_S = 60.0
"""The time limit of a change, in seconds. The worker responds only after it has applied the change."""
_NO_SUCH_PATH = "HTTP 404 Not Found"
"""Connect's message for an unknown path. The plug-in's own 404 responses have different messages."""
_NOT_WRITTEN = "Nothing was written"
"""A phrase in messages of the plug-in. It means that the change was certainly not made."""
_TRUST_HINT = "check that the caFile contains the issuer and that the certificate is valid for the host"


class RestWorkers:
    """The workers of a group, accessed over HTTP. Use `open_rest_workers` to create an instance.

    Connections are not reused. Therefore, each request starts with a new TLS handshake, and no request is
    sent over a connection that the worker closed. Proxy settings of the environment are ignored, because the
    separate TLS handshakes cannot use a proxy.
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
        """Create the HTTP client without connecting to a worker.

        context: the TLS context that verifies workers.
        unverified_context: a TLS context without verification, which is used only to read certificates.
        """
        self.urls = urls
        self._unverified_context = unverified_context
        self._timeout_s = timeout_s
        self._client = httpx.Client(
            # No compression: a decompressed body could be a thousand times as large as the data read.
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
        """See `ConnectWorkers.validate`. Keys that are not on the whitelist are refused (400)."""
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
        except Fault as fault:  # The response is malformed, but the worker might have made the change.
            raise Fault(fault.error, fault.message, FaultKind.UNKNOWN) from None

    def delete(self, url: str, key: str) -> None:
        """See `ConnectWorkers.delete`."""
        self._send_request("DELETE", url, f"{PATH}/{quote(key, safe='')}")

    def read_served_certificate(self, url: str) -> Certificate | None:
        """See `ConnectWorkers.read_served_certificate`."""
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
            reason = f"the TLS handshake failed ({_explain_exception(e)})"
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
    """Return the body of a response. Raises Fault if the body exceeds the size limit."""
    kind = FaultKind.UNKNOWN if is_change else FaultKind.REFUSED
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise Fault(BAD_ANSWER, "its response is compressed although no compression was requested", kind)
    body = bytearray()
    for part in response.iter_raw():
        body += part
        if len(body) > MAX_RESPONSE_BYTES:
            raise Fault(BAD_ANSWER, f"its response is larger than {MAX_RESPONSE_BYTES} bytes", kind)
    return bytes(body)


@contextmanager
def _translate_errors(*, is_change: bool) -> Iterator[None]:
    """Convert HTTP and TLS exceptions to Faults."""
    try:
        yield
    except httpx.HTTPError as e:
        tls_error = _find_tls_error(e)
        if isinstance(tls_error, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted ({tls_error.verify_message}); {_TRUST_HINT}"
            raise Fault(NOT_TRUSTED, reason) from None
        if tls_error is not None:
            raise Fault(
                NOT_TRUSTED, f"it rejected the TLS connection ({_explain_exception(tls_error)})"
            ) from None
        if isinstance(e, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            raise Fault(UNREACHABLE, f"it is unreachable ({_explain_exception(e)})") from None
        kind = FaultKind.UNKNOWN if is_change else FaultKind.RETRIABLE
        raise Fault(LOST, f"it did not respond ({_explain_exception(e)})", kind) from None
    except (httpx.InvalidURL, UnicodeError):  # do not repeat the URL, which can contain a secret
        raise Fault(UNREACHABLE, "it is unreachable (its URL has invalid characters)") from None


def _build_refusal_fault(method: str, response: httpx.Response, body: bytes) -> Fault:
    """Return the Fault for a response with an error status. Its message is the message of the worker."""
    code, worker_message = response.status_code, responses.parse_error_message(body)
    message = worker_message or f"HTTP {code} {response.reason_phrase}".strip()
    if code in (401, 403):
        return Fault(NOT_AUTHORIZED, message)
    if code == 404 and method == "DELETE" and worker_message and worker_message != _NO_SUCH_PATH:
        return Fault(NO_OVERRIDE, message)
    if code in (404, 405):
        reason = f"kdeclare's plug-in is not installed on the worker ({PATH} was not found)"
        return Fault(PLUGIN_MISSING, reason)
    if code == 409:  # a rebalance is in progress
        return Fault(NOT_READY, message, FaultKind.RETRIABLE)
    if code == 503 or (code >= 500 and _NOT_WRITTEN in message):
        return Fault(NOT_READY, message)
    if code >= 500:
        return Fault(
            LOST, message, FaultKind.UNKNOWN if method in ("PATCH", "DELETE") else FaultKind.RETRIABLE
        )
    return Fault(INVALID, message)


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


def _explain_exception(exception: BaseException) -> str:
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


def parse_certificate(der: bytes) -> Certificate:
    """Parse a certificate from its DER encoding. Raises ValueError if the data is not a certificate.

    The standard library decodes only certificates that it has verified, but kdeclare must also show expired
    and untrusted certificates.
    """
    from cryptography import x509  # slow to import, and only handshakes need it

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
    """Return the workers of ``group`` without sending a request. Raises KdeclareError.

    folder: the base folder of relative file paths.
    resolve: a function that returns the value of a reference in a header.
    timeout_s: how long to wait for the response of one worker, in seconds.
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
    """Return the value of a header if HTTP allows the value. Raises KdeclareError if it does not.

    The error does not contain the value.
    """
    if value.isascii() and value.isprintable() and value == value.strip():
        return value
    raise KdeclareError(
        error(
            "connect-header",
            "Header cannot be sent",
            f"The resolved value of the header '{name}' starts or ends with a space, or contains characters "
            "that HTTP headers do not allow.",
            hint="Remove these characters from the environment variable or file that contains the value. A "
            "line break at the end of a file is allowed.",
        )
    )


def _create_tls_context(group: WorkerGroup, folder: Path) -> ssl.SSLContext:
    if group.ca_file is None:
        return ssl.create_default_context()
    path = _require_file(folder, group.ca_file, "caFile")
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise _build_file_error("caFile", group.ca_file, "it contains no PEM certificates") from None


def _load_identity(context: ssl.SSLContext, group: WorkerGroup, folder: Path) -> None:
    """Load the client certificate of the group, if there is one."""
    if group.cert_file is None:
        return
    cert = _require_file(folder, group.cert_file, "certFile")
    key = _require_file(folder, group.key_file, "keyFile") if group.key_file else None
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # otherwise, OpenSSL prompts on the terminal
    except (ssl.SSLError, ValueError):
        reason = "it is not PEM, the key is encrypted, or the key does not match the certificate"
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
            "TLS file cannot be used",
            f"{field} '{file}' cannot be used: {reason}.",
            hint="Check the path, which in a manifest is relative to the project folder, and use a PEM file.",
        )
    )
