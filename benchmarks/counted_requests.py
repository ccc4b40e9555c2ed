"""Run kdeclare, and write its HTTP requests to a file: ``counted_requests FILE ARGUMENT…``."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kdeclare.cli.main import main as run_kdeclare
from kdeclare.http.client import HttpClient, HttpResponse


def main(file: str, *arguments: str) -> int:
    """Run the command, and return its exit code.

    The file contains a JSON list with method, path, ``is_change`` and the status of each request. The status
    is null if there was no response.
    """
    requests: list[tuple[str, str, bool, int | None]] = []
    send: Callable[..., HttpResponse] = HttpClient.send

    def send_and_log(client: HttpClient, method: str, url: str, *more: Any, **options: Any) -> HttpResponse:
        path = urlsplit(url)._replace(scheme="", netloc="").geturl()
        status = None
        try:
            response = send(client, method, url, *more, **options)
            status = response.status
        finally:
            requests.append((method, path, bool(options["is_change"]), status))
        return response

    HttpClient.send = send_and_log  # type: ignore[method-assign,assignment]
    try:
        return run_kdeclare(arguments)
    finally:
        Path(file).write_text(json.dumps(requests))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
