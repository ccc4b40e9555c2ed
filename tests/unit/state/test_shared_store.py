"""What shared stores do when requests to the storage fail, or when several processes use them."""

import hashlib
import threading
from dataclasses import replace

import pytest

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.state import State
from kdeclare.engine.executor.entries import FinishLine, RunLine, as_json
from kdeclare.engine.executor.recovery import find_missed_runs, find_unfinished_runs
from kdeclare.engine.state.shared.documents import PARTS_FOLDER, split_document
from kdeclare.engine.state.shared.journal import build_journal_key
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.memory_objects import MemoryObjects, Moment, Request
from kdeclare.engine.state.shared.store import ABANDONED_FOLDER, BACKUP_KEY, STATE_KEY, SharedStore
from kdeclare.providers.kafka.topic.record import TopicRecord

FIRST = State("lineage-1", 1, "cluster-1", {})
NO_RESPONSE = KdeclareError(error("state-storage", "No response", "The storage does not respond."))


@pytest.fixture
def objects() -> MemoryObjects:
    return MemoryObjects(4000)


@pytest.fixture
def store(objects: MemoryObjects) -> SharedStore:
    return SharedStore(lambda: objects, LeaseTiming(5.0))


def fail_once(objects: MemoryObjects, failing_request: Request, moment: Moment) -> None:
    """Let the next request of this type fail before or after its effect."""

    def fail(request: Request, key: str, current_moment: Moment) -> None:
        if (request, current_moment) == (failing_request, moment):
            objects.on_request = lambda *_: None
            raise NO_RESPONSE

    objects.on_request = fail


def test_append_without_response_is_no_conflict_for_the_next_append(
    objects: MemoryObjects, store: SharedStore
) -> None:
    with store.lock("test"), store.begin_run("r1", "{}") as journal:
        journal.append(1)
        fail_once(objects, "create", "after")
        with pytest.raises(KdeclareError):
            journal.append(2)
        fail_once(objects, "create", "before")
        with pytest.raises(KdeclareError):
            journal.append(3)
        journal.append(4)
    assert store.entries("r1") == (1, 2, 4)


def test_journal_that_another_process_continued_is_refused(objects: MemoryObjects) -> None:
    first, second = (SharedStore(lambda: objects, LeaseTiming(5.0)) for _ in range(2))
    with first.lock("test"), first.begin_run("r1", "{}") as journal:
        journal.append(1)
        with second.open_run("r1") as other_journal:
            other_journal.append(2)
        with pytest.raises(KdeclareError) as caught:
            journal.append(3)
    assert caught.value.exit_code is ExitCode.LOCKED
    assert caught.value.diagnostics[0].code == "journal-overtaken"
    assert first.entries("r1") == (1, 2)


def test_state_that_another_process_wrote_meanwhile_is_kept(objects: MemoryObjects) -> None:
    first, second = (SharedStore(lambda: objects) for _ in range(2))
    first.write(FIRST)

    def overtake(request: Request, key: str, moment: Moment) -> None:
        if (request, key, moment) == ("replace", STATE_KEY, "before"):
            objects.on_request = lambda *_: None
            second.write(replace(FIRST, serial=2, cluster_id="other"))

    objects.on_request = overtake
    with pytest.raises(KdeclareError) as caught:
        first.write(replace(FIRST, serial=2))
    assert caught.value.diagnostics[0].code == "state-overtaken"
    assert first.read() == replace(FIRST, serial=2, cluster_id="other")


def make_state(serial: int, changed: int = 0) -> State:
    records = {f"Topic/t{number:04}": TopicRecord(partitions=1) for number in range(500)}
    return State("l", serial, "c", {**records, f"Topic/t{changed:04}": TopicRecord(partitions=serial)})


def test_previous_state_is_kept_and_unused_parts_are_deleted(
    objects: MemoryObjects, store: SharedStore
) -> None:
    for serial in range(1, 8):
        store.write(make_state(serial))
    assert store.read() == make_state(7)
    backup = SharedStore(lambda: objects)
    stored = objects.get(BACKUP_KEY)
    current = objects.get(STATE_KEY)
    assert stored is not None
    assert current is not None
    used = {part for data in (stored.data, current.data) for part in _list_part_names(data)}
    assert set(objects.list_keys(PARTS_FOLDER)) == used
    objects.replace(STATE_KEY, stored.data, current.version)
    assert backup.read() == make_state(6)


def _list_part_names(data: bytes) -> list[str]:
    return [word for word in data.decode().split('"') if word.startswith(PARTS_FOLDER)]


def test_one_changed_resource_rewrites_few_parts() -> None:
    lines = [b'{"Topic/t%05d": {"configs": {}, "partitions": 1}}\n' % number for number in range(20_000)]
    first = split_document(b"".join(lines), 100_000)
    lines[10_000] = b'{"Topic/t10000": {"configs": {"retention.ms": "1"}, "partitions": 1}}\n'
    second = split_document(b"".join(lines), 100_000, list(first.parts))
    assert len(first.parts) > 9
    assert len(second.parts) <= 2
    assert max(map(len, first.parts.values())) <= 100_000


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_damaged_part_is_named(objects: MemoryObjects, store: SharedStore, damage: str) -> None:
    store.write(make_state(1))
    part = objects.list_keys(PARTS_FOLDER)[1]
    stored = objects.get(part)
    assert stored is not None
    if damage == "missing":
        objects.delete([part])
    else:
        objects.replace(part, stored.data[:-5] + b"?" + stored.data[-4:], stored.version)
    with pytest.raises(KdeclareError) as caught:
        SharedStore(lambda: objects).read()
    assert caught.value.diagnostics[0].code == "state-corrupt"
    assert part in caught.value.diagnostics[0].detail


