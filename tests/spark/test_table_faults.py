"""Tables on Spark, on a failing file system: a complete result or an error.

`tests/unit/fleet/test_faults.py` has the same tests for the local engine, for every step of every command.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kdeclare.app.fleet.job import Engine
from kdeclare.fleet.spark.tables import open_workbench, read_table, to_spark_schema
from kdeclare.fleet.tables.records import AUDITS, list_record_ids
from kdeclare.fleet.tables.rows import SUMMARY
from kdeclare.fleet.tables.storage import LocalStorage
from kdeclare.fleet.tables.unfinished_tables import publish_tables
from tests.spark.real_fleet import SECRETS, TAKEN_AT
from tests.spark.sharing import share_session
from tests.table_faults import (
    FEW_STEPS,
    KNOWN_CODES,
    CopyingStorage,
    Disturbance,
    Fault,
    FaultyFleet,
    FaultyStorage,
    Outcome,
    disturb,
    make_faulty_fleet,
    run,
    use_faulty_storage,
)

pytestmark = pytest.mark.spark

RECORD = "audits/1.json"
PATHS = {"summary": "summary/audit_id=1"}


def write_table(spark: SparkSession, storage: LocalStorage) -> int:
    """Write a table of three files like a command. Return the number of rows that the command has read."""
    row = dict.fromkeys(SUMMARY.names) | {"taken_at": TAKEN_AT, "count": 1}
    table = spark.createDataFrame([row | {"cluster": str(n)} for n in range(9)], to_spark_schema(SUMMARY))
    with open_workbench(spark, storage, "1", PATHS) as bench:
        bench.write(table.repartition(3), "summary")
        count = bench.read("summary", SUMMARY).groupBy().sum("count").collect()[0][0]
        with publish_tables(bench.tables, PATHS, RECORD):
            storage.write(RECORD, "{}")
    return int(count)


HALVES = (Fault.HALF, Fault.HALF_FAIL)
OTHERS = [fault for fault in Fault if fault not in (*HALVES, Fault.LATE)]


@pytest.mark.parametrize(
    ("storage_type", "fault"),
    [
        *((CopyingStorage, fault) for fault in OTHERS),
        *((FaultyStorage, fault) for fault in HALVES),
        *(pytest.param(FaultyStorage, fault, marks=pytest.mark.thorough) for fault in OTHERS),
    ],
)
def test_table_is_complete_or_absent(
    spark: SparkSession, tmp_path: Path, storage_type: type[FaultyStorage], fault: Fault
) -> None:
    """Each step fails in each way. The command lists no records, so no listing can be late.

    `CopyingStorage` moves no folders, so there is no step that can do half of its work.
    """
    at = 1
    with use_faulty_storage(storage_type):
        while True:
            storage = storage_type(tmp_path / str(at))
            disturbance = Disturbance(storage.folder, fault, at, which=at % 3)
            with disturb(disturbance):
                outcome = run(lambda: write_table(spark, storage))  # noqa: B023
            if disturbance.steps < at:
                break
            check_table(spark, LocalStorage(storage.folder), outcome, str(disturbance))
            at += 1
    assert at > (1 if fault in FEW_STEPS else 8)


def check_table(spark: SparkSession, storage: LocalStorage, outcome: Outcome, step: str) -> None:
    if outcome.code is not None:
        assert outcome.code in KNOWN_CODES, (outcome.code, step)
    elif not outcome.is_killed:
        assert outcome.result == 9, step
    if outcome.result is not None or storage.exists(RECORD):
        lost = "lost summary" in step and step.endswith(("before remove", "before exists"))
        count = read_table(spark, storage, PATHS["summary"], SUMMARY).count()
        assert count == 9 or ("lost" in step and count == 6), (step, lost)


@pytest.fixture(scope="module")
def faulty(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyFleet]:
    """Provide a fleet whose first audit and snapshot were written by the local engine."""
    with pytest.MonkeyPatch.context() as patch, share_session(spark):
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        with use_faulty_storage(CopyingStorage):
            fleet = make_faulty_fleet(tmp_path_factory.mktemp("faults"), patch)
            yield replace(fleet, engine=Engine.SPARK)


@pytest.mark.thorough
def test_audit_on_object_store_is_complete_or_fails(faulty: FaultyFleet, tmp_path: Path) -> None:
    expected = faulty.copy(tmp_path / "expected")
    counted = Disturbance(expected.out, Fault.FAIL, 10**9)
    with disturb(counted):
        result = expected.audit()
    local = replace(faulty, engine=Engine.LOCAL)
    assert local.copy(tmp_path / "local").audit() == result
    earlier_ids = list_record_ids(LocalStorage(faulty.out), AUDITS)
    last = counted.names.index(
        "list summary/audit_id=" + list_record_ids(LocalStorage(expected.out), AUDITS)[-1]
    )
    for number, at in enumerate((last // 2, last)):
        case = faulty.copy(tmp_path / str(at))
        disturbance = Disturbance(case.out, Fault.LOSE, at, number)
        with disturb(disturbance):
            outcome = run(case.audit)
        assert disturbance.fired
        if outcome.code is None:  # the file was not needed anymore
            assert outcome.result == result, disturbance.fired
            continue
        assert outcome.code in KNOWN_CODES, (disturbance.fired, outcome)
        assert list_record_ids(LocalStorage(case.out), AUDITS) == earlier_ids
        assert replace(case, engine=Engine.LOCAL).audit() == result


@pytest.mark.parametrize("reader", [FaultyFleet.report, FaultyFleet.diff, FaultyFleet.history])
def test_reader_on_spark_refuses_lost_file(
    faulty: FaultyFleet, tmp_path: Path, reader: Callable[[FaultyFleet], object]
) -> None:
    whole = faulty.copy(tmp_path / "whole")
    local = replace(whole, engine=Engine.LOCAL)
    local.audit()
    local.snapshot()
    assert reader(whole) == reader(local)
    table = "findings" if reader is FaultyFleet.report else "data"
    file = min((whole.out / table).rglob("*.parquet"))
    file.unlink()
    assert run(lambda: reader(whole)).code in ("bad-audit", "bad-snapshot", "cannot-read"), file
