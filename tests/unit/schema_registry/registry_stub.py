"""A stub of a registry's REST interface, with responses defined by tests."""

import http.server
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.http.target import HttpTarget
from kdeclare.providers.schema_registry.client.rest import RestRegistry, open_rest_registry
from tests.http_servers import serve


@dataclass
class ReceivedRequest:
    """One request. target: the path and the query."""

    method: str
    target: str
    body: JsonValue
    headers: dict[str, str]


@dataclass
class Answer:
    """One response: a status, and a body (bytes, or a value to encode as JSON).

    None as the status closes the connection without a response.
    """

    status: int | None
    body: JsonValue | bytes = b""


@dataclass
class RegistryStub:
    """A running stub.

    answers: the responses by method and target (without the query if the target with the query is not
        listed). The last response to a target is repeated. Without a response, the stub sends 404.
    """

    url: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    received: list[ReceivedRequest] = field(default_factory=list)

    def answer(self, request: str, status: int | None, body: JsonValue | bytes = b"") -> None:
        """Add a response. request: for example ``GET /subjects``."""
        self.answers.setdefault(request, []).append(Answer(status, body))

    def fail(self, request: str, status: int, error_code: int, message: str = "no") -> None:
        """Add an error response in the registry's format."""
        self.answer(request, status, {"error_code": error_code, "message": message})

    @property
    def requests(self) -> list[str]:
        """The methods and targets of all requests."""
        return [f"{one.method} {one.target}" for one in self.received]

    def find_answer(self, method: str, target: str) -> Answer:
        """Return the response to a request, and count it."""
        for key in (f"{method} {target}", f"{method} {target.partition('?')[0]}"):
            answers = self.answers.get(key)
            if answers:
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return Answer(404)


@contextmanager
def run_registry_stub() -> Iterator[RegistryStub]:
    """Run a stub on a free port."""
    stub = RegistryStub()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(content) if content else None
            stub.received.append(ReceivedRequest(self.command, self.path, body, dict(self.headers)))
            answer = stub.find_answer(self.command, self.path)
            if answer.status is None:
                self.close_connection = True
                return
            payload = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *args: object) -> None:
            pass

    with serve(Handler, ("GET", "POST", "PUT", "DELETE")) as stub.url:
        yield stub


def open_registry(
    *urls: str, attempts: int = 1, headers: tuple[tuple[str, str], ...] = (), timeout_s: float = 5.0
) -> RestRegistry:
    """Open a registry at these URLs."""
    policy = RetryPolicy(attempts, sleep=lambda _: None)
    return open_rest_registry(HttpTarget(urls, headers=headers), timeout_s, policy)
