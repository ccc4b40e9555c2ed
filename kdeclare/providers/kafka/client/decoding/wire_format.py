"""Raw responses, and functions that read Kafka's flexible wire format (KIP-482).

kdeclare itself decodes some responses, because kafka-python decodes them slowly. The request classes below
return a `RawResponse` for the versions that kdeclare decodes, and kafka-python's own class for all other
versions.
Each ``read_`` function returns the value and the position after the value. Lengths and counts are checked
against the remaining bytes, so a malformed response cannot cause large allocations.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.admin.topics import CreateTopicsRequest
from kafka.protocol.api_header import RequestHeader, ResponseHeader
from kafka.protocol.metadata import MetadataRequest

T = TypeVar("T")

_MAX_UVARINT_BYTES = 5  # 5 bytes encode 32 bits


class MalformedResponse(ValueError):
    """The bytes are not a valid response of the expected version."""


def decode_all(decode: Callable[[], Iterable[T]]) -> list[T]:
    """Return all items that ``decode`` yields.

    Every error about invalid bytes is raised as MalformedResponse.
    """
    try:
        return list(decode())
    except MalformedResponse:
        raise
    except (LookupError, ValueError, OverflowError, struct.error) as exc:
        raise MalformedResponse(f"{type(exc).__name__}: {exc}") from exc


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint, and return it with the position after it.

    Raises MalformedResponse, or IndexError at the end of the data.
    """
    byte = data[pos]
    pos += 1
    if byte < 0x80:
        return byte, pos
    value = byte & 0x7F
    for shift in range(7, 7 * _MAX_UVARINT_BYTES, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
    raise MalformedResponse("a length has more than 32 bits")


def read_count(data: bytes, pos: int, min_item_bytes: int) -> tuple[int, int]:
    """Return the length of a compact array, which is 0 for a null array, and the position after the length.

    min_item_bytes: the minimum size of one item.
    """
    size, pos = read_uvarint(data, pos)
    count = max(0, size - 1)
    if count * min_item_bytes > len(data) - pos:
        raise MalformedResponse(
            f"an array has {count} items of at least {min_item_bytes} bytes, but only "
            f"{len(data) - pos} bytes remain"
        )
    return count, pos


def read_string(data: bytes, pos: int) -> tuple[str | None, int]:
    """Read a compact nullable string, and return it with the position after it.

    The format is the length plus one (0 for null), followed by the UTF-8 bytes.
    """
    size, pos = read_uvarint(data, pos)
    if size == 0:
        return None, pos
    end = pos + size - 1
    if end > len(data):
        raise MalformedResponse(f"a string of {size - 1} bytes, but only {len(data) - pos} bytes remain")
    return data[pos:end].decode(), end


def skip_string(data: bytes, pos: int) -> int:
    """Return the position after a compact nullable string."""
    size, pos = read_uvarint(data, pos)
    end = pos + max(0, size - 1)
    if end > len(data):
        raise MalformedResponse(f"a string of {size - 1} bytes, but only {len(data) - pos} bytes remain")
    return end


def skip_tags(data: bytes, pos: int) -> int:
    """Return the position after the tagged fields."""
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        pos += size
        if pos > len(data):
            raise MalformedResponse("a tagged field extends beyond the end of the response")
    return pos


def require_end(data: bytes, pos: int) -> None:
    """Raise MalformedResponse unless only tagged fields follow until the end of the response."""
    pos = skip_tags(data, pos)
    if pos != len(data):
        raise MalformedResponse(f"{len(data) - pos} bytes follow the end of the response")


CREATE_TOPICS_VERSIONS = frozenset({7})
DESCRIBE_CONFIGS_VERSIONS = frozenset({4})
METADATA_VERSIONS = frozenset({11, 12, 13})


class RawResponse:
    """The bytes of a response. kafka-python requires the attribute ``throttle_time_ms``."""

    __slots__ = ("body", "throttle_time_ms", "version")

    def __init__(self, body: bytes, version: int) -> None:
        self.body = body
        self.version = version
        self.throttle_time_ms = int.from_bytes(body[:4], "big", signed=True)


class _RawResponseClass:
    """The interface that kafka-python requires of a response class."""

    def __init__(self, version: int) -> None:
        self._version = version

    def parse_header(self, buffer: Any) -> Any:
        return ResponseHeader.decode(buffer, flexible=True)

    def decode(self, buffer: Any) -> RawResponse:
        return RawResponse(bytes(memoryview(buffer)[buffer.tell() :]), self._version)


class _RawConfigsHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return select_response_class(self, DESCRIBE_CONFIGS_VERSIONS, super().get_response_class)


class _RawMetadataHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return select_response_class(self, METADATA_VERSIONS, super().get_response_class)


class _RawCreateTopicsHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return select_response_class(self, CREATE_TOPICS_VERSIONS, super().get_response_class)


class RawCreateTopicsRequest(CreateTopicsRequest, init=False):  # type: ignore[misc,call-arg]
    """A CreateTopicsRequest that returns a RawResponse for the versions that kdeclare decodes itself."""

    header_class = _RawCreateTopicsHeader


class RawDescribeConfigsRequest(DescribeConfigsRequest, init=False):  # type: ignore[misc,call-arg]
    """A DescribeConfigsRequest that returns a RawResponse for the versions that kdeclare decodes itself."""

    header_class = _RawConfigsHeader


class RawMetadataRequest(MetadataRequest, init=False):  # type: ignore[misc,call-arg]
    """A MetadataRequest that returns a RawResponse for the versions that kdeclare decodes itself."""

    header_class = _RawMetadataHeader


def select_response_class(header: Any, versions: frozenset[int], get_default_class: Callable[[], Any]) -> Any:
    """Return the class that decodes the response to the request with this header.

    versions: the versions that kdeclare decodes itself. get_default_class: returns kafka-python's own class.
    """
    version = header.request_api_version
    return _RawResponseClass(version) if version in versions else get_default_class()
