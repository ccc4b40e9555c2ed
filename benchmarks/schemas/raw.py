"""Send bare requests to a schema registry, for comparison: ``raw URL NAMES_FILE ACTION [SUBJECT]``.

NAMES_FILE lists subjects. The action ``read`` reads the latest version and the compatibility level of each
subject, ``create`` registers a version of each subject, and ``purge`` deletes all subjects permanently. If
SUBJECT is named, a version of it is registered afterwards. Like kdeclare, the process sends eight requests at
the same time.
"""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

_THREADS = 8
_ABSENT = 404


class Client:
    """A client with one connection for each thread."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._local = threading.local()

    def send(self, method: str, path: str, document: object = None) -> int:
        """Send a request, read the whole response, and return its status."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = HTTPConnection(self._url.hostname or "", self._url.port, timeout=60)
            self._local.connection = connection
        body = None if document is None else json.dumps(document)
        connection.request(method, self._url.path + path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status >= 300 and response.status != _ABSENT:
            raise SystemExit(f"{method} {path}: {response.status} {content[:500]!r}")
        json.loads(content)
        return int(response.status)

    def read(self, subject: str) -> bool:
        """Read a subject, and return whether it exists."""
        self.send("GET", f"/config/{subject}")
        return self.send("GET", f"/subjects/{subject}/versions/latest") != _ABSENT

    def create(self, subject: str) -> bool:
        """Register a version."""
        fields = [{"name": "id", "type": "string"}, {"name": "bare", "type": "int", "default": 0}]
        schema = {"type": "record", "name": f"bare.{subject.replace('-', '_')}", "fields": fields}
        path = f"/subjects/{subject}/versions"
        return self.send("POST", path, {"schema": json.dumps(schema)}) != _ABSENT

    def purge(self, subject: str) -> bool:
        """Delete a subject permanently."""
        self.send("DELETE", f"/subjects/{subject}")
        return self.send("DELETE", f"/subjects/{subject}?permanent=true") != _ABSENT


def main(url: str, names_file: str, action: str, changed: str = "") -> None:
    """Send the requests, and print for how many subjects they succeeded."""
    client = Client(url)
    work = {"read": client.read, "create": client.create, "purge": client.purge}[action]
    with ThreadPoolExecutor(_THREADS) as pool:
        results = list(pool.map(work, Path(names_file).read_text().split()))
    if changed:
        client.create(changed)
    print(sum(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
