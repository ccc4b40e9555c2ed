"""Commands on a failing file system: a complete result or an error, never a smaller result.

Each step of each command fails in each way.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdeclare.fleet.tables.records import AUDITS, SNAPSHOTS, list_record_ids
from kdeclare.fleet.tables.storage import LocalStorage
from tests.spark.real_fleet import SECRETS
from tests.table_faults import (
    Disturbance,
    Fault,
    FaultyFleet,
    FaultyStorage,
    check_outcome,
    disturb,
    disturb_everywhere,
    make_faulty_fleet,
    run,
    use_faulty_storage,
)

pytestmark = [pytest.mark.slow, pytest.mark.sampled]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyFleet]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        with use_faulty_storage():
            yield make_faulty_fleet(tmp_path_factory.mktemp("faults"), patch)


@pytest.mark.parametrize("fault", Fault)
def test_audit_is_complete_or_fails(faulty: FaultyFleet, tmp_path: Path, fault: Fault) -> None:
    case = faulty.copy(tmp_path / "expected")
    second, report, third = case.audit(), case.report(), case.audit()
    assert second != third
    earlier_ids = list_record_ids(LocalStorage(faulty.out), AUDITS)
    count = 0
    for case, outcome, step in disturb_everywhere(faulty, tmp_path, fault, FaultyFleet.audit):
        count += 1
        check_outcome(outcome, second, step)
        case.require_readable(earlier_ids)
        ids = list_record_ids(LocalStorage(case.out), AUDITS)
        assert ids[: len(earlier_ids)] == earlier_ids, step
        if len(ids) == len(earlier_ids):
            assert outcome.result is None, step
            assert case.audit() == second, step
            continue
        shown, following = run(case.report), run(case.audit)
        if fault is Fault.LOSE and shown.code is not None:
            assert {shown.code, following.code} <= {"bad-audit", "cannot-read"}, step
        else:
            if fault is not Fault.LOSE:  # no command reads the table `summary`
                case.require_readable(ids)
            assert (shown.result, following.result) == (report, third), step
    assert count >= 1


@pytest.mark.parametrize("fault", Fault)
def test_snapshot_is_complete_or_fails(faulty: FaultyFleet, tmp_path: Path, fault: Fault) -> None:
    case = faulty.copy(tmp_path / "expected")
    clusters, difference, history = case.snapshot(), case.diff(), case.history()
    assert difference[0]
    earlier_ids = list_record_ids(LocalStorage(faulty.out), SNAPSHOTS)
    for case, outcome, step in disturb_everywhere(faulty, tmp_path, fault, FaultyFleet.snapshot):
        check_outcome(outcome, clusters, step)
        ids = list_record_ids(LocalStorage(case.out), SNAPSHOTS)
        assert ids[: len(earlier_ids)] == earlier_ids, step
        if len(ids) == len(earlier_ids):
            assert outcome.result is None, step
            assert case.snapshot() == clusters, step
        compared, versions = run(case.diff), run(case.history)
        if fault is Fault.LOSE and outcome.result is not None:
            assert compared.code in ("bad-snapshot", "cannot-read") or compared.result == difference, step
            assert versions.code in ("bad-snapshot", "cannot-read") or versions.result == history, step
        else:
            assert (compared.result, versions.result) == (difference, history), step


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.FAIL_LATE, Fault.LATE])
@pytest.mark.parametrize("command", [FaultyFleet.report, FaultyFleet.diff, FaultyFleet.history])
def test_reader_is_complete_or_fails(
    faulty: FaultyFleet, tmp_path: Path, fault: Fault, command: Callable[[FaultyFleet], object]
) -> None:
    with_two = faulty.copy(tmp_path / "expected")
    with_two.audit()
    with_two.snapshot()
    expected = command(with_two)
    at = 1
    while True:
        disturbance = Disturbance(with_two.out, fault, at)
        with disturb(disturbance):
            outcome = run(lambda: command(with_two))
        if disturbance.steps < at:
            break
        check_outcome(outcome, expected, f"{fault} at {at} ({disturbance.names[at - 1]})")
        at += 1
    assert at > (1 if fault is Fault.LATE else 4)


def test_storage_is_replaced(faulty: FaultyFleet) -> None:
    disturbance = Disturbance(faulty.out, Fault.FAIL, 10**9)
    with disturb(disturbance):
        faulty.report()
    assert len(disturbance.names) > 4
    assert isinstance(FaultyStorage(faulty.out), LocalStorage)
