"""kdeclare itself, at an in-memory cluster that a file keeps from one command to the next.

    python -m tests.ci.memory_kdeclare SOCKET

Starts once and waits at the socket. Each command is a fork of it, with the arguments, environment, folder and
open files of `hand_over.py`, which stands for kdeclare on a runner: so none pays for the imports again.
"""

import copyreg
import importlib
import json
import os
import pickle
import pkgutil
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer
from unittest.mock import patch

from kdeclare import app
from kdeclare.cli.main import main
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.testing import MemoryCluster

MESSAGE = 1 << 16
"""Bytes that a command and its environment have at most."""

copyreg.pickle(type(threading.RLock()), lambda _: (threading.RLock, ()))


def load(file: Path) -> MemoryCluster:
    """The cluster as it was left."""
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, MemoryCluster)
    return found


def keep(cluster: MemoryCluster, file: Path) -> None:
    """Leave the cluster for the next command."""
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

    cluster = load(file) if file.exists() else None
    with patch.object(connection, "connect_cluster", connect):
        code = main(arguments)
    if cluster is not None:
        keep(cluster, file)
    return code


class _Command(BaseRequestHandler):
    """One command, in the fork that is made for it."""

    def handle(self) -> None:
        told, files, _, _ = socket.recv_fds(self.request, MESSAGE, 3)
        arguments, environ, folder = json.loads(told)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.environ.clear()
        os.environ.update(environ)
        os.chdir(folder)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        code = _run(arguments)
        sys.stdout.flush()
        self.request.sendall(bytes([code]))


class _Server(ForkingMixIn, UnixStreamServer):
    pass


if __name__ == "__main__":
    with _Server(sys.argv[1], _Command) as server:
        for found in pkgutil.walk_packages(app.__path__, f"{app.__name__}."):
            importlib.import_module(found.name)
        print("ready", flush=True)
        server.serve_forever()
