"""Whether brokers and Connect workers can be used: one Metadata request, one REST request.

A client library would do it too, at the price of importing it and of its retries and time-outs.
Only unfenced brokers are in the answer, which makes it the test of readiness.
"""

import http.client
import socket
import ssl
import struct

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox.settings import HOST

_METADATA = 3
# The last version before the flexible encoding; brokers serve it since 1.0.
_VERSION = 5
_CLIENT_ID = b"kdeclare-sandbox"
# A sandbox answers in some 500 bytes.
_MAX_RESPONSE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One broker's view of the cluster: its id and the ids of the brokers that are unfenced."""

    cluster_id: str | None
    broker_ids: frozenset[int]


def ask(host: str, port: int, timeout: float) -> ClusterView | None:
    """What the broker at this address says within ``timeout`` seconds, or None if it does not answer."""
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.sendall(build_request())
            (size,) = struct.unpack(">i", _read_exactly(connection, 4))
            if not 0 < size <= _MAX_RESPONSE_BYTES:
                return None
            return parse_response(_read_exactly(connection, size))
    except (OSError, ValueError, struct.error):
        return None


def build_request() -> bytes:
    """A Metadata request for no topics, with its length before it."""
    header = struct.pack(">hhih", _METADATA, _VERSION, 1, len(_CLIENT_ID)) + _CLIENT_ID
    body = struct.pack(">i?", 0, False)  # no topics, and none is to be created
    return struct.pack(">i", len(header) + len(body)) + header + body


def parse_response(response: bytes) -> ClusterView:
    """Read a Metadata response without its length. Raise ValueError when it is cut short."""
    reader = _Reader(response)
    reader.integer()  # correlation id
    reader.integer()  # throttle time
    ids = set()
    for _ in range(reader.integer()):
        ids.add(reader.integer())
        reader.text()  # host
        reader.integer()  # port
        reader.text()  # rack
    return ClusterView(reader.text(), frozenset(ids))


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._offset = 0

    def integer(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def text(self) -> str | None:
        length = int.from_bytes(self._take(2), "big", signed=True)
        return None if length < 0 else self._take(length).decode()

    def _take(self, count: int) -> bytes:
        chunk = self._content[self._offset : self._offset + count]
        if len(chunk) < count:
            raise ValueError("the answer is cut short")
        self._offset += count
        return chunk


def _read_exactly(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        chunk = connection.recv(count - len(content))
        if not chunk:
            raise ValueError("the broker closed the connection")
        content += chunk
    return content


def is_healthy(port: int, timeout: float) -> bool:
    """Whether the worker says within so many seconds that it is healthy (KIP-1017).

    What does its work answers that (DistributedHerder), not before it has joined its group, and so
    knows the leader. Whose process it is, is known from its record; its certificate may be that of any
    authority by now, so that it is not checked.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(HOST, port, timeout=timeout, context=context)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
