"""The store of a state that a team shares, in any object storage that supports conditional writes."""

import json
import secrets
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonValue, parse_json
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.storage.conditional_objects import (
    ConditionalObjects,
    ObjectConflict,
    StoredObject,
    write_certainly,
)
from kdeclare.engine.state.document import decode_state, encode_stored_state, validate_next_state
from kdeclare.engine.state.port import is_run_id
from kdeclare.engine.state.problems import (
    build_corruption_error,
    build_lost_update_error,
    build_run_abandoned_error,
    build_run_exists_error,
    build_unknown_run_error,
)
from kdeclare.engine.state.shared.cached_objects import PLANS_FOLDER, CachedObjects
from kdeclare.engine.state.shared.documents import (
    join_document,
    list_parts,
    read_chunks,
    split_document,
    write_parts,
)
from kdeclare.engine.state.shared.journal import (
    JOURNALS_FOLDER,
    SharedJournal,
    count_batches,
    list_journal_parts,
    read_batches,
    salvage_entries,
)
from kdeclare.engine.state.shared.lease import Lease, LeaseStatus, LeaseTiming
from kdeclare.engine.state.shared.probe import probe_storage

STATE_KEY = "state.json"
BACKUP_KEY = "state.json.backup"
LOSSES_FOLDER = "losses/"
ABANDONED_FOLDER = "abandoned/"
SUMMARIES_FOLDER = "summaries/"
EFFECTS_FOLDER = "effects/"

_THREADS = 8

_SUFFIX = ".json"


