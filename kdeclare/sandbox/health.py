"""Check whether a broker, a Connect worker or a schema registry is ready.

A broker is checked with a Metadata request, because the response contains only unfenced brokers. Workers and
registries are checked with a REST request. No Kafka client library is used, because it would add import time,
retries and timeouts.
"""

import http.client
import socket
import ssl
import struct

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.sandbox.settings import HOST, REGISTRY_PATH

_METADATA = 3
# A version of the request without tagged fields (KIP-482). Brokers have supported it since Kafka 1.0.
_VERSION = 5
_CLIENT_ID = b"kdeclare-sandbox"
# The response of a sandbox's broker has about 500 bytes.
_MAX_RESPONSE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A broker's view of the cluster: the cluster id, and the ids of all unfenced brokers."""

    cluster_id: str | None
    broker_ids: frozenset[int]


def ask(host: str, port: int, timeout: float) -> ClusterView | None:
    """Return the cluster as the broker at this address sees it; None if it does not respond in time.

    timeout: the maximum time until the response, in seconds.
    """
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
    """Build a Metadata request without topics. The request starts with its length."""
    header = struct.pack(">hhih", _METADATA, _VERSION, 1, len(_CLIENT_ID)) + _CLIENT_ID
    body = struct.pack(">i?", 0, False)  # no topics, and no automatic topic creation
    return struct.pack(">i", len(header) + len(body)) + header + body


def parse_response(response: bytes) -> ClusterView:
    """Parse a Metadata response without its length prefix. Raises ValueError if the response is truncated."""
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
            raise ValueError("the response is truncated")
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
    """Whether a Connect worker reports within ``timeout`` seconds that it is healthy (KIP-1017).

    A worker is healthy after it has joined its group. The certificate of the worker is not verified, because
    an authority other than the sandbox's own might have signed it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return _is_found(http.client.HTTPSConnection(HOST, port, timeout=timeout, context=context), "/health")


def is_registry_ready(port: int, timeout: float) -> bool:
    """Whether a schema registry lists its subjects within ``timeout`` seconds."""
    return _is_found(http.client.HTTPConnection(HOST, port, timeout=timeout), f"{REGISTRY_PATH}/subjects")


def _is_found(connection: http.client.HTTPConnection, path: str) -> bool:
    """Whether the server responds with HTTP 200. Closes the connection."""
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
