"""Copy a state with its runs between stores of different types, even if the target fails."""

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kdeclare.app.state.migrate import migrate_state
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.plans.state import State
from kdeclare.engine.executor.entries import FinishLine, as_json
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.memory_objects import MemoryObjects, Moment, Request
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.providers.kafka.topic.record import TopicRecord

NO_RESPONSE = KdeclareError(error("state-storage", "No response", "The storage does not respond."))
RECORDS = {f"Topic/t{number}": TopicRecord(partitions=number) for number in range(1, 300)}
STATE = State("lineage-1", 41, "cluster-1", RECORDS, {"throttles": ["x"]}, {"eu": "id"})
FINISH = as_json(FinishLine(at="2026-11-28T10:00:00Z", outcome="complete", lineage="lineage-1", serial=41))
RUNS = ("20261128T100000Z-00000001", "20261128T100001Z-00000002", "20261128T100002Z-00000003")


def make_local(folder: Path) -> StateStore:
    return LocalStore(folder)


def make_shared(folder: Path) -> StateStore:
    objects = MemoryObjects(4_000)
    return SharedStore(lambda: objects, LeaseTiming(5.0))


def make_memory(folder: Path) -> StateStore:
    return MemoryStore()


STORES: list[Callable[[Path], StateStore]] = [make_local, make_shared, make_memory]


def fill(store: StateStore) -> None:
    """Store a state, and three runs with everything that can belong to a run."""
    with store.lock("test"):
        for number, run_id in enumerate(RUNS):
            plan = "".join(f'{{"line": {line}, "é": "\u2028"}}\n' for line in range(number * 400))
            with store.begin_run(run_id, plan) as journal:
                if run_id != RUNS[-1]:  # any entries; the journal of the last run is read before the copy
                    journal.append({"text": plan, "bad": "\ud800", "float": 1.5})
                journal.append(FINISH)
        store.report_loss(RUNS[0], {"who": "ann"})
        store.report_loss(RUNS[0], {"who": "bob"})
        store.abandon_run(RUNS[1], {"who": "cy"})
        store.write_summary(RUNS[2], {"outcome": "done"})
        store.write_effects(RUNS[2], [{"observed": "é"}])
        store.overwrite(STATE)


def describe(store: StateStore) -> object:
    """Return everything that a store contains."""
    return (
        store.read(),
        [(run_id, store.read_plan_text(run_id), store.entries(run_id)) for run_id in store.runs()],
        [sorted(map(str, store.read_losses(run_id))) for run_id in store.runs()],
        {run_id: store.read_abandonment(run_id) for run_id in store.list_abandoned()},
        store.read_summaries(store.runs()),
        [store.read_effects(run_id) for run_id in store.runs()],
    )


@pytest.mark.parametrize("make_source", STORES)
@pytest.mark.parametrize("make_target", STORES)
def test_every_store_can_be_copied_to_every_other(
    tmp_path: Path,
    make_source: Callable[[Path], StateStore],
    make_target: Callable[[Path], StateStore],
) -> None:
    source, target = make_source(tmp_path / "a"), make_target(tmp_path / "b")
    fill(source)
    before = describe(source)
    assert migrate_state(source, target, "kdeclare state migrate") == (STATE, ())
    assert describe(target) == describe(source) == before
    assert source.read_holder() is None
    assert target.read_holder() is None
    with target.lock("test"):
        target.write(State("lineage-1", 42, "cluster-1"))
    for store in (source, target):
        store.close()


@pytest.mark.parametrize("what", ["state", "run"])
def test_target_that_is_not_empty_is_refused(tmp_path: Path, what: str) -> None:
    source, target = make_local(tmp_path / "a"), make_memory(tmp_path)
    fill(source)
    if what == "state":
        target.write(State("lineage-2", 1, "cluster-1"))
    else:
        target.begin_run("r1", "{}").close()
    before = describe(target)
    with pytest.raises(KdeclareError) as caught:
        migrate_state(source, target, "kdeclare state migrate")
    assert caught.value.diagnostics[0].code == "state-exists"
    assert describe(target) == before


def fail_creation(objects: MemoryObjects, number: int) -> None:
    """Let the creation of the object with this number fail. Objects of the lock are not counted."""
    counter = itertools.count(1)

    def fail(request: Request, key: str, moment: Moment) -> None:
        is_counted = (request, moment) == ("create", "before") and not key.startswith(("lease", "probes"))
        if is_counted and next(counter) == number:
            raise NO_RESPONSE

    objects.on_request = fail


def count_creations(source: StateStore) -> int:
    """Return how many objects a copy creates."""
    objects = MemoryObjects(4_000)
    created: list[str] = []
    objects.on_request = lambda request, key, moment: (
        created.append(key) if (request, moment) == ("create", "before") else None
    )
    migrate_state(source, SharedStore(lambda: objects, LeaseTiming(5.0)), "kdeclare state migrate")
    return sum(not key.startswith(("lease", "probes")) for key in created)


def test_copy_can_be_repeated_after_each_failed_request(tmp_path: Path) -> None:
    source = make_local(tmp_path / "a")
    fill(source)
    creations = count_creations(source)
    assert creations > 20
    for number in range(1, creations + 1, 3):
        objects = MemoryObjects(4_000)
        target = SharedStore(partial(get_same, objects), LeaseTiming(5.0))
        fail_creation(objects, number)
        with pytest.raises(KdeclareError) as caught:
            migrate_state(source, target, "kdeclare state migrate")
        assert caught.value is NO_RESPONSE
        assert (target.read(), target.runs()) == (None, ())
        migrate_state(source, target, "kdeclare state migrate")
        assert describe(target) == describe(source)
        target.close()


def get_same(objects: MemoryObjects) -> MemoryObjects:
    return objects


def test_target_that_returns_other_data_is_noticed(tmp_path: Path) -> None:
    source = make_local(tmp_path / "a")
    fill(source)

    class ForgetfulStore(MemoryStore):
        """A store that loses the last character of each plan."""

        def read_plan_text(self, run_id: str) -> str:
            return super().read_plan_text(run_id)[:-1]

    target = ForgetfulStore()
    with pytest.raises(KdeclareError) as caught:
        migrate_state(source, target, "kdeclare state migrate")
    assert caught.value.diagnostics[0].code == "state-copy-differs"
    assert (target.read(), target.runs()) == (None, ())
