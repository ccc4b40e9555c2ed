"""Conformance cases for the shared configuration of Connect workers (KIP-1185), with in-process workers.

The parts that only a real worker shows (the record's key, the tombstone, the bytes of the response, the log
line) are in `tests/kafka/connect`.
"""

from datetime import UTC, datetime

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.port import PLUGIN_MISSING, read_workers
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, STATIC, WHITELIST, Keystore
from kdeclare.providers.connect.worker_state import Certificate
from tests.cases import case

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)
EACH = pytest.mark.parametrize("through", range(3))


@pytest.fixture
def workers() -> MemoryWorkers:
    found = MemoryWorkers()
    for name in ("a", "new"):
        found.files[f"/{name}"] = Keystore(
            Certificate(name.ljust(64, "0"), f"CN={name}", "CN=ca", BEGIN, END)
        )
    assert {LOCATION, PASSWORD} <= set(WHITELIST)
    return found


@EACH
@case("CON-01")
def test_patch_merges_into_one_record(workers: MemoryWorkers, through: int) -> None:
    workers.patch(workers.urls[0], {LOCATION: "/a"})
    both = {LOCATION: "/a", PASSWORD: "p"}
    assert workers.patch(workers.urls[through], {PASSWORD: "p"}) == both
    assert workers.log == [{LOCATION: "/a"}, both]
    assert all(workers.overrides(url) == both for url in workers.urls)


@EACH
@case("CON-03")
def test_deletion_of_last_override_leaves_empty_record(workers: MemoryWorkers, through: int) -> None:
    workers.patch(workers.urls[0], {LOCATION: "/a", PASSWORD: "p"})
    workers.delete(workers.urls[through], PASSWORD)
    assert workers.current() == {LOCATION: "/a"}
    workers.delete(workers.urls[through], LOCATION)
    assert workers.log[1:] == [{LOCATION: "/a"}, {}]
    assert all(workers.overrides(url) == {} for url in workers.urls)
    assert {worker.certificate for worker in workers.workers.values()} == {STATIC}


@EACH
@case("CON-06")
def test_validation_by_one_worker_changes_nothing(workers: MemoryWorkers, through: int) -> None:
    lacking = workers.urls[1]
    workers.workers[lacking].missing_paths = {"/new"}
    validation = workers.validate(workers.urls[through], {LOCATION: "/new"})
    assert validation.valid == (workers.urls[through] != lacking)
    assert set(validation.errors) == (set() if validation.valid else {LOCATION})
    assert not workers.log
    seen = read_workers(workers)
    assert seen.overrides == {}
    assert {worker.served for worker in seen.workers} == {STATIC}


@case("CON-09")
def test_worker_without_plugin_ignores_record(workers: MemoryWorkers) -> None:
    first, _, older = workers.urls
    workers.workers[older].bare = True
    workers.patch(first, {LOCATION: "/a"})
    seen = {worker.url: worker for worker in read_workers(workers).workers}
    assert seen[older].served == STATIC
    assert seen[first].served != STATIC
    with pytest.raises(Fault) as raised:
        workers.overrides(older)
    assert raised.value.error == PLUGIN_MISSING
