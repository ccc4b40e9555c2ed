"""The progress of jobs is reported while they run."""

import logging
import threading
import time

import pytest
from pyspark import SparkJobInfo, SparkStageInfo, StatusTracker
from pyspark.sql import SparkSession

from kdeclare.fleet.spark.progress import report_progress

pytestmark = pytest.mark.spark


def sleep_and_return(number: int) -> int:
    time.sleep(0.4)
    return number


def test_progress_counts_all_tasks(spark: SparkSession) -> None:
    heard: list[tuple[str, int, int]] = []
    with report_progress(spark, lambda *told: heard.append(told), "Reading"):
        spark.sparkContext.parallelize(range(8), 8).map(sleep_and_return).count()
    assert heard[-1] == ("Reading", 8, 8)
    assert len(heard) > 2
    assert heard == sorted(heard)
    assert {total for _, _, total in heard} == {8}


class LateStatusTracker(StatusTracker):
    """Spark's status tracker, whose last events arrive only after some more requests."""

    def __init__(self, tracker: StatusTracker, late_requests: int) -> None:
        self.late_requests = late_requests
        self._tracker = tracker

    def getJobIdsForGroup(self, jobGroup: str | None = None) -> list[int]:  # noqa: N802, N803
        return self._tracker.getJobIdsForGroup(jobGroup)

    def getJobInfo(self, jobId: int) -> SparkJobInfo | None:  # noqa: N802, N803
        info = self._tracker.getJobInfo(jobId)
        if info is None or info.status == "RUNNING" or not self.late_requests:
            return info
        self.late_requests -= 1
        return info._replace(status="RUNNING")

    def getStageInfo(self, stageId: int) -> SparkStageInfo | None:  # noqa: N802, N803
        info = self._tracker.getStageInfo(stageId)
        if info is None or not self.late_requests:
            return info
        return info._replace(numCompletedTasks=min(info.numCompletedTasks, info.numTasks - 1))


def test_last_report_waits_for_late_events(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    context = spark.sparkContext
    late = LateStatusTracker(context.statusTracker(), late_requests=5)
    monkeypatch.setattr(context, "statusTracker", lambda: late)
    heard: list[tuple[str, int, int]] = []
    with report_progress(spark, lambda *told: heard.append(told), "Reading"):
        context.parallelize(range(8), 8).count()
    assert heard[-1] == ("Reading", 8, 8)


def test_failed_block_does_not_wait_for_late_events(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C, jobs can still be running."""
    context = spark.sparkContext
    late = LateStatusTracker(context.statusTracker(), late_requests=100)
    monkeypatch.setattr(context, "statusTracker", lambda: late)

    def count_and_interrupt() -> None:
        context.parallelize(range(8), 8).count()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), report_progress(spark, lambda *_: None, "Reading"):
        count_and_interrupt()
    assert late.late_requests > 90


def test_progress_ignores_skipped_stages(spark: SparkSession) -> None:
    heard: list[tuple[str, int, int]] = []
    shuffled = spark.sparkContext.parallelize([(n, n) for n in range(8)], 4).groupByKey(2)
    with report_progress(spark, lambda *told: heard.append(told), "Twice"):
        shuffled.count()
        shuffled.count()
    assert heard[-1] == ("Twice", 8, 8)


def test_progress_counts_only_jobs_of_its_block(spark: SparkSession) -> None:
    heard: list[tuple[str, int, int]] = []
    threads = threading.active_count()
    spark.sparkContext.setJobGroup("outer", "outer")
    with report_progress(spark, lambda *told: heard.append(told), "Nothing"):
        pass
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "outer"
    spark.range(3).count()
    assert heard == []
    assert threading.active_count() <= threads


def test_progress_propagates_failure_of_block(spark: SparkSession) -> None:
    with pytest.raises(ZeroDivisionError), report_progress(spark, lambda *_: None, "Failing"):
        raise ZeroDivisionError


def test_failing_progress_listener_does_not_stop_job(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a broken terminal")

    with caplog.at_level(logging.WARNING), report_progress(spark, fails, "Reading"):
        assert spark.sparkContext.parallelize(range(4), 4).map(sleep_and_return).sum() == 6
    (record,) = caplog.records
    assert "Progress is no longer reported: Reading" in record.getMessage()
