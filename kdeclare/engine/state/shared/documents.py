"""Store documents of any size as objects of limited size.

A document that does not exceed the limit is stored as one object. A larger document is split into parts, each
an object of its own, and the object of the document lists the parts. A part that two versions of a document
share is written once. Parts end after lines that are chosen by their checksums, not at fixed positions, so
that one changed line changes one part.
"""

import hashlib
import json
import secrets
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import as_list, as_object, as_text, parse_json
from kdeclare.core.storage.conditional_objects import ConditionalObjects, create_once
from kdeclare.engine.state.problems import build_corruption_error

PARTS_FOLDER = "parts/"

MAX_PART_BYTES = 4 * 1024 * 1024
"""The maximum size of a part in bytes. It is small, so that a small change rewrites little data."""

_PART_LIST = b'{"kdeclare-parts":'
_CUT_MASK = 0x3FF
"""If these bits of a line's checksum are zero (one line in 1,024), the line ends its part.

A part that is still small does not end there.
"""
_THREADS = 8
_HINT = "Restore the object from an earlier version or a backup."


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """The content of the object that represents a document, and the parts to write before this object."""

    data: bytes
    parts: dict[str, bytes]


def split_document(text: bytes, max_object_bytes: int, known_parts: Sequence[str] = ()) -> WrittenDocument:
    """Split a document into parts if it is larger than ``max_object_bytes``.

    known_parts: the keys of parts that certainly exist. The new document reuses them. All other parts get new
        keys, because otherwise a process that lost its lease could delete a part that the new document needs.
    """
    if len(text) <= max_object_bytes and not text.startswith(_PART_LIST):
        return WrittenDocument(text, {})
    limit = min(MAX_PART_BYTES, max_object_bytes)
    known = {key.removeprefix(PARTS_FOLDER).partition("-")[0]: key for key in known_parts}
    nonce = secrets.token_hex(4)
    keys: list[str] = []
    parts: dict[str, bytes] = {}
    for chunk in _cut(text, limit):
        digest = hashlib.sha256(chunk).hexdigest()
        key = known.get(digest) or f"{PARTS_FOLDER}{digest}-{nonce}"
        if digest not in known:
            parts[key] = chunk
        keys.append(key)
    return WrittenDocument(_PART_LIST + json.dumps(keys).encode() + b"}\n", parts)


def write_parts(objects: ConditionalObjects, document: WrittenDocument) -> None:
    """Write the parts of a document, several at a time. Raises KdeclareError."""
    if not document.parts:
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="parts") as pool:
        list(pool.map(lambda item: create_once(objects, dict([item])), document.parts.items()))


def list_parts(data: bytes, location: str) -> tuple[str, ...]:
    """Return the keys of the parts of a document, given the content of its object.

    Raises KdeclareError if the list is damaged.
    """
    if not data.startswith(_PART_LIST):
        return ()
    try:
        keys = tuple(map(as_text, as_list(as_object(parse_json(data))["kdeclare-parts"])))
    except (ValueError, TypeError, KeyError, RecursionError) as cause:
        reason = f"it does not list the parts of a document ({cause})"
        raise build_corruption_error(location, reason, _HINT) from cause
    if not all(key.startswith(PARTS_FOLDER) for key in keys):
        raise build_corruption_error(location, "it lists objects that are not parts of a document", _HINT)
    return keys


def join_document(objects: ConditionalObjects, data: bytes, location: str) -> bytes:
    """Return a whole document, given the content of its object.

    Raises KdeclareError if a part is missing or damaged.
    """
    return b"".join(read_chunks(objects, data, location))


def read_chunks(objects: ConditionalObjects, data: bytes, location: str) -> Iterator[bytes]:
    """Yield a document in chunks, in order. Raises KdeclareError like `join_document`."""
    keys = list_parts(data, location)
    if not keys:
        if not data.startswith(_PART_LIST):
            yield data
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="parts") as pool:
        for start in range(0, len(keys), _THREADS):
            yield from pool.map(lambda key: _read_part(objects, key), keys[start : start + _THREADS])


def _read_part(objects: ConditionalObjects, key: str) -> bytes:
    stored = objects.get(key)
    if stored is None:
        raise build_corruption_error(objects.get_location(key), "it is missing", _HINT)
    if hashlib.sha256(stored.data).hexdigest() != key.removeprefix(PARTS_FOLDER).partition("-")[0]:
        raise build_corruption_error(objects.get_location(key), "its checksum does not match", _HINT)
    return stored.data


def _cut(text: bytes, limit: int) -> Iterator[bytes]:
    lines: list[bytes] = []
    size = 0
    for line in text.splitlines(keepends=True):
        if size + len(line) > limit:
            yield from _cut_lines(lines, limit)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
        if size > limit // 8 and zlib.crc32(line) & _CUT_MASK == 0:
            yield from _cut_lines(lines, limit)
            lines, size = [], 0
    yield from _cut_lines(lines, limit)


def _cut_lines(lines: Sequence[bytes], limit: int) -> Iterator[bytes]:
    """Yield the joined lines as one chunk or, if they exceed the limit, as several chunks."""
    chunk = b"".join(lines)
    for start in range(0, len(chunk), limit):
        yield chunk[start : start + limit]
