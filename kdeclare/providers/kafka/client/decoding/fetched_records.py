"""Decode Fetch responses of version 12 about one partition, without decoding its records."""

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from kafka.protocol.api_header import RequestHeader
from kafka.protocol.consumer.fetch import FetchRequest

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.client.decoding.wire_format import (
    MalformedResponse,
    RawResponse,
    decode_all,
    read_count,
    read_uvarint,
    select_response_class,
    skip_string,
    skip_tags,
)

FETCH_VERSIONS = frozenset({12})

_TOP_BYTES = 10  # throttle time, error code, session id
_INDEX_BYTES, _ERROR_BYTES, _OFFSET_BYTES = 4, 2, 8
_ABORTED_BYTES = 16  # producer id, first offset
_READ_REPLICA_BYTES = 4

# Minimum sizes of repeated items in bytes: the fixed fields, and one byte per string, array and tag section.
_MIN_TOPIC_BYTES = 3
_MIN_PARTITION_BYTES = 37
_MIN_ABORTED_BYTES = 17


class _RawFetchHeader(RequestHeader, init=False):  # type: ignore[misc,call-arg]
    def get_response_class(self) -> Any:
        return select_response_class(self, FETCH_VERSIONS, super().get_response_class)


class RawFetchRequest(FetchRequest, init=False):  # type: ignore[misc,call-arg]
    """A FetchRequest that returns a RawResponse for the versions that kdeclare decodes itself.

    kafka-python logs the bytes of responses that it cannot decode, and these can contain records.
    """

    header_class = _RawFetchHeader


@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """The records of one partition as bytes, or the error of the partition.

    high_watermark: the offset of the first record that consumers cannot read yet.
    """

    error_code: int
    high_watermark: int
    records: bytes = field(repr=False)


def decode_fetched_records(response: Any) -> FetchedRecords:
    """Decode a RawResponse about one partition. Raises MalformedResponse."""
    assert isinstance(response, RawResponse)
    found = decode_all(lambda: _decode_bytes(response.body))
    if len(found) != 1:
        raise MalformedResponse(f"{len(found)} partitions instead of one")
    return found[0]


def _decode_bytes(data: bytes) -> Iterable[FetchedRecords]:
    error_code = _read_int(data, 4, _ERROR_BYTES)
    if error_code:
        yield FetchedRecords(error_code, -1, b"")
        return
    topics, pos = read_count(data, _TOP_BYTES, _MIN_TOPIC_BYTES)
    for _ in range(topics):
        partitions, pos = read_count(data, skip_string(data, pos), _MIN_PARTITION_BYTES)
        for _ in range(partitions):
            error_pos = pos + _INDEX_BYTES
            watermark_pos = error_pos + _ERROR_BYTES
            # after the high watermark: the last stable offset, and the start of the log
            aborted, pos = read_count(data, watermark_pos + 3 * _OFFSET_BYTES, _MIN_ABORTED_BYTES)
            for _ in range(aborted):
                pos = skip_tags(data, pos + _ABORTED_BYTES)
            size, pos = read_uvarint(data, pos + _READ_REPLICA_BYTES)
            end = pos + max(0, size - 1)
            if end > len(data):
                raise MalformedResponse("records extend beyond the end of the response")
            yield FetchedRecords(
                _read_int(data, error_pos, _ERROR_BYTES),
                _read_int(data, watermark_pos, _OFFSET_BYTES),
                data[pos:end],
            )
            pos = skip_tags(data, end)
        pos = skip_tags(data, pos)


def _read_int(data: bytes, pos: int, size: int) -> int:
    return int.from_bytes(data[pos : pos + size], "big", signed=True)
