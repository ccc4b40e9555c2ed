"""Report the progress of Spark jobs."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkContext, StatusTracker
from pyspark.sql import SparkSession

from kdeclare.fleet.spark.settings import is_connect_session

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.3
_LAST_EVENTS_SECONDS = 5.0
_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"

JobProgress = Callable[[str, int, int], None]
"""A function that receives a description, and the numbers of completed and planned tasks."""


@contextmanager
def report_progress(spark: SparkSession, progress: JobProgress, text: str) -> Iterator[None]:
    """Report the progress of the Spark jobs that the calling thread runs in the ``with`` block.

    progress: a function that is called from a separate thread or, with Spark Connect, from the calling
        thread. If it raises an exception, progress is no longer reported, but the jobs continue.
    text: the description of the work.
    """
    if is_connect_session(spark):
        with _report_server_progress(spark, progress, text):
            yield
        return
    context, group = spark.sparkContext, uuid4().hex
    tracker, finished = context.statusTracker(), threading.Event()
    with _use_job_group(context, group, text):
        reporter = threading.Thread(
            target=_poll_progress,
            args=(tracker, group, progress, text, finished),
            daemon=True,
        )
        reporter.start()
        try:
            yield
            with suppress(Py4JError, OSError):
                _await_ends_of_jobs(tracker, group)
        finally:
            finished.set()
            reporter.join()


@contextmanager
def _report_server_progress(spark: SparkSession, progress: JobProgress, text: str) -> Iterator[None]:
    """Report the progress of the requests that a Spark Connect session sends in the ``with`` block."""
    session: Any = spark
    counts_by_request: dict[str, tuple[int, int]] = {}

    def handle(
        stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, *, done: bool
    ) -> None:
        stages = list(stages or ())
        if not stages:
            return
        counts_by_request[operation_id or ""] = (
            sum(stage.num_completed_tasks for stage in stages),
            sum(stage.num_tasks for stage in stages),
        )
        completed_count, total_count = map(sum, zip(*counts_by_request.values(), strict=True))
        try:
            progress(text, completed_count, total_count)
        except Exception:  # noqa: BLE001  see `_poll_progress`
            _log.warning("Progress is no longer reported: %s", text, exc_info=True)
            session.removeProgressHandler(handle)

    session.registerProgressHandler(handle)
    try:
        yield
    finally:
        with suppress(ValueError):  # it was removed after an exception
            session.removeProgressHandler(handle)


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
                context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None removes the property
        except (Py4JError, OSError):
            # Do not hide the exception that explains why the JVM ended.
            _log.debug("The Spark job group could not be reset", exc_info=True)


def _poll_progress(
    tracker: StatusTracker, group: str, progress: JobProgress, text: str, finished: threading.Event
) -> None:
    """Report progress until ``finished`` is set, and one last time afterwards.

    Without the last report, a job that starts and ends between two polls would never be reported.
    """
    last_counts = (-1, -1)
    while True:
        is_finished = finished.wait(_POLL_SECONDS)
        try:
            counts = _count_tasks(tracker, group)
            if counts != last_counts and counts[1]:
                progress(text, *counts)
        except Exception:  # noqa: BLE001  a failed report must not fail the job, which reports its own errors
            _log.warning("Progress is no longer reported: %s", text, exc_info=True)
            return
        if is_finished:
            return
        last_counts = counts


def _await_ends_of_jobs(tracker: StatusTracker, group: str) -> None:
    """Wait until Spark counts no job of the group as running, for a few seconds at most.

    Spark returns the result of a job before its own listeners have handled the end of the last tasks.
    """
    deadline = time.monotonic() + _LAST_EVENTS_SECONDS
    while time.monotonic() < deadline:
        infos = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
        if not any(info is not None and info.status == "RUNNING" for info in infos):
            return
        time.sleep(_POLL_SECONDS / 10)


def _count_tasks(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """Return the number of completed tasks, and the number of tasks that Spark has planned so far."""
    completed_count = total_count = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        if info is None:
            continue
        for stage in map(tracker.getStageInfo, info.stageIds):
            if stage is None:
                continue
            completed_count += stage.numCompletedTasks
            # Stages that an earlier job completed are skipped.
            total_count += stage.numCompletedTasks if info.status == "SUCCEEDED" else stage.numTasks
    return completed_count, total_count
