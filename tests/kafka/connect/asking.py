"""A client of workers over HTTPS: requests, and handshakes that read the certificate."""

import hashlib
import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.kafka.connect.certificates import Certificates

PATH = "/admin/dynamic-worker-config"
KEYSTORE = "listeners.https.ssl.keystore.location"
KEYSTORE_PASSWORD = "listeners.https.ssl.keystore.password"
KEY_PASSWORD = "listeners.https.ssl.key.password"
TRUSTSTORE = "listeners.https.ssl.truststore.location"
TRUSTSTORE_PASSWORD = "listeners.https.ssl.truststore.password"

HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    """A worker's response."""

    status: int
    text: str

    @property
    def body(self) -> Any:
        """The JSON in the body."""
        return json.loads(self.text)

    @property
    def message(self) -> str:
        """The message in a Connect error body."""
        assert set(self.body) == {"error_code", "message"}, self.text
        assert self.body["error_code"] == self.status
        return str(self.body["message"])


def create_tls_context(certificates: Certificates, *, identified: bool = True) -> ssl.SSLContext:
    """A client that trusts the workers' authority, with or without its own certificate."""
    return _create_context(certificates.authority_pem, certificates.client_pem if identified else None)


@cache
def _create_context(authority: Path, client: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority))
    if client is not None:
        context.load_cert_chain(str(client))
    return context


@dataclass(frozen=True)
class WorkerClient:
    """Sends requests to one port; ``tls`` is None if the listener has none."""

    port: int
    tls: ssl.SSLContext | None

    def connection(self) -> http.client.HTTPConnection:
        """Open a separate connection, kept alive while it is used."""
        if self.tls is None:
            return http.client.HTTPConnection(HOST, self.port, timeout=_TIMEOUT_SECONDS)
        return http.client.HTTPSConnection(HOST, self.port, timeout=_TIMEOUT_SECONDS, context=self.tls)

    def __call__(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send one request on a new connection. A body that is not text or bytes is sent as JSON."""
        connection = self.connection()
        try:
            return send_request(connection, method, path, body, headers)
        finally:
            connection.close()

    def patch(self, changes: object) -> Answer:
        """PATCH the overrides."""
        return self("PATCH", PATH, changes)

    def validate(self, changes: object) -> Answer:
        """Have this worker validate changes."""
        return self("POST", f"{PATH}/validate", changes)

    def delete(self, key: str) -> Answer:
        """DELETE one override."""
        return self("DELETE", f"{PATH}/{key}")

    def overrides(self) -> dict[str, str]:
        """GET the overrides."""
        answer = self("GET", PATH)
        assert answer.status == 200, answer.text
        found: dict[str, str] = answer.body
        return found

    def status(self, headers: dict[str, str] | None = None) -> dict[str, Any]:
        """GET the status."""
        answer = self("GET", f"{PATH}/status", headers=headers)
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.body
        return found

    def read_served_sha256(self) -> str:
        """Return the SHA-256, in hex, of the certificate that a new handshake receives."""
        assert self.tls is not None
        with (
            socket.create_connection((HOST, self.port), _TIMEOUT_SECONDS) as plain,
            self.tls.wrap_socket(plain, server_hostname=HOST) as secure,
        ):
            return compute_sha256(secure)


def send_request(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Send one request on an existing connection."""
    data = body if isinstance(body, bytes | str | None) else json.dumps(body)
    kind = {} if data is None else {"Content-Type": "application/json"}
    connection.request(method, path, data, {**kind, **(headers or {})})
    answered = connection.getresponse()
    return Answer(answered.status, answered.read().decode())


def compute_sha256(secure: ssl.SSLSocket) -> str:
    """Return the SHA-256, in hex, of the certificate that the other side has sent."""
    der = secure.getpeercert(binary_form=True)
    assert der is not None
    return hashlib.sha256(der).hexdigest()
