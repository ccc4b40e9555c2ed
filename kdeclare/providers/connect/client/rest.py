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
from kdeclare.providers.connect.client import answers
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
from kdeclare.providers.connect.worker_state import Certificate, WorkerGroup, WorkerStatus


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


PATH = "/admin/dynamic-worker-config"

MAX_ANSWER_BYTES = 1 << 20
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
        showing: ssl.SSLContext,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> None:
        """context: verifies workers. showing: verifies nothing; only to see what they show."""
        self.urls = urls
        self._showing = showing
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
        return answers.overrides(self._ask("GET", url, PATH))

    def status(self, url: str) -> WorkerStatus:
        """See `ConnectWorkers.status`."""
        return answers.status(self._ask("GET", url, f"{PATH}/status"))

    def validate(self, url: str, changes: Changes) -> Validation:
        """See `ConnectWorkers.validate`. Keys that are not on the whitelist are a refusal (400)."""
        try:
            return answers.validation(self._ask("POST", url, f"{PATH}/validate", changes))
        except Fault as fault:
            if fault.error == INVALID:
                return Validation(False, {"": (fault.message,)})
            raise

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        """See `ConnectWorkers.patch`."""
        answer = self._ask("PATCH", url, PATH, changes)
        try:
            return answers.overrides(answer)
        except Fault as fault:  # the answer is odd, and the change may be made
            raise Fault(fault.error, fault.message, FaultKind.UNKNOWN) from None

    def delete(self, url: str, key: str) -> None:
        """See `ConnectWorkers.delete`."""
        self._ask("DELETE", url, f"{PATH}/{quote(key, safe='')}")

    def handshake(self, url: str) -> Certificate | None:
        """See `ConnectWorkers.handshake`."""
        parts = urlsplit(url)
        if parts.scheme != "https" or parts.hostname is None:
            return None
        try:
            with (
                socket.create_connection((parts.hostname, parts.port or 443), self._timeout_s) as plain,
                self._showing.wrap_socket(plain, server_hostname=parts.hostname) as secured,
            ):
                shown = secured.getpeercert(binary_form=True)
            return read_certificate(shown) if shown else None
        except (OSError, ValueError) as e:
            why = f"no TLS handshake ({_reason(e)})"
            raise Fault(UNREACHABLE, why) from None

    def close(self) -> None:
        """See `ConnectWorkers.close`."""
        self._client.close()

    def _ask(self, method: str, url: str, path: str, body: Changes | None = None) -> bytes:
        changes = method in ("PATCH", "DELETE")
        content = None if body is None else json.dumps(dict(body)).encode()
        with (
            _explained(changes=changes),
            self._client.stream(
                method,
                url + path,
                content=content,
                headers={"Content-Type": "application/json"} if content is not None else {},
                timeout=httpx.Timeout(self._timeout_s, read=_CHANGE_S if changes else self._timeout_s),
            ) as answer,
        ):
            answered = _read_answer(answer, changes=changes)
        if not answer.is_success:
            raise _refusal(method, answer, answered)
        return answered


def _read_answer(answer: httpx.Response, *, changes: bool) -> bytes:
    """The body, up to a limit. Raises Fault."""
    kind = FaultKind.UNKNOWN if changes else FaultKind.REFUSED
    if answer.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise Fault(BAD_ANSWER, "its answer is compressed, which was not asked for", kind)
    body = bytearray()
    for part in answer.iter_raw():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise Fault(BAD_ANSWER, f"its answer is larger than {MAX_ANSWER_BYTES} bytes", kind)
    return bytes(body)


