"""Decode batches of records (KIP-98): their sizes, and whether records have a key.

Keys and values are not decoded.
"""

import struct
from collections.abc import Iterator

from kdeclare.providers.kafka.client.decoding.decompression import UnreadableRecordsError, decompress_start
from kdeclare.providers.kafka.request_values import RecordBatch

_HEADER = struct.Struct(">qiibIhiqqqhii")
"""The header of a batch (DefaultRecordBatch): base offset, length, leader epoch, magic, …, record count."""
_LENGTH = struct.Struct(">8xi")
_MAGIC_POS = 16
_LENGTH_FROM = 12
"""The number of bytes of a batch that its length field does not count. Size limits include these bytes."""
_CURRENT_MAGIC = 2
_CODEC_MASK, _CONTROL_FLAG = 0x07, 0x20
_MAX_DECOMPRESSED_BYTES = 1024 * 1024
"""The maximum number of bytes of a batch to decompress.

These bytes are enough to find out whether records have keys, because a key precedes the value.
"""
_MAX_VARINT_BYTES = 10


def decode_batches(data: bytes, max_records: int) -> tuple[RecordBatch, ...]:
    """Decode the batches of one partition in a Fetch response. The last batch can be incomplete.

    Control batches, and batches that compaction has emptied, are omitted. max_records: the maximum number of
    records to inspect.
    """
    batches: list[RecordBatch] = []
    pos, left = 0, max_records
    while pos + _MAGIC_POS < len(data):
        (length,) = _LENGTH.unpack_from(data, pos)
        size = _LENGTH_FROM + length
        if size <= _MAGIC_POS:
            break  # not a batch: nothing after it can be decoded
        batch = _decode_batch(data[pos : pos + size], size, left)
        if batch is not None:
            batches.append(batch)
            left -= batch.inspected
        pos += size
    return tuple(batches)


def _decode_batch(data: bytes, size: int, max_records: int) -> RecordBatch | None:
    """Decode one batch. data: the batch, or the part of it that was received."""
    if data[_MAGIC_POS] < _CURRENT_MAGIC:
        return RecordBatch(size, 1, problem="records have the format of Kafka before 0.11")
    if len(data) < _HEADER.size:
        return None
    _, _, _, _, _, attributes, *_, records = _HEADER.unpack_from(data)
    if attributes & _CONTROL_FLAG or records <= 0:
        return None
    if len(data) < size or max_records <= 0:
        return RecordBatch(size, records)
    content, codec_id = data[_HEADER.size :], attributes & _CODEC_MASK
    try:
        if codec_id:
            content = decompress_start(codec_id, content, _MAX_DECOMPRESSED_BYTES)
        has_key = list(_find_keys(content, min(records, max_records)))
    except UnreadableRecordsError as error:
        return RecordBatch(size, records, problem=str(error))
    return RecordBatch(size, records, len(has_key), sum(has_key))


def _find_keys(content: bytes, records: int) -> Iterator[bool]:
    """For each record, yield whether it has a key.

    Stop after ``records`` records, or at the end of ``content``.
    """
    pos = 0
    try:
        for _ in range(records):
            length, start = _read_varint(content, pos)
            if length <= 0:
                raise UnreadableRecordsError("a batch has an invalid record")
            _, key_pos = _read_varint(content, start + 1)  # the timestamp, after the attributes
            _, key_pos = _read_varint(content, key_pos)  # the offset
            key_length, _ = _read_varint(content, key_pos)
            yield key_length >= 0
            pos = start + length
    except IndexError:
        return  # the end of what was decompressed


def _read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Read a zigzag varint, and return it with the position after it. Raises IndexError at the end."""
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        byte = data[pos + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), pos + index + 1
    raise UnreadableRecordsError("a batch has an invalid record")
