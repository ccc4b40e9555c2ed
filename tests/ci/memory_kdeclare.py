"""kdeclare with an in-memory cluster that is stored in a file between commands.

    python -m tests.ci.memory_kdeclare SOCKET

See `tests.waiting`.
"""

import copyreg
import json
import os
import pickle
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

from kdeclare.cli.main import main
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.waiting import serve

copyreg.pickle(type(threading.RLock()), lambda _: (threading.RLock, ()))


def load_cluster(file: Path) -> MemoryCluster:
    """Load the cluster."""
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, MemoryCluster)
    return found


def save_cluster(cluster: MemoryCluster, file: Path) -> None:
    """Store the cluster for the next command."""
    file.write_bytes(pickle.dumps(cluster))


def _run(arguments: list[str]) -> int:
    file = Path(os.environ["STUB_CLUSTER"])

    def connect(servers: str, config: Mapping[str, str], timeout_s: float, attempts: int) -> Cluster:
        given = {"config": dict(config), "arguments": arguments}
        with file.with_suffix(".connected").open("a") as told:
            told.write(json.dumps(given) + "\n")
        if cluster is None:
            raise KdeclareError(error("unreachable", "The cluster cannot be reached"))
        return cluster

    cluster = load_cluster(file) if file.exists() else None
    with patch.object(connection, "connect_cluster", connect):
        code = main(arguments)
    if cluster is not None:
        save_cluster(cluster, file)
    return code


if __name__ == "__main__":
    serve(sys.argv[1], _run)
