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

_EVERY_SECONDS = 0.3
_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"

Progress = Callable[[str, int, int], None]
"""Told what is done, how many tasks of it are over and how many there are so far."""


@contextmanager
def watched(spark: SparkSession, progress: Progress, text: str) -> Iterator[None]:
    """Tell the progress of the jobs that this thread has run in the block, until it ends.

    Told from a thread of its own. A progress that raises is told no more; the jobs go on.
    """
    context, group = spark.sparkContext, uuid4().hex
    over = threading.Event()
    with _job_group(context, group, text):
        teller = threading.Thread(
            target=_tell, args=(context.statusTracker(), group, progress, text, over), daemon=True
        )
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()


@contextmanager
def _job_group(context: SparkContext, group: str, text: str) -> Iterator[None]:
    before = {key: context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION)}
    context.setLocalProperty(_GROUP, group)
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        try:
            for key, value in before.items():
                context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None takes it away
        except (Py4JError, OSError):
            # Not instead of the exception that tells why the JVM is gone.
            _log.debug("The job group was not reset", exc_info=True)


def _tell(tracker: StatusTracker, group: str, progress: Progress, text: str, over: threading.Event) -> None:
    """Also once more at the end: what was quick was never seen."""
    last = (-1, -1)
    while True:
        ending = over.wait(_EVERY_SECONDS)
        try:
            now = _tasks(tracker, group)
            if now != last and now[1]:
                progress(text, *now)
        except Exception:  # noqa: BLE001  it only tells; the job says itself when it fails
            _log.warning("Progress is told no more: %s", text, exc_info=True)
            return
        if ending:
            return
        last = now


def _tasks(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """Tasks that are over and tasks that are known of."""
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        if info is None:
            continue
        for stage in map(tracker.getStageInfo, info.stageIds):
            if stage is None:
                continue
            done += stage.numCompletedTasks
            # Stages that an earlier job has done already are never run.
            total += stage.numCompletedTasks if info.status == "SUCCEEDED" else stage.numTasks
    return done, total
