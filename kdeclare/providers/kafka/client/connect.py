"""Open a `KafkaCluster` from addresses and client properties."""

import logging
import re
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.kafka.client.access.login import can_log_in
from kdeclare.providers.kafka.client.cluster import KafkaCluster
from kdeclare.providers.kafka.client.connection_problems import (
    AddressProblem,
    build_unreachable_error,
    explain_broker_error,
    explain_closed_connection,
    explain_connection_error,
    is_closed_by_peer,
    probe_protocol,
)
from kdeclare.providers.kafka.client.properties import build_client_arguments, resolve_config_providers
from kdeclare.providers.kafka.client.wire import Wire

if TYPE_CHECKING:
    from kdeclare.providers.kafka.client.oauth import TokenProvider

_STAGGER_S = 0.25
"""The seconds to wait for an address before also trying the next address."""

_HOST = re.compile(r"\[[^][]+\]|[^][:]+")
"""A host name or an IP address. An IPv6 address is in brackets, which separate it from the port."""

_DEFAULTS: Mapping[str, Any] = {
    "client_id": "kdeclare",
    # requests are pipelined, and kafka-python rejects requests over this limit instead of queueing them
    "max_in_flight_requests_per_connection": 1000,
    "receive_message_max_bytes": 2**30,
    # kafka-python's default backoff grows to 30 s, longer than kdeclare waits for a connection
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
    """Connect to a cluster with addresses of the form ``host:port[,host:port…]``.

    client_config: Kafka client properties. ``bootstrap.servers`` is used if ``bootstrap_servers`` is empty;
        ``request.timeout.ms`` overrides ``request_timeout_s``.
    timeout_s: the seconds to wait until one of the addresses responds.
    If a connection to a broker is lost later, kafka-python reconnects, and `RetryingCluster` retries.
    Raises KdeclareError: ``unreachable`` with the problem of each address, ``client-properties``,
    ``no-token``.
    """
    client_config = resolve_config_providers(client_config)
    arguments, warnings = build_connection_arguments(bootstrap_servers, client_config)
    request_timeout_s = arguments.get("request_timeout_ms", request_timeout_s * 1000) / 1000
    wire = Wire(
        {**_DEFAULTS, **arguments, "request_timeout_ms": request_timeout_s * 1000},
        request_timeout_s=request_timeout_s,
    )
    protocol = arguments["security_protocol"]
    opener = _ClusterOpener(wire, tls=protocol.endswith("SSL"), sasl=protocol.startswith("SASL"))
    try:
        opener.within(timeout_s)
    except BaseException:
        wire.close()
        raise
    user = arguments.get("sasl_plain_username")
    return KafkaCluster(
        wire,
        warnings,
        f"User:{user}" if user else None,
        arguments.get("sasl_mechanism"),
        partial(can_log_in, ",".join(arguments["bootstrap_servers"]), client_config),
    )


def build_connection_arguments(
    bootstrap_servers: str, client_config: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """Return kafka-python's arguments for the connections of any client, and warnings about properties.

    The parameters are those of `connect`. Raises KdeclareError: ``bootstrap-servers``, ``client-properties``,
    ``no-token``.
    """
    _silence_client_log()
    properties = resolve_config_providers(client_config)
    # token providers might need the addresses
    stated = {"bootstrap.servers": bootstrap_servers} if bootstrap_servers else {}
    arguments, warnings = build_client_arguments({**properties, **stated})
    if bootstrap_servers:
        servers = _parse_servers(bootstrap_servers)
    else:
        servers = _parse_servers(properties.get("bootstrap.servers", ""), in_properties=True)
    tokens: TokenProvider | None = arguments.get("sasl_oauth_token_provider")
    if tokens is not None:
        tokens.first()
    return {**arguments, "bootstrap_servers": servers}, warnings


def _silence_client_log() -> None:
    """Silence kafka-python, unless a level is set for the logger ``kafka``.

    If the level is DEBUG, raise it to INFO, because DEBUG logs requests with passwords and sensitive configs.
    """
    log = logging.getLogger("kafka")
    if log.level == logging.NOTSET:
        log.setLevel(logging.CRITICAL + 1)
    elif log.level < logging.INFO:
        log.setLevel(logging.INFO)


def _parse_servers(text: str, *, in_properties: bool = False) -> list[str]:
    """Parse addresses of the form ``host:port``. Raises KdeclareError.

    in_properties: whether the addresses are from client properties. Error messages then do not quote an
        address, because it can be a misplaced secret.
    """
    servers = [part.strip() for part in text.split(",") if part.strip()]
    for number, server in enumerate(servers, start=1):
        host, _, port = server.rpartition(":")
        if not _HOST.fullmatch(host) or not 0 < (parse_whole_number(port) or 0) < 65536:
            masked_address = f"Address {number} of bootstrap.servers in the client properties"
            address_text = masked_address if in_properties else f"'{server}'"
            raise KdeclareError(
                error(
                    "bootstrap-servers",
                    "Invalid address",
                    f"{address_text} is not of the form host:port.",
                    hint="Use addresses such as localhost:9092 or [::1]:9092, separated by commas.",
                )
            )
    if not servers:
        raise KdeclareError(
            error(
                "bootstrap-servers",
                "No cluster address",
                "No bootstrap server is configured.",
                hint="Pass --bootstrap-server HOST:PORT, or set spec.bootstrapServers in the project file.",
            )
        )
    return servers


class _ClusterOpener:
    """Tries the bootstrap addresses in order.

    After a failure or a short delay, also tries the next address. Earlier attempts continue in parallel.
    """

    def __init__(self, wire: Wire, *, tls: bool, sasl: bool) -> None:
        self._wire = wire
        self._tls = tls
        self._sasl = sasl
        self._problems: dict[str, AddressProblem] = {}
        self._closed_addresses: list[str] = []
        self._finished = threading.Event()
        self._is_open = False

    def within(self, timeout_s: float) -> None:
        """Open the cluster. Raises KdeclareError if no address works within ``timeout_s``."""
        timeout_at = time.monotonic() + timeout_s
        # `run` has no time limit, and a name lookup can block the event loop
        self._wire.spawn(self._try_all_addresses, timeout_at)
        self._finished.wait(timeout_s + 0.2)
        if self._is_open:
            return
        for address in self._closed_addresses[:3]:
            host, _, port = address.rpartition(":")
            self._problems[address] = explain_closed_connection(
                probe_protocol(host, int(port)), tls=self._tls, sasl=self._sasl
            )
        silent = AddressProblem("no response in time", "Check --bootstrap-server.")
        addresses = sorted(self._wire.list_bootstrap_addresses().values())
        raise build_unreachable_error({address: self._problems.get(address, silent) for address in addresses})

    async def _try_all_addresses(self, timeout_at: float) -> None:
        try:
            attempts = []
            for node, address in self._wire.list_bootstrap_addresses().items():
                attempts.append(self._wire.spawn(self._try_address, node, address, timeout_at))
                next_attempt_at = min(timeout_at, time.monotonic() + _STAGGER_S)
                while not attempts[-1].is_done and not self._is_open and time.monotonic() < next_attempt_at:
                    await self._wire.sleep(0.005)
                if self._is_open:
                    return
            for attempt in attempts:
                await attempt
        finally:
            self._finished.set()

    async def _try_address(self, node: str, address: str, timeout_at: float) -> None:
        try:
            await self._wire.bootstrap(node, timeout_at)
        except Exception as exc:  # noqa: BLE001  kafka-python and ssl raise many types here
            self._problems[address] = explain_connection_error(exc, tls=self._tls)
            if is_closed_by_peer(exc):
                self._closed_addresses.append(address)
            return
        try:
            await self._wire.connect_to_any(timeout_at)
        except Exception as exc:  # noqa: BLE001
            brokers = ", ".join(self._wire.get_address(broker) for broker in self._wire.brokers())
            self._problems[address] = explain_broker_error(exc, brokers, tls=self._tls)
            return
        self._is_open = True
        self._finished.set()
