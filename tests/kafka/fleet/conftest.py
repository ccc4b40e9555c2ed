"""Three clusters of one broker each, started once for all tests of fleets.

The tests run in the order of their files. A file leaves no topics behind for the next one, except for
`test_fleet.py`, which also stops the last cluster. Later files use only the other clusters.
"""

from collections.abc import Iterator

import pytest

from kdeclare import sandbox
from kdeclare.sandbox import GroupSettings
from tests.conftest import free_ports_of_clusters
from tests.kafka.fleet.fleet_folder import CLUSTERS, RunningClusters
from tests.waiting import run_server


@pytest.fixture(scope="package")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningClusters]:
    """The running clusters."""
    count = len(CLUSTERS)
    folder = tmp_path_factory.mktemp("clusters") / "sandbox"
    settings = GroupSettings(folder, count, 1, 1, free_ports_of_clusters(count))
    try:
        sandbox.start_group(settings, print)
        with run_server() as program:
            yield RunningClusters(settings, program)
    finally:
        sandbox.reset_group(settings)
