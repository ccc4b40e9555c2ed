"""Reserve ports for servers that tests start later, so that two tests never choose the same port.

A port that is free now can be in use when the server of a test binds it seconds later. Therefore a test
process locks each port that it chooses, and keeps the lock to its end. The locks are POSIX record locks
(``fcntl``) on one file: the lock of port *n* is the byte *n*. The kernel releases them when the process ends,
even if it is killed, and brokers that the process starts do not inherit them.
"""

import fcntl
import os
import random
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

# Below the range from which Linux chooses the ports of outgoing connections (ip_local_port_range).
FIRST_PORTS = range(20000, 30000)

LOCK_FILE = Path(tempfile.gettempdir()) / f"kdeclare-test-ports-{os.getuid()}"


class PortLocks:
    """The ports that this process has reserved in a file.

    A process has at most one object for each file, because closing any descriptor of the file unlocks all.
    """

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._reserved: set[int] = set()

    def try_reserve(self, ports: Iterable[int]) -> bool:
        """Reserve all these ports or none of them. Return whether they are reserved.

        A port is not available if a test process has reserved it, this process included, or if it is in use.
        """
        from kdeclare.sandbox import is_free

        locked: list[int] = []
        for port in ports:
            # A process can lock a byte twice, so its own reservations must be checked, too.
            if port in self._reserved or not self._lock(port):
                break
            locked.append(port)
            if not is_free(port):
                break
        else:
            self._reserved.update(locked)
            return True
        for port in locked:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, port)
        return False

    def _lock(self, port: int) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:  # EACCES or EAGAIN: another process has locked it
            return False
        return True


_LOCKS = PortLocks(LOCK_FILE)


def reserve_ports(list_ports: Callable[[int], Iterable[int]]) -> int:
    """Choose a first port at random, reserve the ports that belong to it, and return it.

    list_ports: returns all ports that are needed if the given port is the first one.
    """
    for first in random.sample(FIRST_PORTS, 1000):
        if _LOCKS.try_reserve(list_ports(first)):
            return first
    raise AssertionError("1,000 first ports were tried, and each needed a port that is reserved or in use")


def reserve_port() -> int:
    """Reserve one port, and return it."""
    return reserve_ports(lambda port: (port,))
