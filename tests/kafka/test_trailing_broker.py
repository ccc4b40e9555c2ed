"""Roll back, plan and delete at a real broker whose metadata trails the controller."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.collector import check_existence
from tests.kafka.test_bad_input import Project
from tests.kafka.trailing import TrailingCluster, start_trailing_broker

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

TOPICS = 400
CONFIGS = {
    "retention.ms": "7000000",
    "retention.bytes": "1000000000",
    "segment.bytes": "100000000",
    "segment.ms": "60000000",
    "max.message.bytes": "1000000",
    "flush.ms": "60000",
    "flush.messages": "10000",
    "index.interval.bytes": "4096",
    "file.delete.delay.ms": "60000",
    "delete.retention.ms": "86400000",
    "min.cleanable.dirty.ratio": "0.4",
    "min.compaction.lag.ms": "1",
    "max.compaction.lag.ms": "9223372036854775806",
    "preallocate": "false",
    "compression.type": "producer",
    "cleanup.policy": ["delete"],
    "message.timestamp.type": "CreateTime",
    "segment.jitter.ms": "1",
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "1",
}
"""So many that 400 topics take two requests."""


@pytest.fixture(scope="module")
def trailing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrailingCluster]:
    with start_trailing_broker(tmp_path_factory.mktemp("trailing")) as running:
        yield running


@pytest.fixture
def project(trailing: TrailingCluster, tmp_path: Path) -> Iterator[Project]:
    yield Project(tmp_path, trailing.bootstrap)
    trailing.proxy.release()


def find_existing(trailing: TrailingCluster, names: list[str]) -> frozenset[str]:
    """The topics that exist, says the controller."""
    with closing(connect(trailing.bootstrap, {})) as cluster:
        return check_existence(cluster, names).exists


def test_rollback_of_400_topics_deletes_those_that_the_broker_shows_late(
    trailing: TrailingCluster, project: Project
) -> None:
    names = [f"t{n}" for n in range(TOPICS)]
    project.topics(*names, configs=CONFIGS)
    trailing.proxy.hold_after = 30_000  # of about 80 kB
    project.done("apply", "--yes")
    assert trailing.proxy.holding
    timer = threading.Timer(20, trailing.proxy.release)
    timer.start()
    ran = project("rollback", "--yes")
    timer.cancel()
    trailing.proxy.release()
    assert ran.code is ExitCode.OK, ran
    assert f"{TOPICS} of {TOPICS} operations done" in ran.out
    assert not find_existing(trailing, [project.name(name) for name in names])


def test_rollback_names_topics_that_the_broker_does_not_show_in_time(
    trailing: TrailingCluster, project: Project
) -> None:
    project.topics("a", "b")
    trailing.proxy.holding = True
    project.done("apply", "--yes")
    began = time.monotonic()
    ran = project("rollback", "--yes", "--visibility-timeout", "2")
    assert time.monotonic() - began < 90, "without the option it is 120 s"
    both = [project.name("a"), project.name("b")]
    assert ran.code is ExitCode.PARTIAL, ran
    assert all(
        f"The run created Topic/{name}, but the system does not show it yet." in ran.out for name in both
    )
    assert find_existing(trailing, both) == set(both)
    planned = project("plan", "--visibility-timeout", "2")
    assert planned.code is ExitCode.DENIED, planned
    trailing.proxy.release()
    project.done("rollback", "--yes")
    assert not find_existing(trailing, both)
