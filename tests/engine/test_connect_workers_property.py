"""The overrides of Connect workers after a run, whatever is declared, owned and set by others."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, WHITELIST
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.world import World, desired

KEYS = [key for key in WHITELIST if key != LOCATION and not key.endswith("password")]
VALUES = st.sampled_from(["a", "b", "${file:/x:y}"])
WISHES = st.dictionaries(st.sampled_from(KEYS), st.none() | VALUES)
RAW = st.dictionaries(st.sampled_from(KEYS), VALUES)
LAGS = st.lists(st.integers(0, 4), min_size=3, max_size=3)


def declare_workers(workers: MemoryWorkers, config: Mapping[str, Any]) -> DesiredResource:
    return desired("ConnectWorkerConfig", "eu", workers=list(workers.urls), config=dict(config))


def merge_expected(
    wishes: Mapping[str, str | None], owned: Mapping[str, str | None], live: Mapping[str, str]
) -> dict[str, str]:
    """The declared overrides, and all others that kdeclare had not set."""
    kept = {key: value for key, value in live.items() if key not in wishes and owned.get(key) is None}
    return kept | {key: value for key, value in wishes.items() if value is not None}


@given(first=WISHES, second=WISHES, others=RAW, lags=LAGS)
def test_apply_merges_three_ways_and_rolls_back(
    first: dict[str, str | None], second: dict[str, str | None], others: dict[str, str], lags: list[int]
) -> None:
    workers = MemoryWorkers()
    world = World(MemoryCluster())
    world.workers[workers.urls] = workers
    for worker, lag in zip(workers.workers.values(), lags, strict=True):
        worker.lag = lag
    assert world.apply(declare_workers(workers, first)).complete
    assert workers.current() == merge_expected(first, {}, {})
    if others:
        workers.patch(workers.urls[0], others)
    before = dict(workers.current())
    plan = world.plan(declare_workers(workers, second))
    assert world.run(plan).complete
    assert workers.current() == merge_expected(second, first, before)
    assert not world.plan(declare_workers(workers, second)).has_changes
    if plan.operations:
        assert all(worker.overrides == workers.current() for worker in workers.workers.values())
        assert world.rollback().complete
        assert workers.current() == before