@pytest.mark.parametrize("position", range(0, 60, 7))
def test_every_flipped_byte_of_a_journal_is_noticed(
    objects: MemoryObjects, store: SharedStore, position: int
) -> None:
    with store.begin_run("r1", "{}") as journal:
        journal.append({"begin": ["a"]})
    key = build_journal_key("r1", 1)
    stored = objects.get(key)
    assert stored is not None
    flipped = bytearray(stored.data)
    flipped[position] ^= 1
    objects.replace(key, bytes(flipped), stored.version)
    with pytest.raises(KdeclareError) as caught:
        SharedStore(lambda: objects).entries("r1")
    assert caught.value.diagnostics[0].code == "state-corrupt"
    assert key in caught.value.diagnostics[0].detail


def test_missing_object_of_a_journal_is_noticed(objects: MemoryObjects, store: SharedStore) -> None:
    with store.begin_run("r1", "{}") as journal:
        for entry in range(3):
            journal.append(entry)
    objects.delete([build_journal_key("r1", 2)])
    with pytest.raises(KdeclareError) as caught:
        store.entries("r1")
    assert build_journal_key("r1", 2) in caught.value.diagnostics[0].detail


@pytest.mark.slow
def test_many_processes_share_one_state_without_losing_a_write(objects: MemoryObjects) -> None:
    """Each process waits for the lock, reads the state, and writes its own change."""
    stores = [SharedStore(lambda: objects, LeaseTiming(5.0)) for _ in range(4)]

    def write_ten(store: SharedStore) -> None:
        written = 0
        while written < 10:
            try:
                with store.lock("test"):
                    state = store.read()
                    serial = 1 if state is None else state.serial + 1
                    store.write(replace(FIRST, serial=serial))
                    written += 1
            except KdeclareError as problem:
                if problem.exit_code is not ExitCode.LOCKED:
                    raise

    threads = [threading.Thread(target=write_ten, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    state = stores[0].read()
    assert state is not None
    assert state.serial == 40


def test_undamaged_objects_of_a_journal_are_salvaged(objects: MemoryObjects, store: SharedStore) -> None:
    with store.lock("test"), store.begin_run("r1", "{}") as journal:
        for number in range(4):
            journal.append(number)
    objects.delete([build_journal_key("r1", 2)])
    damaged_key = build_journal_key("r1", 3)
    damaged = objects.get(damaged_key)
    assert damaged is not None
    objects.replace(damaged_key, damaged.data.replace(b"entries", b"ENTRIES"), damaged.version)
    assert SharedStore(lambda: objects).salvage_entries("r1") == ((0, 3), False)
    objects.delete([build_journal_key("r1", 1), build_journal_key("r1", 4), damaged_key])
    assert SharedStore(lambda: objects).salvage_entries("r1") == ((), True)  # an empty journal is valid
    store.close()


def record_run(store: SharedStore, run_id: str) -> None:
    """Record a finished run with a large plan and a large entry, which consist of several objects."""
    text = "".join(f'{{"line": {number}}}\n' for number in range(1000))
    with store.begin_run(run_id, text) as journal:
        journal.append(as_json(RunLine(at="2026-11-28T10:00:00Z", plan_id=text, who="ann", command="apply")))
        journal.append(as_json(FinishLine(at="2026-11-28T10:00:00Z", outcome="complete")))
    store.write_summary(run_id, 1)


def test_run_whose_removal_fails_is_complete_or_not_listed(
    objects: MemoryObjects, store: SharedStore
) -> None:
    with store.lock("test"):
        record_run(store, "r1")
        before = len(objects.list_keys(""))
        record_run(store, "r2")
        added = len(objects.list_keys("")) - before
        assert added > 5
        fail_once(objects, "delete", "before")
        with pytest.raises(KdeclareError):
            store.remove_run("r2")
        assert store.runs() == ("r1", "r2")
        assert len(store.entries("r2")) == 2
        fail_once(objects, "delete", "after")
        with pytest.raises(KdeclareError):
            store.remove_run("r2")
        assert store.runs() == ("r1",)
        store.remove_run("r1")
        assert store.runs() == ()
        left = objects.list_keys("")
        assert len(left) == added - 1 + len(objects.list_keys("lease"))  # of r1, nothing is left
    store.close()


def test_finished_history_needs_no_search_for_abandoned_runs(
    objects: MemoryObjects, store: SharedStore
) -> None:
    """Each request to a storage takes tens of milliseconds."""
    with store.lock("test"):
        record_run(store, "r1")
        store.write(FIRST)
    keys: list[str] = []
    objects.on_request = lambda request, key, moment: keys.append(key)
    assert find_unfinished_runs(store) == []
    assert find_missed_runs(store) == []
    assert not [key for key in keys if key.startswith(ABANDONED_FOLDER)]
    store.close()


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"run":"r1","number":1}', b'{"run":"r1","entries":5}'])
def test_object_with_matching_checksum_and_no_entries_is_damage(
    objects: MemoryObjects, store: SharedStore, body: bytes
) -> None:
    """Found by fuzzing: whoever can write the object can also write a checksum."""
    store.begin_run("r1", "{}").close()
    checksum = hashlib.sha256(body).hexdigest()[:16].encode()
    objects.create(build_journal_key("r1", 1), b'{"sum":"%s","batch":%s}\n' % (checksum, body))
    with pytest.raises(KdeclareError) as caught:
        store.entries("r1")
    assert caught.value.diagnostics[0].code == "state-corrupt"
