"""The in-memory store crashes where it is configured to, and stays dead until it is restarted."""

from dataclasses import replace
from typing import Literal

import pytest

from kdeclare.core.plans.state import State
from kdeclare.engine.state.memory_store import MemoryStore, StoreCrash, StoreStep

FIRST = State("lineage-1", 1, "cluster-1", {})


class Killed(BaseException):
    """A kill -9."""


def run_steps(store: MemoryStore) -> None:
    with store.lock("work"):
        try:
            with store.begin_run("r1", "{}") as journal:
                journal.append(1)
                store.write(FIRST)
                journal.append(2)
                store.write(replace(FIRST, serial=2))
        finally:
            store.begin_run("cleanup", "{}").close()


def read_content(store: MemoryStore) -> tuple[object, ...]:
    state = store.read()
    return store.runs(), store.entries("r1") if store.runs() else (), state.serial if state else 0


STAGES: list[tuple[object, ...]] = [
    ((), (), 0),
    (("r1",), (), 0),
    (("r1",), (1,), 0),
    (("r1",), (1,), 1),
    (("r1",), (1, 2), 1),
    (("r1",), (1, 2), 2),
    (("cleanup", "r1"), (1, 2), 2),
]


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("when", ["before", "after"])
def test_store_crashes_at_each_configured_step(n: int, when: Literal["before", "after"]) -> None:
    store = MemoryStore(StoreCrash(n, when, Killed()))
    with pytest.raises(Killed):
        run_steps(store)
    assert read_content(store) == STAGES[n - (when == "before")]
    with pytest.raises(Killed):
        store.write(FIRST)
    store.restart()
    assert store.read_holder() is None
    store.begin_run("r9", "{}").close()


@pytest.mark.parametrize(
    ("step", "n", "stage"), [("begin_run", 1, 0), ("append", 2, 3), ("write", 1, 2), ("write", 2, 4)]
)
def test_store_crash_counts_steps_of_given_kind(step: StoreStep, n: int, stage: int) -> None:
    store = MemoryStore(StoreCrash(n, "before", Killed(), step))
    with pytest.raises(Killed):
        run_steps(store)
    assert read_content(store) == STAGES[stage]


def test_store_records_steps() -> None:
    store = MemoryStore()
    run_steps(store)
    assert store.steps == ["begin_run", "append", "write", "append", "write", "begin_run"]
