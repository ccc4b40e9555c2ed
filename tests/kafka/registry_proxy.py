"""A proxy in front of a schema registry. It fails chosen requests before or after they take effect."""

import http.client
import http.server
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from tests.http_servers import serve


@dataclass(frozen=True)
class Failure:
    """How the proxy fails a request.

    takes_effect: whether the proxy forwards the request.
    forward_after_s, respond_after_s: delays in seconds before the proxy forwards the request, and before it
        responds.
    status: the HTTP status of the response; None closes the connection without a response.
    is_passed_on: whether the client gets the response of the registry instead.
    """

    takes_effect: bool = True
    forward_after_s: float = 0.0
    respond_after_s: float = 0.0
    status: int | None = None
    is_passed_on: bool = False


DELAY_S = 2.5
"""The delays of the failures, in seconds. Clients in tests must wait for a shorter time."""


class Failures(Enum):
    """The failures of a registry, and of the network and the load balancers in front of it."""

    ERROR_WITHOUT_EFFECT = Failure(takes_effect=False, status=500)
    UNAVAILABLE = Failure(takes_effect=False, status=503)
    REQUEST_LOST = Failure(takes_effect=False)
    ERROR_AFTER_EFFECT = Failure(status=500)
    RESPONSE_LOST = Failure()
    LATE_RESPONSE = Failure(respond_after_s=DELAY_S, is_passed_on=True)
    LATE_EFFECT = Failure(forward_after_s=DELAY_S, is_passed_on=True)


@dataclass
class RegistryProxy:
    """A running proxy.

    url: the URL of the proxy. It takes the place of the URL of the registry.
    is_down: whether the proxy closes all connections without a response.
    effective: the requests that the registry answered with 2xx: method, and target without the path of the
        API, such as ``POST /subjects/orders/versions``.
    """

    registry_url: str
    url: str = ""
    is_down: bool = False
    effective: list[str] = field(default_factory=list)
    _failures: dict[str, list[Failures]] = field(default_factory=dict)
    _shutdowns: set[str] = field(default_factory=set)

    def fail(self, request: str, *failures: Failures) -> None:
        """Fail the next requests with this method and target, one for each failure."""
        self._failures.setdefault(request, []).extend(failures)

    def shut_down_after(self, request: str) -> None:
        """Forward the next request with this method and target, then go down without a response."""
        self._shutdowns.add(request)

    def recover(self) -> None:
        """Forward all requests again."""
        self.is_down = False
        self._failures.clear()

    @property
    def pending(self) -> list[str]:
        """The requests that have not yet been failed as often as the test wanted."""
        return [request for request, failures in self._failures.items() if failures]

    def handle(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> "_Response | None":
        """Return the response to a request; None closes the connection."""
        if self.is_down:
            return None
        request = f"{method} {target}"
        failures = self._failures.get(request, [])
        failure = failures.pop(0).value if failures else Failure(is_passed_on=True)
        time.sleep(failure.forward_after_s)
        response = self._forward(method, target, body, headers) if failure.takes_effect else None
        if request in self._shutdowns:
            self._shutdowns.remove(request)
            self.is_down = True
            return None
        time.sleep(failure.respond_after_s)
        if failure.is_passed_on:
            return response
        if failure.status is None:
            return None
        return _Response(failure.status, b'{"error_code": 50001, "message": "the database is locked"}')

    def _forward(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> "_Response":
        parts = urlsplit(self.registry_url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        try:
            connection.request(method, parts.path + target, body or None, headers)
            response = connection.getresponse()
            answer = _Response(response.status, response.read(), response.headers.get("Content-Type", ""))
        finally:
            connection.close()
        if 200 <= answer.status < 300:
            self.effective.append(f"{method} {target}")
        return answer


@dataclass(frozen=True)
class _Response:
    status: int
    body: bytes
    content_type: str = "application/vnd.schemaregistry.v1+json"


@contextmanager
def run_registry_proxy(registry_url: str) -> Iterator[RegistryProxy]:
    """Run a proxy on a free port until the block ends."""
    proxy = RegistryProxy(registry_url)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One packet for the headers and the body, so that no packet waits for an acknowledgment.
        wbufsize = -1

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {key: self.headers[key] for key in ("Accept", "Content-Type") if key in self.headers}
            response = proxy.handle(self.command, self.path, body, headers)
            if response is None:
                self.close_connection = True
                return
            try:
                self.send_response(response.status)
                self.send_header("Content-Length", str(len(response.body)))
                self.send_header("Content-Type", response.content_type)
                self.end_headers()
                self.wfile.write(response.body)
                self.wfile.flush()
            except OSError:  # the client no longer waits
                self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    with serve(Handler, ("GET", "POST", "PUT", "DELETE")) as proxy.url:
        yield proxy
