"""The contract of `ConnectWorkers`, for in-process and real workers; and runs with both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.live.known_resources import KnownResource
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import build_declared_cluster_row, build_declared_rows, read_live_rows
from kdeclare.providers.connect.client import port
from kdeclare.providers.connect.client.port import (
    ConnectWorkers,
    patch_through_any,
    read_workers,
    require_valid,
)
from kdeclare.providers.connect.client.rest import open_rest_workers
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, Keystore
from kdeclare.providers.connect.worker_health import (
    find_certificate_mismatches,
    find_silent,
    find_unconverged,
)
from kdeclare.providers.connect.worker_state import Certificate, GroupSnapshot, WorkerGroup, hash_overrides
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.cases import case
from tests.connections import connections_to
from tests.engine.world import World, desired
from tests.kafka.connect import certificates
from tests.kafka.connect.workers import OWN_FOLDER, Crew
from tests.polling import retry_until_passes

TYPE = "listeners.https.ssl.keystore.type"


@dataclass
class Bed:
    """Three workers, two keystores that all of them have, and one that the last worker lacks."""

    workers: ConnectWorkers
    a: str
    b: str
    lacking: str
    password: str

    def rotated(self, location: str) -> dict[str, str | None]:
        return {LOCATION: location, PASSWORD: self.password, TYPE: "PKCS12"}

    def settled(self, wanted: dict[str, str]) -> GroupSnapshot:
        """Return all workers once they have applied the change."""

        def read_converged() -> GroupSnapshot:
            seen = read_workers(self.workers)
            assert not find_unconverged(seen, wanted)
            return seen

        return retry_until_passes(read_converged, every=0.02, errors=(AssertionError,))


def build_memory_bed() -> Bed:
    workers = MemoryWorkers()
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=300)
    for name in ("/a", "/b", "/lacking"):
        shown = Certificate(name[1:].encode().hex().ljust(64, "0"), f"CN={name}", "CN=ca", begin, end)
        workers.files[name] = Keystore(shown, "changeit")
    workers.workers[workers.urls[-1]].missing_paths = {"/lacking"}
    workers.placeholders = {"${env:PW}": "changeit"}
    return Bed(workers, "/a", "/b", "/lacking", "${env:PW}")


def build_real_bed(crew: Crew, folder: Path) -> Iterator[Bed]:
    made = crew.certificates
    secrets = folder / "secrets.properties"
    secrets.write_text(f"keystore={certificates.PASSWORD}\n")
    for worker in crew.workers[:-1]:
        (worker.folder / "held.p12").write_bytes(made.store("a").read_bytes())
    group = WorkerGroup(
        tuple(f"https://127.0.0.1:{worker.port}" for worker in crew.workers),
        ca_file=str(made.authority_pem),
        cert_file=str(made.client_pem),
    )
    workers = open_rest_workers(group, folder, str)
    own = f"${{env:{OWN_FOLDER}}}/held.p12"
    a, b = str(made.store("a")), str(made.store("b"))
    yield Bed(workers, a, b, own, f"${{file:{secrets}:keystore}}")
    workers.close()


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    if request.param == "memory":
        yield build_memory_bed()
    else:
        yield from build_real_bed(request.getfixturevalue("crew"), tmp_path)


def catch_fault(call: Callable[[], Any]) -> Fault:
    with pytest.raises(Fault) as raised:
        call()
    return raised.value


def test_workers_without_overrides_agree_on_status(bed: Bed) -> None:
    seen = bed.settled({})
    assert seen.overrides == {}
    assert not find_silent(seen)
    assert not list(find_certificate_mismatches(seen))
    assert [worker.status.leader for worker in seen.workers if worker.status].count(True) == 1
    for worker in seen.workers:
        assert worker.status
        assert worker.served in [listener.certificate for listener in worker.status.listeners]


@case("CON-01")
def test_patch_is_merged_and_applied_by_all_workers(bed: Bed) -> None:
    after = dict(patch_through_any(bed.workers, bed.rotated(bed.a)))
    assert after == bed.rotated(bed.a)  # placeholders are unchanged
    seen = bed.settled(after)
    assert seen.overrides == after
    first = {worker.served for worker in seen.workers}
    assert len(first) == 1
    for worker in seen.workers:
        assert worker.status
        assert worker.status.applied
        assert worker.status.applied.sha256 == hash_overrides(after)
        assert set(worker.status.overrides) == set(after)
        assert LOCATION in worker.status.whitelist
    for url in bed.workers.urls:
        merged = dict(bed.workers.patch(url, {LOCATION: bed.b, TYPE: None}))
        assert merged == {LOCATION: bed.b, PASSWORD: bed.password}
    second = {worker.served for worker in bed.settled(merged).workers}
    assert len(second) == 1
    assert second != first
    nothing = dict(patch_through_any(bed.workers, dict.fromkeys(merged)))
    assert nothing == {}
    bed.settled({})


@pytest.mark.parametrize(
    "wrong",
    [{LOCATION: "/no/such/keystore.p12"}, {PASSWORD: "not-it"}, {"offset.flush.interval.ms": "5"}],
)
def test_patch_that_no_worker_can_apply_writes_nothing(bed: Bed, wrong: dict[str, str | None]) -> None:
    before = dict(patch_through_any(bed.workers, bed.rotated(bed.a)))
    shown = {worker.served for worker in bed.settled(before).workers}
    for url in bed.workers.urls:
        found = bed.workers.validate(url, wrong)
        assert not found.valid
        assert any(found.errors.values())
        assert "not-it" not in str(found)
        assert catch_fault(partial(bed.workers.patch, url, wrong)).error == port.INVALID
    seen = bed.settled(before)
    assert {worker.served for worker in seen.workers} == shown
    assert seen.overrides == before


def test_validation_finds_file_missing_on_one_worker(bed: Bed) -> None:
    *others, last = bed.workers.urls
    found = catch_fault(lambda: require_valid(bed.workers, bed.rotated(bed.lacking)))
    assert found.error == port.INVALID
    assert last in found.message
    assert not any(url in found.message for url in others)
    assert read_workers(bed.workers).overrides == {}


def test_delete_removes_override(bed: Bed) -> None:
    after = dict(patch_through_any(bed.workers, bed.rotated(bed.a)))
    bed.settled(after)
    for url in bed.workers.urls:
        assert catch_fault(partial(bed.workers.delete, url, "no.such.key")).error == port.NO_OVERRIDE
    bed.workers.delete(bed.workers.urls[0], TYPE)
    after.pop(TYPE)
    assert bed.settled(after).overrides == after


# Through the engine.


def build_resource(bed: Bed, location: str) -> DesiredResource:
    return desired("ConnectWorkerConfig", "eu", workers=list(bed.workers.urls), config=bed.rotated(location))


def test_rollback_of_rotation_restores_certificate(bed: Bed) -> None:
    world = World(MemoryCluster())
    world.workers[bed.workers.urls] = bed.workers
    assert world.apply(build_resource(bed, bed.a)).complete
    shown = {worker.served for worker in read_workers(bed.workers).workers}
    assert not world.plan(build_resource(bed, bed.a)).has_changes
    assert world.apply(build_resource(bed, bed.b)).complete
    assert shown.isdisjoint({worker.served for worker in read_workers(bed.workers).workers})
    refused = world.plan(build_resource(bed, bed.lacking))
    (problem,) = [d for d in refused.diagnostics if d.is_error]
    assert bed.workers.urls[-1] in problem.detail
    assert world.rollback().complete
    assert {worker.served for worker in read_workers(bed.workers).workers} == shown
    assert read_workers(bed.workers).overrides == bed.rotated(bed.a)


def test_audit_finds_change_by_other_client(bed: Bed) -> None:
    cluster = MemoryCluster(cluster_id="id-1")
    world = World(cluster)
    world.workers[bed.workers.urls] = bed.workers
    item = build_resource(bed, bed.a)
    assert world.apply(item).complete
    state = world.store.read()
    assert state is not None
    record = state.resources[str(item.id)]
    connections = connections_to(cluster, {bed.workers.urls: bed.workers})
    known = [KnownResource(item.id, item.body, record)]

    def audit() -> list[tuple[str, str | None]]:
        now = datetime.now(UTC)
        declared = [build_declared_cluster_row("eu", {}), *build_declared_rows("eu", item, item.id, record)]
        live = list(read_live_rows(connections, "eu", {}, now, lambda kinds: known))
        found = audit_rows(declared, live)
        return [(row["finding"], row["path"]) for row in found if row["kind"] == item.id.kind]

    assert audit() == []
    bed.settled(dict(patch_through_any(bed.workers, {LOCATION: bed.b})))
    assert audit() == [("changed", f"configs.{LOCATION}")]
