"""The journal of a run in a shared state: immutable documents, one for each append."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_list, as_object, parse_json
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectConflict, write_certainly
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.engine.state.checksum import compute_checksum
from kdeclare.engine.state.port import Journal
from kdeclare.engine.state.problems import (
    build_corruption_error,
    build_journal_overtaken_error,
    is_corruption,
)
from kdeclare.engine.state.shared.documents import (
    join_document,
    list_parts,
    split_document,
    write_parts,
)

JOURNALS_FOLDER = "journals/"

_THREADS = 8
_HINT = "Restore the object from an earlier version or a backup."


def build_journal_key(run_id: str, number: int) -> str:
    """Return the storage key of an object of a run's journal. number: counted from 1."""
    return f"{JOURNALS_FOLDER}{run_id}/{number:06}.json"


def encode_batch(run_id: str, number: int, token: str, entries: Sequence[JsonValue]) -> bytes:
    """Encode journal entries that are written as one object.

    token: the token of the lease. It makes the bytes unique, so that a writer recognizes its own object.
    """
    document: dict[str, JsonValue] = {
        "run": run_id,
        "number": number,
        "token": token,
        "entries": list(entries),
    }
    body = json.dumps(document, separators=(",", ":")).encode()
    return b'{"sum":"%s","batch":%s}\n' % (compute_checksum(body), body)


def _decode(data: bytes, run_id: str, number: int, location: str) -> JsonObject:
    """Decode object ``number`` of a run's journal.

    Raises KdeclareError if the object is damaged, or belongs to another run or position.
    """
    body = data[len(b'{"sum":"') + 16 + len(b'","batch":') : -2]
    if data != b'{"sum":"%s","batch":%s}\n' % (compute_checksum(body), body):
        raise build_corruption_error(location, "its checksum does not match", _HINT)
    try:
        document = as_object(parse_json(body))
        as_list(document["entries"])
    except (ValueError, TypeError, KeyError, RecursionError) as cause:
        raise build_corruption_error(location, "it does not contain entries in JSON", _HINT) from cause
    if document.get("run") != run_id or document.get("number") != number:
        raise build_corruption_error(location, "it belongs to another run or position in the journal", _HINT)
    return document


def count_batches(objects: ConditionalObjects, run_id: str) -> int:
    """Return the number of objects in a journal. Raises KdeclareError if one of them is missing."""
    keys = objects.list_keys(f"{JOURNALS_FOLDER}{run_id}/")
    expected_keys = tuple(build_journal_key(run_id, number) for number in range(1, len(keys) + 1))
    if keys != expected_keys:
        missing = min(set(expected_keys) - set(keys))
        raise build_corruption_error(objects.get_location(missing), "it is missing", _HINT)
    return len(keys)


def read_batches(objects: ConditionalObjects, run_id: str) -> tuple[tuple[JsonValue, ...], ...]:
    """Return the entries of each object of a journal, in order.

    Raises KdeclareError if an object is missing or damaged.
    """
    numbers = range(1, count_batches(objects, run_id) + 1)
    if not numbers:
        return ()
    with ThreadPoolExecutor(min(_THREADS, len(numbers)), thread_name_prefix="journal") as pool:
        return tuple(pool.map(lambda number: _read_batch(objects, run_id, number), numbers))


def salvage_entries(objects: ConditionalObjects, run_id: str) -> tuple[tuple[JsonValue, ...], bool]:
    """Return the undamaged entries of a journal, and whether these are all entries."""
    keys = objects.list_keys(f"{JOURNALS_FOLDER}{run_id}/")
    entries: list[JsonValue] = []
    is_complete = True
    for number in (_parse_number(key) for key in keys):
        try:
            entries += _read_batch(objects, run_id, number)
        except KdeclareError as problem:
            if not is_corruption(problem):
                raise
            is_complete = False
    return tuple(entries), is_complete and len(keys) == max(map(_parse_number, keys), default=0)


def list_journal_parts(objects: ConditionalObjects, run_id: str) -> tuple[str, ...]:
    """Return the keys of the parts that the objects of a journal are split into.

    Each of these objects lists its parts. An object whose list is damaged is skipped.
    """
    parts: list[str] = []
    for key in objects.list_keys(f"{JOURNALS_FOLDER}{run_id}/"):
        stored = objects.get(key)
        with suppress(KdeclareError):
            parts += () if stored is None else list_parts(stored.data, key)
    return tuple(parts)


def _parse_number(key: str) -> int:
    """Return the number in the key of a journal object, counted from 1; 0 for any other key."""
    name = key.rpartition("/")[2].removesuffix(".json")
    return parse_whole_number(name) or 0


def _read_batch(objects: ConditionalObjects, run_id: str, number: int) -> tuple[JsonValue, ...]:
    return tuple(as_list(_read_document(objects, run_id, number)["entries"]))


def _read_token(objects: ConditionalObjects, run_id: str, number: int) -> JsonValue:
    """Return the token of the lease under which an object of a journal was written."""
    return _read_document(objects, run_id, number).get("token")


def _read_document(objects: ConditionalObjects, run_id: str, number: int) -> JsonObject:
    key = build_journal_key(run_id, number)
    stored, location = objects.get(key), objects.get_location(key)
    if stored is None:
        raise build_corruption_error(location, "it is missing", _HINT)
    return _decode(join_document(objects, stored.data, location), run_id, number, location)


class SharedJournal(Journal):
    """A `Journal` in a shared state.

    Two processes cannot both append: only one of them can create the object with the next number.
    """

    def __init__(
        self,
        objects: ConditionalObjects,
        run_id: str,
        *,
        number: int,
        token: str,
        check_lease: Callable[[], None],
    ) -> None:
        """Open a journal with ``number`` objects.

        token: the token of the lease that this process holds.
        check_lease: raises KdeclareError if this process lost the lease.
        """
        self._objects = objects
        self._run_id = run_id
        self._number = number
        self._token = token
        self._check_lease = check_lease
        self._is_closed = False

    @property
    def run_id(self) -> str:
        """The id of the run that the journal records."""
        return self._run_id

    def append_all(self, entries: Sequence[JsonValue]) -> None:
        """See `Journal.append_all`. Writes all entries to one object of the storage."""
        if self._is_closed:
            raise ValueError("the journal is closed")
        scrubbed_entries = [*map(SCRUBBER.scrub_json, entries)]
        while scrubbed_entries and not self._try_append(scrubbed_entries):
            pass

    def _try_append(self, entries: Sequence[JsonValue]) -> bool:
        """Write the next object. Return False if this process already wrote an object with the same number.

        This happens if an earlier write got no response: the caller got an error, but the object was
        written.
        """
        self._check_lease()
        number = self._number + 1
        data = encode_batch(self._run_id, number, self._token, entries)
        document = split_document(data, self._objects.max_object_bytes)
        write_parts(self._objects, document)
        if document.parts:
            self._check_lease()
        key = build_journal_key(self._run_id, number)
        is_own_write = False
        try:
            write_certainly(self._objects, key, document.data, None)
        except ObjectConflict:
            is_own_write = _read_token(self._objects, self._run_id, number) == self._token
            if not is_own_write:
                raise build_journal_overtaken_error(self._run_id) from None
        self._number = number
        return not is_own_write

    def close(self) -> None:
        """See `Journal.close`."""
        self._is_closed = True
