"""Responses kept as bytes, and readers of Kafka's flexible wire format (KIP-482).

A fast path for what kafka-python decodes slowly. A request says by its header which class decodes its
response: those of the subclasses below name `RawResponse` for the versions that our decoders know, and
kafka-python's own class for any other. Each reader gives a value and the position after it.

No reader goes beyond the end of the data, and none takes a length on trust: a count of items is held
against the bytes that are left, so that an answer never costs more than its own size times a constant.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.api_header import RequestHeader, ResponseHeader
from kafka.protocol.metadata import MetadataRequest

T = TypeVar("T")

_MAX_UVARINT_BYTES = 5  # bytes of 32 bits


class MalformedResponse(ValueError):
    """The one error of our decoders: the bytes are no response of the version that they are to be."""


def decode_all(decode: Callable[[], Iterable[T]]) -> list[T]:
    """All that a decoder reads. Raises MalformedResponse, whatever the bytes are."""
    try:
        return list(decode())
    except MalformedResponse:
        raise
    except (LookupError, ValueError, OverflowError, struct.error) as exc:
        raise MalformedResponse(f"{type(exc).__name__}: {exc}") from exc


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """An unsigned varint of 32 bits. Raises MalformedResponse, or IndexError at the end of the data."""
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
    """The length of a compact array, 0 for null. ``min_item_bytes``: the bytes that an item has at least."""
    size, pos = read_uvarint(data, pos)
    count = max(0, size - 1)
    if count * min_item_bytes > len(data) - pos:
        raise MalformedResponse(f"{count} items of {min_item_bytes} bytes or more in {len(data) - pos} bytes")
    return count, pos


def read_string(data: bytes, pos: int) -> tuple[str | None, int]:
    """A compact nullable string: its length plus one, 0 for null."""
    size, pos = read_uvarint(data, pos)
    if size == 0:
        return None, pos
    end = pos + size - 1
    if end > len(data):
        raise MalformedResponse(f"a text of {size - 1} bytes in {len(data) - pos} bytes")
    return data[pos:end].decode(), end


def skip_tags(data: bytes, pos: int) -> int:
    """The position after tagged fields, which this version does not know."""
    count, pos = read_uvarint(data, pos)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        pos += size
        if pos > len(data):
            raise MalformedResponse("a tagged field goes beyond the end")
    return pos


def require_end(data: bytes, pos: int) -> None:
    """Make sure that a response ends here, after its tagged fields."""
    pos = skip_tags(data, pos)
    if pos != len(data):
        raise MalformedResponse(f"{len(data) - pos} bytes are left over")


DESCRIBE_CONFIGS_VERSIONS = frozenset({4})
METADATA_VERSIONS = frozenset({11, 12, 13})


class RawResponse:
    """The body of a response, undecoded. ``throttle_time_ms`` is what kafka-python looks at."""

    __slots__ = ("body", "throttle_time_ms", "version")

    def __init__(self, body: bytes, version: int) -> None:
        self.body = body
        self.version = version
        self.throttle_time_ms = int.from_bytes(body[:4], "big", signed=True)


class _RawResponseClass:
    """What kafka-python takes for a response class."""

    def __init__(self, version: int) -> None:
        self._version = version

    def parse_header(self, buffer: Any) -> Any:
        return ResponseHeader.decode(buffer, flexible=True)

    def decode(self, buffer: Any) -> RawResponse:
        return RawResponse(bytes(memoryview(buffer)[buffer.tell() :]), self._version)


class _RawConfigsHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return _select_response_class(self, DESCRIBE_CONFIGS_VERSIONS, super().get_response_class)


class _RawMetadataHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return _select_response_class(self, METADATA_VERSIONS, super().get_response_class)


class RawDescribeConfigsRequest(DescribeConfigsRequest, init=False):  # type: ignore[misc,call-arg]
    """A DescribeConfigsRequest answered with a RawResponse where the version allows it."""

    header_class = _RawConfigsHeader


class RawMetadataRequest(MetadataRequest, init=False):  # type: ignore[misc,call-arg]
    """A MetadataRequest answered with a RawResponse where the version allows it."""

    header_class = _RawMetadataHeader


def _select_response_class(
    header: Any, versions: frozenset[int], get_default_class: Callable[[], Any]
) -> Any:
    version = header.request_api_version
    return _RawResponseClass(version) if version in versions else get_default_class()
