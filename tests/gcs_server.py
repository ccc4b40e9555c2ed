"""A server with the part of Google Cloud Storage's XML API that states use.

No emulator that can be installed here checks generations (``x-goog-if-generation-match``), so this server is
written after Google's documentation: https://cloud.google.com/storage/docs/xml-api/reference-headers
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.http_servers import serve

BUCKET = "bucket"
_TIME = "Sat, 28 Nov 2026 10:15:00 GMT"


@contextmanager
def run_gcs_server() -> Iterator[str]:
    """Run the server with one empty bucket, and yield its URL."""
    objects: dict[str, tuple[int, bytes]] = {}
    mutex = threading.Lock()
    last_generation = 1_700_000_000_000_000

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            bucket, _, name = unquote(url.path).lstrip("/").partition("/")
            if bucket != BUCKET:
                self._send(404, b"<Error><Code>NoSuchBucket</Code><Message>No such bucket</Message></Error>")
            elif not name:
                self._list(parse_qs(url.query).get("prefix", [""])[0])
            elif self.command == "PUT":
                self._put(name, body)
            elif self.command == "DELETE":
                with mutex:
                    is_known = objects.pop(name, None) is not None
                self._send(204) if is_known else self._send_missing()
            else:
                found = objects.get(name)
                self._send(200, found[1], found[0]) if found else self._send_missing()

        def _put(self, name: str, body: bytes) -> None:
            nonlocal last_generation
            condition = self.headers.get("x-goog-if-generation-match")
            with mutex:
                generation = objects[name][0] if name in objects else 0  # zero: the object does not exist
                is_met = condition is None or int(condition) == generation
                if is_met:
                    last_generation += 1
                    generation = last_generation
                    objects[name] = (generation, body)
            if is_met:
                self._send(200, b"", generation)
            else:
                self._send(412, b"<Error><Code>PreconditionFailed</Code><Message>x</Message></Error>")

        def _list(self, prefix: str) -> None:
            entries = "".join(
                f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>&quot;{generation}&quot;</ETag>"
                "<LastModified>2026-11-28T10:15:00.000Z</LastModified></Contents>"
                for name, (generation, data) in sorted(objects.items())
                if name.startswith(prefix)
            )
            self._send(200, f"<ListBucketResult>{entries}</ListBucketResult>".encode())

        def _send_missing(self) -> None:
            self._send(404, b"<Error><Code>NoSuchKey</Code><Message>No such object</Message></Error>")

        def _send(self, status: int, content: bytes = b"", generation: int = 0) -> None:
            self.send_response(status)
            if generation:
                # The ETag of this API is a checksum of the content, like the one of S3.
                self.send_header("ETag", f'"{hash(content)}"')
                self.send_header("x-goog-generation", str(generation))
                self.send_header("Last-Modified", _TIME)
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if status != 204:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with serve(Handler, ("GET", "PUT", "DELETE")) as url:
        yield url
