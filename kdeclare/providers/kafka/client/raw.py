"""Responses kept as bytes, for decoders of our own where kafka-python's are slow.

A request says by its header which class decodes its response. Requests of the subclasses below name
`RawResponse` for the versions that our decoders know, and kafka-python's own class for any other.
"""

from collections.abc import Callable
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.api_header import RequestHeader, ResponseHeader
from kafka.protocol.metadata import MetadataRequest

DESCRIBE_CONFIGS_VERSIONS = frozenset({4})
METADATA_VERSIONS = frozenset({11, 12, 13})


class RawResponse:
    """The body of a response, undecoded. ``throttle_time_ms`` is what kafka-python looks at."""

    __slots__ = ("body", "throttle_time_ms", "version")

    def __init__(self, body: bytes, version: int) -> None:
        self.body = body
        self.version = version
        self.throttle_time_ms = int.from_bytes(body[:4], "big", signed=True)


class _Capture:
    """What kafka-python takes for a response class."""

    def __init__(self, version: int) -> None:
        self._version = version

    def parse_header(self, buffer: Any) -> Any:
        return ResponseHeader.decode(buffer, flexible=True)

    def decode(self, buffer: Any) -> RawResponse:
        return RawResponse(bytes(memoryview(buffer)[buffer.tell() :]), self._version)


class _RawConfigsHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return _response_class(self, DESCRIBE_CONFIGS_VERSIONS, super().get_response_class)


class _RawMetadataHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return _response_class(self, METADATA_VERSIONS, super().get_response_class)


class RawDescribeConfigsRequest(DescribeConfigsRequest, init=False):  # type: ignore[misc,call-arg]
    """A DescribeConfigsRequest answered with a RawResponse where the version allows it."""

    header_class = _RawConfigsHeader


class RawMetadataRequest(MetadataRequest, init=False):  # type: ignore[misc,call-arg]
    """A MetadataRequest answered with a RawResponse where the version allows it."""

    header_class = _RawMetadataHeader


def _response_class(header: Any, versions: frozenset[int], usual: Callable[[], Any]) -> Any:
    version = header.request_api_version
    return _Capture(version) if version in versions else usual()
