"""The contract of stores that need no server, the text of the state, and the ids of runs."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.plans.state import State
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.engine.state.document import decode_state, encode_state, encode_stored_state
from kdeclare.engine.state.local_store import LocalStore, open_store
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.engine.state.port import StateStore, is_run_id, make_run_id
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.memory_objects import MemoryObjects
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.jsontypes import Json
from tests.state_stores import FIRST, StateStoreContract


class TestLocalStore(StateStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> StateStore:
        return LocalStore(tmp_path / "p" / "e")

    def test_reading_creates_no_files(self, store: StateStore, tmp_path: Path) -> None:
        store.read()
        store.runs()
        store.read_holder()
        assert list(tmp_path.iterdir()) == []


class TestMemoryStore(StateStoreContract):
    @pytest.fixture
    def store(self) -> StateStore:
        return MemoryStore()


@pytest.mark.parametrize("max_object_bytes", [4_000, 1_000_000])
class TestSharedStore(StateStoreContract):
    """With the small limit, large states, plans and entries consist of several objects."""

    @pytest.fixture
    def store(self, max_object_bytes: int) -> Iterator[StateStore]:
        store = SharedStore(lambda: MemoryObjects(max_object_bytes), LeaseTiming(2.0))
        yield store
        store.close()


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


@pytest.mark.parametrize("mask", [0x01, 0x08, 0x20, 0x80])
def test_every_changed_byte_of_a_state_is_noticed_unless_the_state_stays_the_same(mask: int) -> None:
    records = {"Topic/b": TopicRecord(labels={"y": "1"}), "Topic/a": TopicRecord()}
    state = State("l", 41, "c", records, {"cleanup": {"a": 1}}, {"registry:main": "r"})
    data = encode_stored_state(state)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= mask
        with suppress(KdeclareError):
            assert decode_state(bytes(damaged), "here") == state, at


def test_state_without_checksum_and_with_other_line_ends_is_accepted() -> None:
    state = State("l", 41, "c", {"Topic/a": TopicRecord()})
    text = encode_stored_state(state).decode()
    assert decode_state(text.replace("\n", "\r\n"), "here") == state
    lines = [line for line in text.replace('"serial": 41', '"serial": 42').splitlines() if "sum" not in line]
    assert decode_state("\n".join(lines), "here").serial == 42


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
