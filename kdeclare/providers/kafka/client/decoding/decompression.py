"""Decompress the beginning of record batches, with the libraries that kafka-python uses.

Only the beginning is decompressed, so that a batch of a few kilobytes cannot fill the memory.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from kafka import codec

from kdeclare.core.frozen_dataclass import dataclass

_GZIP_WINDOW = 31  # zlib: the largest window, with a gzip header
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
"""The first bytes of snappy-java's format. Some other clients send a single block without this header."""
_XERIAL_HEADER_BYTES = 16
_MAX_BLOCK_BYTES = 16 * 1024 * 1024
"""The maximum size of a Snappy block that is decompressed. snappy-java writes blocks of 32 KiB."""


class UnreadableRecordsError(Exception):
    """Raised if records cannot be decompressed or decoded. The message never quotes records."""


def decompress_start(codec_id: int, data: bytes, limit: int) -> bytes:
    """Decompress the beginning of ``data``. Raises UnreadableRecordsError.

    codec_id: the compression type in the attributes of a batch.
    limit: the approximate number of decompressed bytes to return.
    """
    found = _CODECS.get(codec_id)
    if found is None:
        raise UnreadableRecordsError(f"kdeclare does not know the compression type {codec_id}")
    if not found.is_available():
        raise UnreadableRecordsError(
            f"records are compressed with {found.name}, and the Python package {found.package} is not "
            "installed"
        )
    try:
        return found.decompress(data, limit)
    except Exception:  # noqa: BLE001  each library has errors of its own, and their texts are not needed
        raise UnreadableRecordsError(f"a batch cannot be decompressed with {found.name}") from None


@dataclass(frozen=True, slots=True)
class _Codec:
    """A compression type. package: the Python package of its library."""

    name: str
    package: str
    is_available: Callable[[], bool]
    decompress: Callable[[bytes, int], bytes]


def _decompress_gzip(data: bytes, limit: int) -> bytes:
    return zlib.decompressobj(_GZIP_WINDOW).decompress(data, limit)


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_block(data)
    blocks: list[bytes] = []
    size, pos = 0, _XERIAL_HEADER_BYTES
    while pos < len(data) and size < limit:
        end = pos + 4 + int.from_bytes(data[pos : pos + 4], "big")
        blocks.append(_decompress_block(data[pos + 4 : end]))
        size += len(blocks[-1])
        pos = end
    return b"".join(blocks)


def _decompress_block(block: bytes) -> bytes:
    """Decompress a Snappy block, which begins with its decompressed size (a varint)."""
    size = sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(_take_varint(block)))
    if size > _MAX_BLOCK_BYTES:
        raise ValueError("the block is too large")
    decompressed: bytes = _snappy.decompress(block)
    return decompressed


def _take_varint(data: bytes) -> bytes:
    for index in range(len(data)):
        if data[index] < 0x80:
            return data[: index + 1]
    raise ValueError("a varint has no end")


def _decompress_lz4(data: bytes, limit: int) -> bytes:
    decompressed: bytes = _lz4.LZ4FrameDecompressor().decompress(data, max_length=limit)
    return decompressed


def _decompress_zstd(data: bytes, limit: int) -> bytes:
    with _zstd.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        decompressed: bytes = reader.read(limit)
    return decompressed


# kafka-python's own functions decompress everything at once. A library that is not installed is None.
_snappy: Any = codec.snappy
_lz4: Any = codec.lz4
_zstd: Any = codec.zstd

_CODECS: Mapping[int, _Codec] = {
    1: _Codec("gzip", "zlib", lambda: True, _decompress_gzip),
    2: _Codec("snappy", "python-snappy", lambda: _snappy is not None, _decompress_snappy),
    3: _Codec("lz4", "lz4", lambda: _lz4 is not None, _decompress_lz4),
    4: _Codec("zstd", "zstandard", lambda: _zstd is not None, _decompress_zstd),
}
"""The codecs by compression type, which is a number in the attributes of a batch."""
