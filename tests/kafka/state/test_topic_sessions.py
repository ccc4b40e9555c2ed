"""Producers that fence each other, and commits without a response: no write is lost or done twice."""

from collections.abc import Callable
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectConflict
from kdeclare.providers.kafka.client.records.committed_reader import CommittedReader
from kdeclare.providers.kafka.client.records.transactional_producer import TransactionalProducer
from kdeclare.providers.kafka.state_topic import state_log
from tests.kafka.state.topics import StateTopics

pytestmark = pytest.mark.kafka

Open = Callable[[], ConditionalObjects]


@pytest.fixture
def on_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Callable[[], None]], None]], None]:
    """Replace the next commit of any producer. The replacement receives the commit itself."""
    commit = TransactionalProducer.commit

    def replace(replacement: Callable[[Callable[[], None]], None]) -> None:
        def run(producer: TransactionalProducer) -> None:
            monkeypatch.setattr(TransactionalProducer, "commit", commit)
            replacement(lambda: commit(producer))

        monkeypatch.setattr(TransactionalProducer, "commit", run)

    return replace


OnCommit = Callable[[Callable[[Callable[[], None]], None]], None]


def read(objects: ConditionalObjects, key: str) -> bytes | None:
    stored = objects.get(key)
    return None if stored is None else stored.data


def lose_response(commit: Callable[[], None]) -> None:
    commit()
    raise Fault("NETWORK_EXCEPTION", "the response was lost", FaultKind.UNKNOWN)


def lose_request(commit: Callable[[], None]) -> None:
    raise Fault("NETWORK_EXCEPTION", "the request was lost", FaultKind.UNKNOWN)


@pytest.mark.parametrize("loss", [lose_response, lose_request])
def test_lost_commit_is_resolved(open_objects: Open, on_commit: OnCommit, loss: Callable[..., None]) -> None:
    objects, others = open_objects(), open_objects()
    first = objects.create("state.json", b"1")
    on_commit(loss)
    second = objects.replace("state.json", b"2", first)
    for reader in (objects, others):
        stored = reader.get("state.json")
        assert stored is not None
        assert (stored.data, stored.version) == (b"2", second)
    on_commit(loss)
    objects.delete(["state.json"])
    assert read(others, "state.json") is None
    assert read(objects, "state.json") is None


def test_commit_after_write_of_other_process_is_a_conflict(open_objects: Open, on_commit: OnCommit) -> None:
    objects, others = open_objects(), open_objects()
    first = objects.create("state.json", b"1")

    def overtake(commit: Callable[[], None]) -> None:
        others.replace("state.json", b"other", first)
        commit()

    on_commit(overtake)
    with pytest.raises(ObjectConflict):
        objects.replace("state.json", b"2", first)
    assert read(objects, "state.json") == read(others, "state.json") == b"other"


def test_commit_after_write_of_other_object_is_repeated(open_objects: Open, on_commit: OnCommit) -> None:
    objects, others = open_objects(), open_objects()
    first = objects.create("state.json", b"1")

    def overtake(commit: Callable[[], None]) -> None:
        others.create("lease.json", b"other")
        commit()

    on_commit(overtake)
    objects.replace("state.json", b"2", first)
    for reader in (objects, others):
        assert read(reader, "state.json") == b"2"
        assert read(reader, "lease.json") == b"other"


def test_committed_write_that_another_process_replaced_is_a_conflict(
    open_objects: Open, on_commit: OnCommit
) -> None:
    objects, others = open_objects(), open_objects()
    first = objects.create("state.json", b"1")

    def commit_and_overtake(commit: Callable[[], None]) -> None:
        commit()
        stored = others.get("state.json")
        assert stored is not None
        assert stored.data == b"2"
        others.replace("state.json", b"3", stored.version)
        raise Fault("NETWORK_EXCEPTION", "the response was lost", FaultKind.UNKNOWN)

    on_commit(commit_and_overtake)
    with pytest.raises(ObjectConflict):
        objects.replace("state.json", b"2", first)
    assert read(objects, "state.json") == b"3"


def test_conflict_after_writing_leaves_no_open_transaction(
    open_objects: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, others = open_objects(), open_objects()
    first = objects.create("state.json", b"1")
    send = TransactionalProducer.send

    def overtake(producer: TransactionalProducer, topic: str, records: dict[bytes, bytes | None]) -> object:
        monkeypatch.setattr(TransactionalProducer, "send", send)
        others.replace("state.json", b"other", first)
        return send(producer, topic, records)

    monkeypatch.setattr(TransactionalProducer, "send", overtake)
    with pytest.raises(ObjectConflict):
        objects.replace("state.json", b"2", first)
    monkeypatch.setattr(state_log, "OPEN_TRANSACTION_S", 2.0)
    assert read(others, "state.json") == b"other"


def test_interrupted_write_leaves_no_open_transaction(
    open_objects: Open, on_commit: OnCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, others = open_objects(), open_objects()
    first = objects.create("state.json", b"1")

    def interrupt(commit: Callable[[], None]) -> None:
        raise KeyboardInterrupt

    on_commit(interrupt)
    with pytest.raises(KeyboardInterrupt):
        objects.replace("state.json", b"2", first)
    monkeypatch.setattr(state_log, "OPEN_TRANSACTION_S", 2.0)
    assert read(others, "state.json") == b"1"
    objects.replace("state.json", b"3", first)
    assert read(others, "state.json") == b"3"


def test_open_transaction_is_reported_after_time_limit(
    open_objects: Open, on_commit: OnCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, others = open_objects(), open_objects()
    objects.create("state.json", b"1")
    others.get("state.json")

    def read_meanwhile(commit: Callable[[], None]) -> None:
        monkeypatch.setattr(state_log, "OPEN_TRANSACTION_S", 1.0)
        with pytest.raises(KdeclareError, match="could not be read to the end within 1 s") as caught:
            others.get("state.json")
        assert caught.value.diagnostics[0].code == "state-storage"
        commit()

    on_commit(read_meanwhile)
    objects.create("lease.json", b"2")
    assert read(others, "lease.json") == b"2", "the write was not interrupted by the reader"


def test_records_are_read_again_after_long_pause(open_objects: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tombstone older than ``delete.retention.ms`` can be removed before a paused reader sees it."""
    started: list[CommittedReader] = []
    start = CommittedReader.__init__

    def count(reader: CommittedReader, *arguments: Any) -> None:
        started.append(reader)
        start(reader, *arguments)

    monkeypatch.setattr(CommittedReader, "__init__", count)
    objects = open_objects()
    objects.create("state.json", b"1")
    assert read(objects, "state.json") == b"1"
    assert len(started) == 1
    monkeypatch.setattr(state_log, "TOMBSTONE_AGE_S", 0.0)
    assert read(objects, "state.json") == b"1"
    assert len(started) == 2


def test_open_topic_of_other_cluster_by_properties_file(topics_folder: StateTopics, topic: str) -> None:
    (topics_folder.folder / "state.properties").write_text(f"bootstrap.servers={topics_folder.bootstrap}\n")
    elsewhere = StateTopics("127.0.0.1:1", topics_folder.folder)
    objects = elsewhere.open(topic, "?command-config=state.properties")
    objects.create("state.json", b"1")
    objects.close()
    objects = topics_folder.open(topic)
    assert read(objects, "state.json") == b"1"
    objects.close()
