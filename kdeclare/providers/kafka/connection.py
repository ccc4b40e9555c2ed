"""Connecting to a Kafka cluster: what an environment says of it, and what is opened by that."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.connecting import ConnectionType, Surroundings
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.faults import Fault, FaultKind
from kdeclare.core.retry import RetryPolicy
from kdeclare.core.scrubber import SCRUBBER
from kdeclare.core.secrets import is_sensitive_key
from kdeclare.providers.kafka.client_config import read_client_config
from kdeclare.providers.kafka.port import QUOTA_EXCEEDED, QUOTA_HINT, Cluster

_log = logging.getLogger(__name__)

_ATTEMPTS = 6
_QUOTED = re.compile(r'(?:password|secret|token)\w*\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)

SERVERS_OPTION = "bootstrap-server"
CONFIG_OPTION = "command-config"
"""The options of the command line that stand in place of settings, and beside them."""


class KafkaSettings(BaseModel):
    """What an environment says of its cluster. The path of the file is ready to be opened."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    bootstrap_servers: str | None = Field(None, alias="bootstrapServers")
    client_config: Mapping[str, str] = Field({}, alias="clientConfig", repr=False)
    client_config_file: Path | None = Field(None, alias="clientConfigFile")


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """The connection to the Kafka cluster."""

    cluster: Cluster

    def check(self) -> None:
        """See `core.connecting.Keepable`."""
        self.cluster.describe()

    def close(self) -> None:
        """See `core.connecting.Closable`."""
        self.cluster.close()


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """A cluster at addresses, with client properties.

    servers: empty where the properties name them.
    """

    servers: str
    config: tuple[tuple[str, str], ...] = field(repr=False)
    attempts: int = _ATTEMPTS

    def open(self, timeout_s: float) -> KafkaConnection:
        """See `core.connecting.Target`."""
        return KafkaConnection(connect_cluster(self.servers, dict(self.config), timeout_s, self.attempts))


def connect_cluster(servers: str, config: Mapping[str, str], timeout_s: float, attempts: int) -> Cluster:
    """Connect to real brokers, with retries around what is asked of them. Raises KdeclareError."""
    from kdeclare.providers.kafka.client import connect  # most commands meet no cluster
    from kdeclare.providers.kafka.client.retrying import Retrying, log_retry

    cluster = connect(servers, config, timeout_s=timeout_s)
    for found in cluster.diagnostics:
        _log.warning("%s", found.detail or found.summary)
    return Retrying(cluster, RetryPolicy(attempts, on_retry=log_retry))


def stated_servers(settings: KafkaSettings, surroundings: Surroundings) -> str | None:
    """Return the addresses that the command line or the environment names."""
    return surroundings.options.get(SERVERS_OPTION) or settings.bootstrap_servers


def read_client_properties(settings: KafkaSettings, surroundings: Surroundings) -> dict[str, str]:
    """Return the client properties of an environment, and over them those of the command line.

    Raises KdeclareError when a file cannot be read or a reference in it leads nowhere.
    """
    config = dict(settings.client_config)
    given = surroundings.options.get(CONFIG_OPTION)
    for file in (settings.client_config_file, Path(given) if given is not None else None):
        if file is not None:
            config |= read_client_config(file, surroundings.references, surroundings.environ)
    for name, value in config.items():
        if is_sensitive_key(name):
            SCRUBBER.register(value)
            for quoted in _QUOTED.findall(value):  # of a JAAS config, its password is what others repeat
                SCRUBBER.register(quoted)
    return config


def locate_cluster(settings: KafkaSettings, surroundings: Surroundings) -> KafkaTarget:
    """Return what leads to the cluster. Raises KdeclareError, also where nothing names one."""
    config = read_client_properties(settings, surroundings)
    servers = stated_servers(settings, surroundings)
    if not (servers or config.get("bootstrap.servers")):
        raise KdeclareError(
            error(
                "no-bootstrap-server",
                "No cluster to connect to",
                f"Neither --bootstrap-server nor the environment '{surroundings.environment}' names one.",
                hint="Give --bootstrap-server HOST:PORT, or bootstrapServers in the project file.",
            )
        )
    return KafkaTarget(servers or "", tuple(sorted(config.items())), surroundings.attempts or _ATTEMPTS)


def explain_fault(fault: Fault, name: str) -> Diagnostic | None:
    """Return what a cluster's refusal of a whole request means; None for what no broker answers."""
    from kdeclare.providers.kafka.client.faults import is_error_name

    if not is_error_name(fault.error):
        return None
    if fault.error.endswith("AUTHORIZATION_FAILED"):
        return error(
            "not-authorized",
            "Not permitted",
            f"{name} does not permit this: {fault.message or fault.error} ({fault.error}).",
            hint="Ask for the permission: reading wants Describe and DescribeConfigs on topics and cluster.",
        )
    if fault.error == QUOTA_EXCEEDED:
        return error(
            "quota-exceeded",
            "Mutation quota exceeded",
            f"{name}: {fault.message} ({fault.error}).",
            hint=QUOTA_HINT,
        )
    if fault.kind is not FaultKind.REFUSED:
        return error(
            "cluster-lost",
            "The cluster does not answer any more",
            f"{name}: {fault.message or fault.error} ({fault.error}).",
            hint="Look at its brokers; then kdeclare status says whether anything is left unfinished.",
        )
    return error(
        "refused-by-cluster",
        "The cluster refuses the request",
        f"{name}: {fault.message or 'no reason given'} ({fault.error}).",
    )


CONNECTION = ConnectionType(
    KafkaConnection,
    KafkaSettings,
    locate_cluster,
    environment_fields=frozenset({"bootstrapServers", "clientConfig", "clientConfigFile"}),
    is_always_needed=True,
    explain=explain_fault,
)
