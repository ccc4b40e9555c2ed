"""A stub of a worker's REST interface, over TLS or plain HTTP, with responses defined by tests."""

import http.server
import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class ReceivedRequest:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Stub:
    """Responses by method and path: a status, and a body (bytes, or a value to encode as JSON).

    Without a response, it is silent for ``silence_s`` and closes the connection. drip_s: the pause between
    two bytes of a body.
    """

    url: str = ""
    answers: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)
    asked: list[ReceivedRequest] = field(default_factory=list)
    silence_s: float = 1.0
    drip_s: float = 0.0


def create_key_pair(folder: Path, name: str, host: str = "localhost") -> tuple[Path, Path]:
    """Create a self-signed certificate, and its key."""
    tool = shutil.which("openssl")
    if tool is None:
        pytest.skip("needs openssl")
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{host}"]
    out = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([tool, *words, *out], check=True, capture_output=True)
    return cert, key


@contextmanager
def run_https_stub(cert: Path, key: Path, clients: Path | None = None) -> Iterator[Stub]:
    """Run a stub. clients: the certificates of which clients it requires."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    with run_http_stub(context) as stub:
        yield stub


@contextmanager
def run_http_stub(context: ssl.SSLContext | None = None) -> Iterator[Stub]:
    """Run a stub. context: the TLS context; None for plain HTTP."""
    stub = Stub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            stub.asked.append(ReceivedRequest(self.command, self.path, dict(self.headers), body))
            found = stub.answers.get((self.command, self.path))
            if found is None:
                time.sleep(stub.silence_s)
                self.close_connection = True
                return
            status, said = found
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            for part in [data] if not stub.drip_s else [data[n : n + 1] for n in range(len(data))]:
                self.wfile.write(part)
                time.sleep(stub.drip_s)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Discard log messages."""

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[Any, Any]:
            plain, address = super().get_request()
            return context.wrap_socket(plain, server_side=True) if context else plain, address

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore failed handshakes; they are the client's concern."""

    with Server(("localhost", 0), Handler) as server:
        stub.url = f"{'https' if context else 'http'}://localhost:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            server.shutdown()
