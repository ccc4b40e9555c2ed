"""Three clusters of one broker each, with real brokers, from start to reset."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kdeclare import sandbox
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client import connect
from kdeclare.sandbox import GroupSettings
from tests.conftest import free_ports_of_clusters

pytestmark = pytest.mark.kafka


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[GroupSettings]:
    """Settings of three clusters that are not started; deleted after the test."""
    settings = GroupSettings(tmp_path / "sandbox", 3, 1, 1, free_ports_of_clusters(3))
    yield settings
    sandbox.reset_group(settings)


def run_kdeclare(settings: GroupSettings, *arguments: str) -> str:
    """Run ``kdeclare sandbox …`` on the folder and return its output."""
    command = [sys.executable, "-m", "kdeclare", "sandbox", *arguments, "--folder", str(settings.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
def test_three_clusters_start_stop_and_reset(settings: GroupSettings) -> None:
    printed = run_kdeclare(
        settings, "start", "--clusters", "3", "--brokers", "1", "--port", str(settings.port)
    )
    assert printed.splitlines() == [one.bootstrap for one in settings.members]
    now = sandbox.group_status(settings)
    assert now.ready
    assert len({one.cluster_id for one in now.clusters}) == 3
    pids = [broker.pid for broker in now.brokers]
    assert sum(psutil.Process(pid).memory_info().rss for pid in pids) < 1024**3
    assert [_read_cluster_id(one.bootstrap) for one in now.clusters] == [
        one.cluster_id for one in now.clusters
    ]

    # One of them is stopped, and only that one is started again.
    sandbox.stop(settings.members[1].folder)
    assert [one.ready for one in sandbox.group_status(settings).clusters] == [True, False, True]
    back = sandbox.start_group(settings, lambda _: None)
    assert back.ready
    again = [broker.pid for broker in back.brokers]
    assert [new == old for new, old in zip(again, pids, strict=True)] == [True, False, True]

    run_kdeclare(settings, "stop")
    stopped = sandbox.group_status(settings)
    assert not stopped.running
    assert [one.cluster_id for one in stopped.clusters] == [one.cluster_id for one in now.clusters]
    run_kdeclare(settings, "reset", "--yes")
    assert not settings.folder.exists()
    assert not any(_is_running(pid) for pid in again)


def _is_running(pid: int | None) -> bool:
    """A broker started by this process stays a zombie when another process ends it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _read_cluster_id(bootstrap: str) -> str:
    with closing(connect(bootstrap, {}, timeout_s=20)) as cluster:
        return cluster.describe().id


def test_failed_start_leaves_no_process_of_any_cluster(settings: GroupSettings) -> None:
    with pytest.raises(KdeclareError, match=r"not ready within 0 s"):
        sandbox.start_group(replace(settings, clusters=2), lambda _: None, timeout=0.0)
    now = sandbox.group_status(replace(settings, clusters=2))
    assert all(one.exists for one in now.clusters)
    assert not now.running
