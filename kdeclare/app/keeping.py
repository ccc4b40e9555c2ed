"""Connections that outlive a command, for a shell that runs one after the other."""

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass

from kdeclare.app.workspace import Connector
from kdeclare.core.faults import Fault
from kdeclare.providers.connect.client.port import ConnectWorkers, Door
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka.port import Cluster

_log = logging.getLogger(__name__)

_ANSWERS_WITHIN_S = 2.0
"""How long a kept connection may take to say that it still works."""
_MOST = 4
"""How many clusters are kept; of more, the one that was wanted longest ago is let go."""

_Key = tuple[str, frozenset[tuple[str, str]], Door]


@dataclass(slots=True)
class _LatestDoor:
    """Leads where the door of the latest command leads, which reads the workers' files as they are by now."""

    door: Door

    def __call__(self, group: WorkerGroup) -> ConnectWorkers:
        return self.door(group)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A cluster, and the door that it was opened with."""

    cluster: Cluster
    door: _LatestDoor


class KeptConnections:
    """A `Connector` that gives the cluster again which it has opened before, if it still answers.

    Whoever gets one must not close it (`Workspace.keeps`). One that does not answer any more is opened
    anew: then what is wrong is said as it is at a first connection, within the time that was given for
    it, and brokers are found that came back elsewhere. Safe to use from several threads.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._lock = threading.Lock()
        self._open: dict[_Key, _Kept] = {}

    def __call__(self, servers: str, config: Mapping[str, str], timeout_s: float, door: Door) -> Cluster:
        """The cluster. Raises KdeclareError."""
        key = (servers, frozenset(config.items()), door)
        until = time.monotonic() + timeout_s
        with self._lock:
            known = self._open.get(key)
        if known is not None:
            if _answers(known.cluster, min(timeout_s / 2, _ANSWERS_WITHIN_S)):
                known.door.door = door
                self._keep(key, known)
                return known.cluster
            self._let_go(key, known)
        latest = _LatestDoor(door)
        made = self._connector(servers, config, max(0.1, until - time.monotonic()), latest)
        self._keep(key, _Kept(made, latest))
        return made

    def close(self) -> None:
        """Let go of all of them, waiting for nothing."""
        with self._lock:
            closing = list(self._open.items())
        for item in closing:
            self._let_go(*item)

    def _keep(self, key: _Key, kept: _Kept) -> None:
        with self._lock:
            before = self._open.pop(key, kept)
            self._open[key] = kept  # the last is the latest
            spare = list(self._open.items())[:-_MOST]
        if before is not kept:  # two were opened at the same time
            _close(before.cluster)
        for item in spare:
            self._let_go(*item)

    def _let_go(self, key: _Key, kept: _Kept) -> None:
        with self._lock:
            if self._open.get(key) is kept:
                del self._open[key]
        _close(kept.cluster)


def _answers(cluster: Cluster, within_s: float) -> bool:
    answered: Future[bool] = Future()

    def ask() -> None:
        try:
            cluster.describe()
        except Exception as problem:  # noqa: BLE001  a new connection says what is wrong, if it still is
            _log.info("connecting anew: %s", problem)
            answered.set_result(False)
        else:
            answered.set_result(True)

    threading.Thread(target=ask, name="still-there", daemon=True).start()
    return bool(wait([answered], within_s).done) and answered.result()


def _close(cluster: Cluster) -> None:
    """In the background: what does not answer does not end at once either."""

    def close() -> None:
        with suppress(Fault, OSError):
            cluster.close()

    threading.Thread(target=close, name="close", daemon=True).start()
