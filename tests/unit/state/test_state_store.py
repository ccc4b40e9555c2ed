"""The contract of all stores: the same tests for the local folder and for memory."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.state.document import decode_state, encode_state
from kdeclare.engine.state.local_store import LocalStore, open_store
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.engine.state.port import StateStore, is_run_id, make_run_id
from kdeclare.providers.kafka.config.config_record import AppliedValue
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.jsontypes import Json, untyped

FIRST = State(
    "lineage-1", 1, "cluster-1", {"Topic/orders": TopicRecord({"a": AppliedValue(None)}, partitions=3)}
)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StateStore:
    return LocalStore(tmp_path / "p" / "e") if request.param == "local" else MemoryStore()


def test_new_store_is_empty(store: StateStore, tmp_path: Path) -> None:
    assert store.read() is None
    assert store.runs() == ()
    assert store.read_holder() is None
    assert list(tmp_path.iterdir()) == []


def test_read_returns_last_written_state(store: StateStore) -> None:
    store.write(FIRST)
    assert store.read() == FIRST
    second = replace(FIRST, serial=2, resources={})
    store.write(second)
    assert store.read() == second


@pytest.mark.parametrize(
    "overtaken",
    [
        replace(FIRST, serial=1),
        replace(FIRST, serial=3),
        replace(FIRST, serial=2, lineage="lineage-2"),
    ],
)
def test_write_of_overtaken_state_is_rejected(store: StateStore, overtaken: State) -> None:
    store.write(FIRST)
    with pytest.raises(KdeclareError) as caught:
        store.write(overtaken)
    assert caught.value.diagnostics[0].code == "state-overtaken"
    assert store.read() == FIRST


def test_first_write_requires_serial_one(store: StateStore) -> None:
    with pytest.raises(KdeclareError, match="no state is stored"):
        store.write(replace(FIRST, serial=2))
    assert store.read() is None


def test_run_stores_plan_and_journal_entries(store: StateStore) -> None:
    with store.begin_run("r1", '{"é": "\u2028"}') as journal:
        assert journal.run_id == "r1"
        journal.append({"begin": ["a", "b"]})
        journal.append({"end": "a", "error": "line\nbreak \ud800 \x00 é"})
    assert store.runs() == ("r1",)
    assert store.read_plan_text("r1") == '{"é": "\u2028"}'
    assert list(store.read_plan_lines("r1")) == [store.read_plan_text("r1")]
    assert store.entries("r1") == ({"begin": ["a", "b"]}, {"end": "a", "error": "line\nbreak \ud800 \x00 é"})


def test_open_run_appends_to_journal(store: StateStore) -> None:
    store.begin_run("r1", "{}").close()
    for number in range(3):
        with store.open_run("r1") as journal:
            journal.append(number)
    assert store.entries("r1") == (0, 1, 2)


def test_closed_journal_rejects_entries(store: StateStore) -> None:
    journal = store.begin_run("r1", "{}")
    journal.close()
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append(1)


def test_journal_stores_copy_of_entry(store: StateStore) -> None:
    entry = {"ids": ["a"]}
    with store.begin_run("r1", "{}") as journal:
        journal.append(entry)
        entry["ids"].append("b")
    assert store.entries("r1") == ({"ids": ["a"]},)


def test_journal_rejects_entry_that_is_not_json(store: StateStore) -> None:
    with store.begin_run("r1", "{}") as journal:
        with pytest.raises(TypeError):
            journal.append(untyped({"x": object()}))
        journal.append(1)
    assert store.entries("r1") == (1,)


def test_begin_run_rejects_existing_run(store: StateStore) -> None:
    with store.begin_run("r1", "first") as journal:
        journal.append(1)
    with pytest.raises(KdeclareError) as caught:
        store.begin_run("r1", "second")
    assert caught.value.diagnostics[0].code == "run-exists"
    assert store.read_plan_text("r1") == "first"
    assert store.entries("r1") == (1,)


@pytest.mark.parametrize("run_id", ["r2", "", ".", "..", "../r1", "r1/../r1"])
def test_unknown_run_is_rejected(store: StateStore, run_id: str) -> None:
    store.begin_run("r1", "{}").close()
    for ask in (store.open_run, store.read_plan_text, store.entries):
        with pytest.raises(KdeclareError) as caught:
            ask(run_id)
        assert caught.value.diagnostics[0].code == "unknown-run"


def test_lock_rejects_second_holder(store: StateStore) -> None:
    with store.lock("kdeclare apply"):
        holder = store.read_holder()
        assert holder is not None
        with pytest.raises(KdeclareError) as caught, store.lock("kdeclare rollback"):
            pytest.fail("two holders")
    assert caught.value.exit_code is ExitCode.LOCKED
    detail = caught.value.diagnostics[0].detail
    for part in (holder.who, str(holder.pid), holder.since, "kdeclare apply"):
        assert part in detail
    assert store.read_holder() is None


def test_lock_is_free_after_exception(store: StateStore) -> None:
    with pytest.raises(RuntimeError), store.lock("kdeclare apply"):
        raise RuntimeError
    with store.lock("kdeclare apply"):
        pass


def test_break_lock_requires_current_holder(store: StateStore) -> None:
    other = LockInfo("ann@host", 1, "kdeclare apply", "2026-11-21T12:51:07Z")
    with pytest.raises(KdeclareError, match="it is now free"):
        store.break_lock(other)
    with store.lock("kdeclare apply"):
        with pytest.raises(KdeclareError, match="it is now held by"):
            store.break_lock(other)
        holder = store.read_holder()
        assert holder is not None
        store.break_lock(holder)
        assert store.read_holder() is None
        with store.lock("kdeclare rollback"):
            pass


words = st.text(st.characters(codec="utf-8"), max_size=5)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(words, json_values, max_size=3))
def test_state_text_round_trips(resources: dict[str, Json]) -> None:
    bound = {name: bind_record(name.partition("/")[0], json) for name, json in resources.items()}
    state = State("l", 7, "c", {name: record for name, record in bound.items() if record is not None})
    assert decode_state(encode_state(state).encode(), "here") == state


def test_state_text_is_sorted_with_one_line_per_resource() -> None:
    records = {"Topic/b": TopicRecord(labels={"y": "1", "x": "é"}), "Topic/a": TopicRecord()}
    text = encode_state(State("l", 1, "c", records))
    assert text == (
        '{\n  "version": 3,\n  "lineage": "l",\n  "serial": 1,\n  "cluster_id": "c",\n  "resources": {\n'
        '    "Topic/a": {"configs": {}, "preventDestroy": false},\n'
        '    "Topic/b": {"configs": {}, "labels": {"x": "é", "y": "1"}, "preventDestroy": false}\n  }\n}\n'
    )


PLAN_ID = "1a2b3c4d5e6f"
NOON = datetime(2026, 11, 21, 12, 51, 7, 999, tzinfo=UTC)


def test_run_id_contains_time_and_plan_id() -> None:
    assert make_run_id(NOON, PLAN_ID, ()) == "20261121T125107Z-1a2b3c4d"


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["00000000", "ffffffff", PLAN_ID])), max_size=30)
)
def test_run_ids_sort_by_creation_order(made: list[tuple[int, str]]) -> None:
    ids: list[str] = []
    for seconds, plan_id in made:
        ids.append(make_run_id(NOON + timedelta(seconds=seconds), plan_id, sorted(ids)))
    assert ids == sorted(set(ids))
    assert all(map(is_run_id, ids))


def test_run_id_ignores_other_names() -> None:
    assert make_run_id(NOON, PLAN_ID, ["zzz", "r1"]) == "20261121T125107Z-1a2b3c4d"


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}", "FILE://localhost{}"])
def test_open_store_accepts_folder_and_file_uri(tmp_path: Path, form: str) -> None:
    open_store(form.format(tmp_path), "payments", "eu-1").write(FIRST)
    assert (tmp_path / "payments" / "eu-1" / "state.json").is_file()


@pytest.mark.parametrize(
    "location", ["kafka://host/topic", "s3:bucket", "file://elsewhere/state", "file:", ""]
)
def test_open_store_rejects_other_locations(location: str) -> None:
    with pytest.raises(KdeclareError) as caught:
        open_store(location, "p", "e")
    assert caught.value.diagnostics[0].code == "state-location"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\nb", ".hidden"])
def test_open_store_rejects_invalid_folder_names(tmp_path: Path, name: str) -> None:
    for project, env in ((name, "e"), ("p", name)):
        with pytest.raises(KdeclareError) as caught:
            open_store(tmp_path, project, env)
        assert caught.value.diagnostics[0].code == "state-location"
