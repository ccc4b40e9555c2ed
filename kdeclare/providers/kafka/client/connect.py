"""Opening a cluster: from addresses and client properties to a `KafkaCluster`."""

import logging
import re
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.providers.kafka.client.cluster import KafkaCluster
from kdeclare.providers.kafka.client.connection_problems import (
    Seen,
    explain,
    explain_brokers,
    explain_closed,
    probe,
    unreachable,
    was_closed,
)
from kdeclare.providers.kafka.client.properties import client_arguments, provided
from kdeclare.providers.kafka.client.wire import Wire

if TYPE_CHECKING:
    from kdeclare.providers.kafka.client.oauth import Tokens

_STAGGER_S = 0.25
"""How long one address may keep the next one waiting: a dead one must not use up the time."""

_HOST = re.compile(r"\[[^][]+\]|[^][:]+")
"""Without brackets, where an IPv6 address ends and its port begins nobody can tell."""

_DEFAULTS: Mapping[str, Any] = {
    "client_id": "kdeclare",
    # Pipelined: kafka-python refuses what is over this, it does not queue it.
    "max_in_flight_requests_per_connection": 1000,
    "receive_message_max_bytes": 2**30,
    # Its default grows to 30 s, far longer than anything here waits.
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 1000,
    "api_version": None,
}


def connect(
    bootstrap_servers: str,
    client_config: Mapping[str, str],
    *,
    timeout_s: float = 10.0,
    request_timeout_s: float = 30.0,
) -> KafkaCluster:
    """Connect to a cluster by ``host:port[,host:port…]``.

    client_config: Kafka client properties. Its ``bootstrap.servers`` stands where
        ``bootstrap_servers`` is empty, its ``request.timeout.ms`` before ``request_timeout_s``.
    timeout_s: until when one address must have answered.
    Raises KdeclareError: ``unreachable`` with what was seen at each address, ``client-properties``,
    ``no-token``.
    """
    _quiet_client_log()
    client_config = provided(client_config)
    arguments, warnings = client_arguments(client_config)
    if bootstrap_servers:
        servers = _servers(bootstrap_servers)
    else:
        servers = _servers(client_config.get("bootstrap.servers", ""), in_properties=True)
    tokens: Tokens | None = arguments.get("sasl_oauth_token_provider")
    if tokens is not None:
        tokens.first()
    request_timeout_s = arguments.get("request_timeout_ms", request_timeout_s * 1000) / 1000
    wire = Wire(
        {
            **_DEFAULTS,
            **arguments,
            "bootstrap_servers": servers,
            "request_timeout_ms": request_timeout_s * 1000,
        },
        request_timeout_s=request_timeout_s,
    )
    protocol = arguments["security_protocol"]
    opening = _Opening(wire, tls=protocol.endswith("SSL"), sasl=protocol.startswith("SASL"))
    try:
        opening.within(timeout_s)
    except BaseException:
        wire.close()
        raise
    user = arguments.get("sasl_plain_username")
    return KafkaCluster(wire, warnings, f"User:{user}" if user else None)


def _quiet_client_log() -> None:
    """Keep kafka-python from writing, unless someone asked for its logger ``kafka`` by level.

    DEBUG is never granted: it shows requests whole, with passwords and sensitive configs.
    """
    log = logging.getLogger("kafka")
    if log.level == logging.NOTSET:
        log.setLevel(logging.CRITICAL + 1)
    elif log.level < logging.INFO:
        log.setLevel(logging.INFO)


def _servers(text: str, *, in_properties: bool = False) -> list[str]:
    """The addresses, each ``host:port``. Raises KdeclareError.

    in_properties: they are from client properties, where what is no address may be a secret by mistake.
    """
    servers = [part.strip() for part in text.split(",") if part.strip()]
    for number, server in enumerate(servers, start=1):
        host, _, port = server.rpartition(":")
        if (
            not _HOST.fullmatch(host)
            or not (port.isascii() and port.isdecimal())
            or not 0 < int(port) < 65536
        ):
            kept = f"Address {number} of bootstrap.servers in the client properties"
            what = kept if in_properties else f"'{server}'"
            raise KdeclareError(
                error(
                    "bootstrap-servers",
                    "Address is not of the form host:port",
                    f"{what} is not of the form host:port.",
                    hint="Write for example localhost:9092, or [::1]:9092; several go with commas between.",
                )
            )
    if not servers:
        raise KdeclareError(
            error(
                "bootstrap-servers",
                "No address of a cluster is given",
                hint="Give --bootstrap-server HOST:PORT, or spec.bootstrapServers in the project.",
            )
        )
    return servers


class _Opening:
    """Trying the addresses, the next one when the one before has failed or is slow."""

    def __init__(self, wire: Wire, *, tls: bool, sasl: bool) -> None:
        self._wire = wire
        self._tls = tls
        self._sasl = sasl
        self._seen: dict[str, Seen] = {}
        self._closed: list[str] = []
        self._done = threading.Event()
        self._open = False

    def within(self, timeout_s: float) -> None:
        """Raises KdeclareError when no address works in time."""
        timeout_at = time.monotonic() + timeout_s
        # Not `run`, which waits without end: looking a name up blocks the event loop.
        self._wire.spawn(self._try_all, timeout_at)
        self._done.wait(timeout_s + 0.2)
        if self._open:
            return
        for address in self._closed[:3]:
            host, _, port = address.rpartition(":")
            self._seen[address] = explain_closed(probe(host, int(port)), tls=self._tls, sasl=self._sasl)
        silent = Seen("no answer in time", "Check --bootstrap-server.")
        addresses = sorted(self._wire.bootstrap_addresses().values())
        raise unreachable({address: self._seen.get(address, silent) for address in addresses})

    async def _try_all(self, timeout_at: float) -> None:
        try:
            running = []
            for node, address in self._wire.bootstrap_addresses().items():
                running.append(self._wire.spawn(self._try, node, address, timeout_at))
                waited_until = min(timeout_at, time.monotonic() + _STAGGER_S)
                while not running[-1].is_done and not self._open and time.monotonic() < waited_until:
                    await self._wire.sleep(0.005)
                if self._open:
                    return
            for attempt in running:
                await attempt
        finally:
            self._done.set()

    async def _try(self, node: str, address: str, timeout_at: float) -> None:
        try:
            await self._wire.bootstrap(node, timeout_at)
        except Exception as exc:  # noqa: BLE001  kafka-python and ssl raise of every sort here
            self._seen[address] = explain(exc, tls=self._tls)
            if was_closed(exc):
                self._closed.append(address)
            return
        try:
            await self._wire.reach_any(timeout_at)
        except Exception as exc:  # noqa: BLE001
            brokers = ", ".join(self._wire.address(broker) for broker in self._wire.brokers())
            self._seen[address] = explain_brokers(exc, brokers, tls=self._tls)
            return
        self._open = True
        self._done.set()