@contextmanager
def _explained(*, changes: bool) -> Iterator[None]:
    """Turn what HTTP and TLS raise into a Fault."""
    try:
        yield
    except httpx.HTTPError as e:
        untrusted = _caused_by(e)
        if isinstance(untrusted, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted ({untrusted.verify_message}); {_TRUST_HINT}"
            raise Fault(NOT_TRUSTED, why) from None
        if untrusted is not None:
            raise Fault(NOT_TRUSTED, f"it refuses the TLS connection ({_reason(untrusted)})") from None
        if isinstance(e, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            raise Fault(UNREACHABLE, f"it cannot be reached ({_reason(e)})") from None
        kind = FaultKind.UNKNOWN if changes else FaultKind.RETRIABLE
        raise Fault(LOST, f"its answer did not come ({_reason(e)})", kind) from None
    except (httpx.InvalidURL, UnicodeError):  # what is in it is not repeated
        raise Fault(UNREACHABLE, "it cannot be reached (its URL holds what no URL can)") from None


def _refusal(method: str, answer: httpx.Response, body: bytes) -> Fault:
    """What a status other than 2xx means, in the worker's own words."""
    code, said = answer.status_code, answers.problem(body)
    words = said or f"HTTP {code} {answer.reason_phrase}".strip()
    if code in (401, 403):
        return Fault(NOT_AUTHORIZED, words)
    if code == 404 and method == "DELETE" and said and said != _NO_SUCH_PATH:
        return Fault(NO_OVERRIDE, words)
    if code in (404, 405):
        why = f"it does not serve {PATH}: kdeclare's plug-in is not installed there"
        return Fault(PLUGIN_MISSING, why)
    if code == 409:  # a rebalance is under way
        return Fault(NOT_READY, words, FaultKind.RETRIABLE)
    if code == 503 or (code >= 500 and _NOT_WRITTEN in words):
        return Fault(NOT_READY, words)
    if code >= 500:
        return Fault(LOST, words, FaultKind.UNKNOWN if method in ("PATCH", "DELETE") else FaultKind.RETRIABLE)
    return Fault(INVALID, words)


def _caused_by(problem: BaseException | None) -> ssl.SSLError | None:
    """The TLS error beneath, if there is one; a connection that only broke off is none."""
    while problem is not None:
        if isinstance(problem, ssl.SSLError) and not isinstance(
            problem, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            return problem
        problem = problem.__cause__ or problem.__context__
    return None


def _reason(problem: BaseException) -> str:
    if isinstance(problem, TimeoutError | httpx.TimeoutException):
        return "no answer in time"
    if isinstance(problem, httpx.LocalProtocolError | UnicodeError):
        return "the request cannot be sent; check the headers and the URL"  # its own words can hold a secret
    beneath: BaseException | None = problem
    while beneath is not None:
        if isinstance(beneath, OSError) and beneath.strerror:
            return beneath.strerror.lower()
        beneath = beneath.__cause__ or beneath.__context__
    return str(problem) or type(problem).__name__


def read_certificate(der: bytes) -> Certificate:
    """Read the certificate from its DER. Raises ValueError for what is none.

    The standard library decodes a certificate only once it has verified it, and an expired or foreign one is
    just what is looked for here.
    """
    from cryptography import x509  # 40 ms, for handshakes only

    read = x509.load_der_x509_certificate(der)
    return Certificate(
        hashlib.sha256(der).hexdigest(),
        read.subject.rfc4514_string(),
        read.issuer.rfc4514_string(),
        read.not_valid_before_utc,
        read.not_valid_after_utc,
    )


def open_rest_workers(
    group: WorkerGroup, folder: Path, resolve: Callable[[str], str], timeout_s: float = 10.0
) -> RestWorkers:
    """The workers of ``group``; nothing is sent yet.

    folder: what its files are relative to. resolve: the value of a header's reference.
    timeout_s: how long one worker may take to answer. Raises KdeclareError.
    """
    context = _create_context(group, folder)
    showing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    showing.check_hostname = False
    showing.verify_mode = ssl.CERT_NONE
    for each in (context, showing):
        _load_identity(each, group, folder)
    headers = {name: _sendable(name, resolve(reference)) for name, reference in group.headers}
    for value in headers.values():
        SCRUBBER.register(value)
        SCRUBBER.register(value.partition(" ")[2])  # without "Basic" or "Bearer"
    return RestWorkers(group.urls, context=context, showing=showing, headers=headers, timeout_s=timeout_s)


def _sendable(name: str, value: str) -> str:
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


def _create_context(group: WorkerGroup, folder: Path) -> ssl.SSLContext:
    if group.ca_file is None:
        return ssl.create_default_context()
    path = _find_file(folder, group.ca_file, "caFile")
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise _unusable_file("caFile", group.ca_file, "it holds no certificates in PEM") from None


def _load_identity(context: ssl.SSLContext, group: WorkerGroup, folder: Path) -> None:
    """Show a certificate of one's own, if there is one."""
    if group.cert_file is None:
        return
    cert = _find_file(folder, group.cert_file, "certFile")
    key = _find_file(folder, group.key_file, "keyFile") if group.key_file else None
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # or it would ask on the terminal
    except (ssl.SSLError, ValueError):
        why = "it is no PEM, its key is under a password, or the key is another certificate's"
        raise _unusable_file("certFile", group.cert_file, why) from None


def _find_file(folder: Path, file: str, field: str) -> Path:
    path = folder / file
    try:
        path.open("rb").close()
    except OSError as e:
        raise _unusable_file(field, file, (e.strerror or "it cannot be opened").lower()) from None
    return path


def _unusable_file(field: str, file: str, why: str) -> KdeclareError:
    return KdeclareError(
        error(
            "connect-tls-file",
            "A file for the connection to Connect workers cannot be used",
            f"{field} '{file}' cannot be used: {why}.",
            hint="In a manifest it is relative to the project's folder; keys and certificates are PEM.",
        )
    )
