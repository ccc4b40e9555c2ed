"""How far Spark's jobs are."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkContext, StatusTracker
from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.3
_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"

JobProgress = Callable[[str, int, int], None]
"""Told what is done, how many tasks of it are over and how many there are so far."""


@contextmanager
def report_progress(spark: SparkSession, progress: JobProgress, text: str) -> Iterator[None]:
    """Tell the progress of the jobs that this thread has run in the block, until it ends.

    Told from a thread of its own. A progress that raises is told no more; the jobs go on.
    """
    context, group = spark.sparkContext, uuid4().hex
    finished = threading.Event()
    with _use_job_group(context, group, text):
        reporter = threading.Thread(
            target=_poll_progress,
            args=(context.statusTracker(), group, progress, text, finished),
            daemon=True,
        )
        reporter.start()
        try:
            yield
        finally:
            finished.set()
            reporter.join()


@contextmanager
def _use_job_group(context: SparkContext, group: str, text: str) -> Iterator[None]:
    previous_properties = {key: context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION)}
    context.setLocalProperty(_GROUP, group)
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        try:
            for key, value in previous_properties.items():
                context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None takes it away
        except (Py4JError, OSError):
            # Not instead of the exception that tells why the JVM is gone.
            _log.debug("The job group was not reset", exc_info=True)


def _poll_progress(
    tracker: StatusTracker, group: str, progress: JobProgress, text: str, finished: threading.Event
) -> None:
    """Also once more at the end: what was quick was never seen."""
    last_counts = (-1, -1)
    while True:
        is_finished = finished.wait(_POLL_SECONDS)
        try:
            counts = _count_tasks(tracker, group)
            if counts != last_counts and counts[1]:
                progress(text, *counts)
        except Exception:  # noqa: BLE001  it only tells; the job says itself when it fails
            _log.warning("Progress is told no more: %s", text, exc_info=True)
            return
        if is_finished:
            return
        last_counts = counts


def _count_tasks(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """Tasks that are over and tasks that are known of."""
    completed_count = total_count = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        if info is None:
            continue
        for stage in map(tracker.getStageInfo, info.stageIds):
            if stage is None:
                continue
            completed_count += stage.numCompletedTasks
            # Stages that an earlier job has done already are never run.
            total_count += stage.numCompletedTasks if info.status == "SUCCEEDED" else stage.numTasks
    return completed_count, total_count
