"""Which ports are taken."""

import socket
from collections.abc import Iterable

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.settings import CONTROLLER_PORT_OFFSET, HOST, WORKER_PORT_OFFSET, SandboxSettings


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback address now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Kafka does: connections of an earlier run that linger are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def refuse_taken(
    settings: SandboxSettings, broker_ids: Iterable[int], worker_ids: Iterable[int] = ()
) -> None:
    """Raise KdeclareError ``port-taken`` unless the ports of these brokers and workers are free."""
    wanted = {p: f"broker {i}" for i in broker_ids for p in settings.ports(i)}
    wanted |= {
        settings.controller_port(i): f"controller {i}" for i in broker_ids if i in settings.controller_ids
    }
    wanted |= {settings.worker_port(i): f"Connect worker {i}" for i in worker_ids}
    taken = [p for p in wanted if not is_free(p)]
    if taken:
        named = ", ".join(f"{p} ({wanted[p]})" for p in taken)
        workers = f", {WORKER_PORT_OFFSET} above that for Connect workers" if settings.connect_workers else ""
        raise KdeclareError(
            error(
                "port-taken",
                "A port is taken",
                f"{'Ports' if taken[1:] else 'Port'} {named} on {HOST}: in use by another process.",
                hint="Stop that process, or choose other ports with --port"
                f" (the sandbox uses {settings.port} and up{workers}, and {CONTROLLER_PORT_OFFSET} above"
                " that for controllers).",
            )
        )
