"""A webhook on this machine that records what it receives."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any


@dataclass
class Hook:
    """A webhook: the requests that it received, and how it responds to the next ones."""

    url: str = ""
    bodies: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    responses: list[Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=list)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]


def make_handler(hook: Hook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            hook.bodies.append(body)
            hook.headers.append({"path": self.path, **dict(self.headers)})
            (hook.responses.pop(0) if hook.responses else accept)(self)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def answer(status: int, body: str = "", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body.encode())

    return respond


accept = answer(200, "ok")