class SharedStore:
    """A `StateStore` on `ConditionalObjects`, for one project in one environment.

    A run exists as soon as its plan exists. The plan is one object, so a run is never recorded only in
    part. The journal of a new run is empty.
    """

    def __init__(
        self,
        open_objects: Callable[[], ConditionalObjects],
        timing: LeaseTiming = LeaseTiming(),  # noqa: B008
    ) -> None:
        """Create a store. The storage is opened when it is first used, and closed with this object."""
        self._open_objects = open_objects
        self._timing = timing
        self._opened: tuple[ConditionalObjects, Lease] | None = None
        self._decoded: tuple[bytes, State] | None = None  # a command reads the same state several times
        self._is_takeover = False

    @property
    def _objects(self) -> ConditionalObjects:
        return self._open()[0]

    @property
    def _lease(self) -> Lease:
        return self._open()[1]

    def _open(self) -> tuple[ConditionalObjects, Lease]:
        if self._opened is None:
            objects = CachedObjects(self._open_objects())
            self._opened = (objects, Lease(objects, self._timing))
            weakref.finalize(self, objects.close)
        return self._opened

    def close(self) -> None:
        """See `StateStore.close`."""
        if self._opened is not None and not self._lease.token:
            self._opened[0].close()
            self._opened = None

    def read(self) -> State | None:
        """See `StateStore.read`."""
        stored = self._objects.get(STATE_KEY)
        return None if stored is None else self._decode(stored)

    def _decode(self, stored: StoredObject) -> State:
        location = self._objects.get_location(STATE_KEY)
        decoded = self._decoded
        if decoded is not None and decoded[0] == stored.data:
            return decoded[1]
        state = decode_state(join_document(self._objects, stored.data, location), location)
        self._decoded = (stored.data, state)
        return state

    def write(self, state: State) -> None:
        """See `StateStore.write`."""
        stored = self._objects.get(STATE_KEY)
        validate_next_state(None if stored is None else self._decode(stored), state)
        self._replace_state(stored, state)

    def overwrite(self, state: State) -> None:
        """See `StateStore.overwrite`."""
        self._replace_state(self._objects.get(STATE_KEY), state)

    def _replace_state(self, stored: StoredObject | None, state: State) -> None:
        objects = self._objects
        old_parts = () if stored is None else _list_readable_parts(stored.data)
        document = split_document(encode_stored_state(state), objects.max_object_bytes, old_parts)
        self._lease.check()
        write_parts(objects, document)
        unused_parts = set(self._back_up(stored)) - set(old_parts)
        self._lease.check()
        try:
            write_certainly(objects, STATE_KEY, document.data, None if stored is None else stored.version)
        except ObjectConflict:
            raise build_lost_update_error("another process wrote it at the same time") from None
        self._decoded = (document.data, state)
        objects.delete(sorted(unused_parts))

    def _back_up(self, stored: StoredObject | None) -> tuple[str, ...]:
        """Store ``stored`` as the backup. Return the keys of the parts of the previous backup."""
        if stored is None:
            return ()
        objects = self._objects
        backup = objects.get(BACKUP_KEY)
        try:
            if backup is None:
                objects.create(BACKUP_KEY, stored.data)
            elif backup.data != stored.data:
                objects.replace(BACKUP_KEY, stored.data, backup.version)
        except ObjectConflict:
            return ()  # writing the state itself detects a lost update
        return () if backup is None else _list_readable_parts(backup.data)

    def lock(self, what: str, progress: Progress = ignore_progress) -> AbstractContextManager[None]:
        """See `StateStore.lock`."""
        return self._hold_lock(what, progress)

    @contextmanager
    def _hold_lock(self, command: str, progress: Progress) -> Iterator[None]:
        if self._lease.read_record() is None:
            probe_storage(self._objects)
        with self._lease.hold(command, progress) as is_takeover:
            self._is_takeover = is_takeover
            yield

    @property
    def is_takeover(self) -> bool:
        """See `StateStore.is_takeover`."""
        return self._is_takeover

    def check_lock(self) -> None:
        """See `StateStore.check_lock`."""
        self._lease.check()

    def read_holder(self) -> LockInfo | None:
        """See `StateStore.read_holder`."""
        record = self._lease.read_record()
        if record is None or record.status is not LeaseStatus.HELD:
            return None
        return replace(record.holder, renewed=record.written)

    def break_lock(self, holder: LockInfo) -> None:
        """See `StateStore.break_lock`."""
        self._lease.break_holder(replace(holder, renewed=None))

    def begin_run(self, run_id: str, plan_text: str) -> SharedJournal:
        """See `StateStore.begin_run`. Raises ValueError for an id that cannot be a key."""
        if not is_run_id(run_id):
            raise ValueError(f"'{run_id}' is not a run id")
        objects = self._objects
        document = split_document(plan_text.encode(), objects.max_object_bytes)
        self._lease.check()
        write_parts(objects, document)
        self._lease.check()
        try:
            objects.create(_build_plan_key(run_id), document.data)
        except ObjectConflict:
            # The storage can have repeated the creation after a lost response.
            stored = objects.get(_build_plan_key(run_id))
            if stored is None or stored.data != document.data or count_batches(objects, run_id):
                raise build_run_exists_error(run_id) from None
        return self._open_journal(run_id, 0)

    def open_run(self, run_id: str) -> SharedJournal:
        """See `StateStore.open_run`."""
        self._get_plan_object(run_id)
        return self._open_journal(run_id, len(read_batches(self._objects, run_id)))

    def _open_journal(self, run_id: str, number: int) -> SharedJournal:
        lease = self._lease
        return SharedJournal(self._objects, run_id, number=number, token=lease.token, check_lease=lease.check)

    def report_loss(self, run_id: str, report: JsonValue) -> None:
        """See `StateStore.report_loss`."""
        self._objects.create(
            f"{LOSSES_FOLDER}{run_id}/{secrets.token_hex(4)}.json", json.dumps(report).encode()
        )

    def read_losses(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.read_losses`. Damaged reports are ignored, because no decision depends on them."""
        reports: list[JsonValue] = []
        for key in self._objects.list_keys(f"{LOSSES_FOLDER}{run_id}/"):
            stored = self._objects.get(key)
            with suppress(ValueError, RecursionError):
                reports += [] if stored is None else [parse_json(stored.data)]
        return tuple(reports)

    def abandon_run(self, run_id: str, record: JsonValue) -> None:
        """See `StateStore.abandon_run`."""
        self._get_plan_object(run_id)
        key = _build_abandonment_key(run_id)
        if self._objects.get(key) is not None:
            raise build_run_abandoned_error(run_id)
        self._lease.check()
        try:
            write_certainly(self._objects, key, json.dumps(record).encode(), None)
        except ObjectConflict:
            raise build_run_abandoned_error(run_id) from None

    def list_abandoned(self) -> frozenset[str]:
        """See `StateStore.list_abandoned`."""
        return frozenset(self._list_run_ids(ABANDONED_FOLDER))

    def read_abandonment(self, run_id: str) -> JsonValue:
        """See `StateStore.read_abandonment`."""
        stored = self._objects.get(_build_abandonment_key(run_id))
        with suppress(ValueError, RecursionError):
            return None if stored is None else parse_json(stored.data)
        return None

    def write_summary(self, run_id: str, summary: JsonValue) -> None:
        """See `StateStore.write_summary`."""
        self._replace_note(run_id, _build_summary_key(run_id), summary)

    def _replace_note(self, run_id: str, key: str, note: JsonValue) -> None:
        """Write data about a run that is used for display only.

        If another process writes the data first, keep the version of that process.
        """
        self._get_plan_object(run_id)
        stored = self._objects.get(key)
        with suppress(ObjectConflict):  # another process wrote about the same run
            data = json.dumps(note).encode()
            write_certainly(self._objects, key, data, None if stored is None else stored.version)

    def read_summaries(self, run_ids: Sequence[str]) -> Mapping[str, JsonValue]:
        """See `StateStore.read_summaries`."""
        if not run_ids:
            return {}
        objects = self._objects
        with ThreadPoolExecutor(min(_THREADS, len(run_ids)), thread_name_prefix="summaries") as pool:
            found = pool.map(lambda run_id: objects.get(_build_summary_key(run_id)), run_ids)
        summaries: dict[str, JsonValue] = {}
        for run_id, stored in zip(run_ids, found, strict=True):
            with suppress(ValueError, RecursionError):
                if stored is not None:
                    summaries[run_id] = parse_json(stored.data)
        return summaries

    def write_effects(self, run_id: str, effects: JsonValue) -> None:
        """See `StateStore.write_effects`."""
        self._replace_note(run_id, _build_effects_key(run_id), effects)

    def read_effects(self, run_id: str) -> JsonValue:
        """See `StateStore.read_effects`."""
        stored = self._objects.get(_build_effects_key(run_id))
        with suppress(ValueError, RecursionError):
            return None if stored is None else parse_json(stored.data)
        return None

    def remove_run(self, run_id: str) -> None:
        """See `StateStore.remove_run`. The plan is removed first, because the run exists until then."""
        objects, plan_key = self._objects, _build_plan_key(run_id)
        plan = self._get_plan_object(run_id)
        keys = [
            *objects.list_keys(f"{JOURNALS_FOLDER}{run_id}/"),
            *objects.list_keys(f"{LOSSES_FOLDER}{run_id}/"),
        ]
        parts = {*_list_readable_parts(plan.data), *list_journal_parts(objects, run_id)}
        self._lease.check()
        objects.delete([plan_key])
        self._lease.check()
        notes = [build(run_id) for build in (_build_summary_key, _build_effects_key, _build_abandonment_key)]
        objects.delete([*keys, *notes, *sorted(parts)])

    def runs(self) -> tuple[str, ...]:
        """See `StateStore.runs`."""
        return tuple(sorted(self._list_run_ids(PLANS_FOLDER)))

    def _list_run_ids(self, folder: str) -> set[str]:
        """Return the ids of the runs that have an object in a folder."""
        names = (key.removeprefix(folder).removesuffix(_SUFFIX) for key in self._objects.list_keys(folder))
        return set(filter(is_run_id, names))

    def get_run_location(self, run_id: str) -> str:
        """See `StateStore.get_run_location`."""
        return self._objects.get_location(_build_plan_key(run_id))

    def read_plan_text(self, run_id: str) -> str:
        """See `StateStore.read_plan_text`."""
        stored, location = self._get_plan_object(run_id), self.get_run_location(run_id)
        try:
            return join_document(self._objects, stored.data, location).decode()
        except UnicodeDecodeError as cause:
            raise build_corruption_error(
                location, "it is not UTF-8 text", "Restore the object from a backup."
            ) from cause

    def read_plan_lines(self, run_id: str) -> Iterator[str]:
        """See `StateStore.read_plan_lines`."""
        stored, location = self._get_plan_object(run_id), self.get_run_location(run_id)
        rest = b""
        for chunk in read_chunks(self._objects, stored.data, location):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") + "\n" for line in lines)
        if rest:
            yield rest.decode(errors="replace")

    def entries(self, run_id: str) -> tuple[JsonValue, ...]:
        """See `StateStore.entries`."""
        self._get_plan_object(run_id)
        return tuple(entry for batch in read_batches(self._objects, run_id) for entry in batch)

    def salvage_entries(self, run_id: str) -> tuple[tuple[JsonValue, ...], bool]:
        """See `StateStore.salvage_entries`."""
        self._get_plan_object(run_id)
        return salvage_entries(self._objects, run_id)

    def _get_plan_object(self, run_id: str) -> StoredObject:
        stored = self._objects.get(_build_plan_key(run_id)) if is_run_id(run_id) else None
        if stored is None:
            raise build_unknown_run_error(run_id)
        return stored


def _build_plan_key(run_id: str) -> str:
    return f"{PLANS_FOLDER}{run_id}{_SUFFIX}"


def _build_summary_key(run_id: str) -> str:
    return f"{SUMMARIES_FOLDER}{run_id}{_SUFFIX}"


def _build_effects_key(run_id: str) -> str:
    return f"{EFFECTS_FOLDER}{run_id}{_SUFFIX}"


def _list_readable_parts(data: bytes) -> tuple[str, ...]:
    """Return the keys of the parts of a document; none if the list of parts is damaged."""
    try:
        return list_parts(data, "")
    except KdeclareError:
        return ()


def _build_abandonment_key(run_id: str) -> str:
    return f"{ABANDONED_FOLDER}{run_id}{_SUFFIX}"
