"""Servers of object storage for tests: moto's S3, and a proxy in front of it that misbehaves."""

import http.client
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from tests.http_servers import serve
from tests.polling import wait_for
from tests.ports import reserve_port

_AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKIATESTTESTTESTTEST/20261128/us-east-1/{}/aws4_request, "
    "SignedHeaders=host, Signature=0"
)
METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD")
_CONDITIONS = frozenset({"if-match", "if-none-match"})
_PER_CONNECTION = frozenset({"connection", "transfer-encoding", "content-length", "date", "server"})


@contextmanager
def run_s3_server() -> Iterator[str]:
    """Run moto's S3 in a process of its own, and yield its URL."""
    port = reserve_port()
    command = [sys.executable, str(Path(__file__).with_name("s3_server.py")), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _await_server(process, url)
        yield url
    finally:
        process.kill()
        process.wait()


def _await_server(process: subprocess.Popen[bytes], url: str) -> None:
    def is_ready() -> bool:
        try:
            with urllib.request.urlopen(f"{url}/moto-api/data.json", timeout=10):
                return True
        except OSError:
            assert process.poll() is None, "the server ended"
            return False

    wait_for(is_ready, problem="the server did not start")


def create_bucket(url: str, name: str) -> None:
    """Create a bucket."""
    send(url, "PUT", f"/{name}")


def send(url: str, method: str, path: str, body: bytes = b"", service: str = "s3") -> bytes:
    """Send one request with a wrong signature, which moto does not check. Return the body of the response."""
    content_type = "application/octet-stream" if service == "s3" else "application/x-www-form-urlencoded"
    headers = {"Content-Type": content_type, "Authorization": _AUTHORIZATION.format(service)}
    request = urllib.request.Request(f"{url}{path}", body or None, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as response:
        content = response.read()
    assert isinstance(content, bytes)
    return content


class ProxiedRequest:
    """A request that passes the proxy. ``forward`` sends it to the server; ``drop`` ends the connection."""

    def __init__(self, handler: BaseHTTPRequestHandler, server: str, body: bytes) -> None:
        self.method = handler.command
        self.path = handler.path
        self._handler = handler
        self._server = server
        self._body = body

    def forward(self, *, ignore_conditions: bool = False, answer: bool = True) -> int:
        """Send the request to the server, and return the status of the response.

        ignore_conditions: remove the headers with conditions, like a server that does not know them.
        answer: whether the client gets the response.
        """
        headers = {
            name: value
            for name, value in self._handler.headers.items()
            if not (ignore_conditions and name.lower() in _CONDITIONS)
        }
        connection = http.client.HTTPConnection(urlsplit(self._server).netloc, timeout=10)
        try:
            connection.request(self.method, self.path, self._body, headers)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if answer:
            kept = {k: v for k, v in response.getheaders() if k.lower() not in _PER_CONNECTION}
            self.respond(response.status, content, kept)
        return response.status

    def respond(self, status: int, content: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Respond instead of the server."""
        self._handler.send_response(status)
        for name, value in (headers or {}).items():
            self._handler.send_header(name, value)
        self._handler.send_header("Content-Length", str(len(content)))
        self._handler.end_headers()
        if self.method != "HEAD":
            self._handler.wfile.write(content)

    def drop(self) -> None:
        """End the connection without a response."""
        self._handler.close_connection = True


@contextmanager
def run_proxy(
    server: str, on_request: Callable[[ProxiedRequest], object], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Run a proxy in front of a server, and yield its URL. ``on_request`` handles each request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            on_request(ProxiedRequest(self, server, body))

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with serve(Handler, METHODS, tls) as url:
        yield url
