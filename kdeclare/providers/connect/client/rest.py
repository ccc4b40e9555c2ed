"""`RestWorkers`, which implements `ConnectWorkers` over HTTP and HTTPS."""

import hashlib
import json
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.http.client import (
    HttpClient,
    HttpErrorCodes,
    HttpResponse,
    Method,
    explain_exception,
    open_http_client,
)
from kdeclare.http.target import HttpTarget
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

PATH = "/admin/dynamic-worker-config"

_CHANGE_S = 60.0
"""The time limit of a change, in seconds. The worker responds only after it has applied the change."""
_NO_SUCH_PATH = "HTTP 404 Not Found"
"""Connect's message for an unknown path. The plug-in's own 404 responses have different messages."""
_NOT_WRITTEN = "Nothing was written"
"""A phrase in messages of the plug-in. It means that the change was certainly not made."""

CODES = HttpErrorCodes(UNREACHABLE, NOT_TRUSTED, LOST, BAD_ANSWER)
"""The error codes for failures of requests to workers."""


class RestWorkers:
    """The workers of a group, accessed over HTTP. Use `open_rest_workers` to create an instance.

    Connections are not reused. Therefore, each request starts with a new TLS handshake, and no request is
    sent over a connection that the worker closed. The proxy settings in environment variables are ignored,
    because kdeclare reads certificates with separate TLS handshakes, which cannot use a proxy.
    """

    def __init__(
        self,
        urls: tuple[str, ...],
        client: HttpClient,
        *,
        unverified_context: ssl.SSLContext,
        timeout_s: float,
    ) -> None:
        """Create the object without connecting to a worker.

        unverified_context: a TLS context without verification, which is used only to read certificates.
        """
        self.urls = urls
        self._unverified_context = unverified_context
        self._timeout_s = timeout_s
        self._client = client

    def overrides(self, url: str) -> Mapping[str, str]:
        """See `ConnectWorkers.overrides`."""
        return responses.parse_overrides(self._send_request("GET", url, PATH))

    def status(self, url: str) -> PluginStatus:
        """See `ConnectWorkers.status`."""
        return responses.parse_status(self._send_request("GET", url, f"{PATH}/status"))

    def validate(self, url: str, changes: Changes) -> Validation:
        """See `ConnectWorkers.validate`. Keys that are not on the plug-in's whitelist are refused (400)."""
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
            reason = f"the TLS handshake failed ({explain_exception(e)})"
            raise Fault(UNREACHABLE, reason) from None

    def close(self) -> None:
        """See `ConnectWorkers.close`."""
        self._client.close()

    def _send_request(self, method: Method, url: str, path: str, body: Changes | None = None) -> bytes:
        is_change = method in ("PATCH", "DELETE")
        content = None if body is None else json.dumps(dict(body)).encode()
        response = self._client.send(
            method, url + path, content, is_change=is_change, timeout_s=_CHANGE_S if is_change else None
        )
        if not response.is_success:
            raise _build_refusal_fault(method, response)
        return response.body


def _build_refusal_fault(method: Method, response: HttpResponse) -> Fault:
    """Return the Fault for a response with an error status. The Fault has the worker's message."""
    code, worker_message = response.status, responses.parse_error_message(response.body)
    message = worker_message or f"HTTP {code} {response.reason}".strip()
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
    headers = tuple((name, resolve(reference)) for name, reference in group.headers)
    target = HttpTarget(group.urls, group.ca_file, group.cert_file, group.key_file, folder, headers)
    return open_workers_of(target, timeout_s)


def open_workers_of(target: HttpTarget, timeout_s: float) -> RestWorkers:
    """Return the workers at the URLs of ``target`` without sending a request. Raises KdeclareError."""
    return RestWorkers(
        target.urls,
        open_http_client(target, timeout_s, CODES),
        unverified_context=target.create_unverified_tls_context(),
        timeout_s=timeout_s,
    )
