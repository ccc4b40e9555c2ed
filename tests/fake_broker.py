"""A broker on a loopback port with scripted responses; kafka-python's classes encode and decode them."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import kafka.protocol.admin as admin
import kafka.protocol.consumer as consumer
import kafka.protocol.metadata as metadata

from kdeclare.providers.kafka.client.groups.messages import ConsumerGroupDescribeRequest


def _by_api_key(suffix: str) -> dict[int, Any]:
    modules: list[Any] = [admin, consumer, metadata]
    found = (getattr(module, name) for module in modules for name in dir(module) if name.endswith(suffix))
    return {cls.API_KEY: cls for cls in found}


_REQUESTS = _by_api_key("Request") | {ConsumerGroupDescribeRequest.API_KEY: ConsumerGroupDescribeRequest}

Answer = Callable[[Any], Any]
"""Maps a request to a response. None closes the connection; Ellipsis sends no response.

A response in a tuple is the last one: the connection is closed right after it. A number after the response is
the number of bytes that are sent.
"""


class FakeBroker:
    """One broker with id 1, which is also the controller.

    answers: by API key. requests: all received requests, in order. versions: the highest version by API key;
    -1 for unsupported APIs. port: the port to listen on; 0 means any.
    """

    def __init__(
        self, answers: Mapping[int, Answer], versions: Mapping[int, int] | None = None, port: int = 0
    ) -> None:
        self.requests: list[Any] = []
        self._versions = {3: 13, 18: 3, 19: 7, 20: 6, 32: 4, 37: 3, 44: 1, 45: 1, 46: 0, 60: 2, 2: 10}
        self._versions |= versions or {}
        self._answers: dict[int, Answer] = {3: self.metadata, 18: self.api_versions, **answers}
        self._listener = socket.create_server(("127.0.0.1", port))
        self._clients: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def list_requests(self, api_key: int) -> list[Any]:
        """Return the requests that were received for one API."""
        return [request for request in list(self.requests) if api_key == request.API_KEY]

    def metadata(self, request: Any) -> Any:
        """Return a response with one broker and no topics."""
        kind = metadata.MetadataResponse
        return kind(
            throttle_time_ms=0,
            brokers=[kind.MetadataResponseBroker(1, "127.0.0.1", self.port, None)],
            cluster_id="fake",
            controller_id=1,
            topics=[],
            error_code=0,
        )

    def api_versions(self, request: Any) -> Any:
        """Return the API versions that this broker supports."""
        kind = metadata.ApiVersionsResponse
        return kind(
            error_code=0,
            api_keys=[
                kind.ApiVersion(api_key=key, min_version=0, max_version=highest)
                for key, highest in self._versions.items()
                if highest >= 0
            ],
            throttle_time_ms=0,
            finalized_features_epoch=7,
        )

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return len(self._clients)

    def die(self) -> None:
        """Stop listening, and close all existing connections."""
        self.close()
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends a blocking accept
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                threading.Thread(target=self._handle_client, args=(client,), daemon=True).start()

    def _handle_client(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), client, client.makefile("rb") as stream:
            while True:
                (size,) = struct.unpack(">i", _read_exactly(stream, 4))
                frame = _read_exactly(stream, size)
                key, version, correlation = struct.unpack(">hhi", frame[:8])
                request = _REQUESTS[key].decode(frame, version=version, header=True)
                request.API_VERSION = version
                self.requests.append(request)
                answer = self._answers[key](request)
                if answer is None:
                    return
                last, length = isinstance(answer, tuple), None
                if last:
                    answer, length = (*answer, None)[:2]
                if answer is not ...:
                    answer.API_VERSION = version
                    answer.with_header(correlation_id=correlation)
                    client.sendall(answer.encode(header=True, framed=True)[:length])
                if last:
                    return


def _read_exactly(stream: Any, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return bytes(data)


@contextlib.contextmanager
def fake_broker(
    answers: Mapping[int, Answer], versions: Mapping[int, int] | None = None
) -> Iterator[FakeBroker]:
    """A broker for the duration of a with block."""
    broker = FakeBroker(answers, versions)
    try:
        yield broker
    finally:
        broker.close()
