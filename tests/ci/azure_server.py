"""A small Azure DevOps on this machine, with the threads of pull request 12."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.http_servers import serve

TOKEN = "azure-secret"
OWN_ID = "11111111-2222-3333-4444-555555555555"
_THREADS = "/shop/_apis/git/repositories/repo/pullRequests/12/threads"


@dataclass
class AzureService:
    """threads: the threads of the pull request, as the API returns them. requests: what was requested."""

    url: str
    threads: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any) -> Any:
        """Return the response of the REST API; None if there is no such resource."""
        if (method, path) == ("GET", "/_apis/connectionData"):
            return {"authenticatedUser": {"id": OWN_ID}}
        if (method, path) == ("GET", _THREADS):
            return {"value": self.threads}
        if (method, path) == ("POST", _THREADS):
            [comment] = body["comments"]
            assert (comment["parentCommentId"], comment["commentType"], body["status"]) == (0, 1, 4)
            return self.add_thread(comment["content"], OWN_ID)
        if method == "PATCH" and (match := re.fullmatch(rf"{_THREADS}/(\d+)/comments/(\d+)", path)):
            (thread,) = (thread for thread in self.threads if thread["id"] == int(match[1]))
            (comment,) = (item for item in thread["comments"] if item["id"] == int(match[2]))
            comment["content"] = body["content"]
            return comment
        return None

    def add_thread(self, content: str, author: str, **facts: Any) -> dict[str, Any]:
        """Add a thread with one comment."""
        comment = {"id": 1, "author": {"id": author}, "content": content} | facts
        self.threads.append({"id": len(self.threads) + 40, "comments": [comment]})
        return self.threads[-1]


@contextmanager
def run_azure_server() -> Iterator[AzureService]:
    """Run the service on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            service.requests.append(f"{self.command} {url.path}")
            login = base64.b64encode(f":{TOKEN}".encode()).decode()
            code, answer = 200, None
            if self.headers.get("Authorization") != f"Basic {login}":
                code = 401
            elif url.path.startswith(_THREADS) and parse_qs(url.query) != {"api-version": ["7.1"]}:
                code = 400
            else:
                answer = service.answer(self.command, url.path, body)
                code = 200 if answer is not None else 404
            text = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    service = AzureService("")
    with serve(Handler, ("GET", "POST", "PATCH")) as url:
        service.url = url
        yield service
