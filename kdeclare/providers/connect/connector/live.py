"""The live state of connectors, and the selection of connectors to read."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.endpoint_choice import EndpointChoice, choose_endpoint
from kdeclare.providers.connect.client.connectors_port import LiveConnector, PluginClass, find_class
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.connection import ENVIRONMENT_FIELD

Endpoint = str | None
"""The name of a Connect cluster in the environment; None for the only Connect cluster."""


class ConnectorKey(NamedTuple):
    """A connector of a Connect cluster."""

    endpoint: Endpoint
    connector: str


@dataclass(frozen=True, slots=True)
class ConnectorSelection:
    """The connectors whose live state must be read.

    connectors: the selected connectors.
    endpoints: the Connect clusters from which all connectors are read, not only the selected connectors.
    classes: the connectors with their declared classes, which are compared with the live classes.
    """

    connectors: frozenset[ConnectorKey] = frozenset()
    endpoints: frozenset[Endpoint] = frozenset()
    classes: frozenset[tuple[ConnectorKey, str]] = frozenset()

    def merge(self, others: Sequence["ConnectorSelection"]) -> "ConnectorSelection":
        """See `Selection`."""
        return ConnectorSelection(
            self.connectors.union(*(other.connectors for other in others)),
            self.endpoints.union(*(other.endpoints for other in others)),
            self.classes.union(*(other.classes for other in others)),
        )

    @property
    def all_endpoints(self) -> Sequence[Endpoint]:
        """All Connect clusters of the selection, in a stable order."""
        endpoints = {key.endpoint for key in self.connectors} | self.endpoints
        return sorted(endpoints, key=lambda endpoint: endpoint or "")

    def list_names(self, endpoint: Endpoint) -> list[str]:
        """Return the names of the selected connectors of one Connect cluster."""
        return sorted(key.connector for key in self.connectors if key.endpoint == endpoint)


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The connectors of one Connect cluster.

    choice: the name of the Connect cluster, or the reason why the environment does not configure it.
    fault: the reason why the Connect cluster could not be read; None if it was read.
    system_id: the id of the Kafka cluster that stores the connectors; empty if it was not read.
    classes: the installed classes; empty if no class names had to be compared.
    password_keys: for each class that was read, the keys that the class defines as PASSWORD.
    """

    choice: EndpointChoice
    connectors: Mapping[str, LiveConnector] = field(default_factory=dict)
    fault: Fault | None = None
    system_id: str = ""
    classes: tuple[PluginClass, ...] = ()
    password_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the Connect cluster; empty if the environment does not configure it."""
        return self.choice.name or ""

    @property
    def full_name(self) -> str:
        """The full name of the Connect cluster, such as ``connect/eu``."""
        return f"{ENVIRONMENT_FIELD}/{self.name}"

    @property
    def is_readable(self) -> bool:
        """Whether the Connect cluster was read."""
        return self.choice.name is not None and self.fault is None

    def find(self, connector: str) -> LiveConnector | None:
        """Return a connector; None if it does not exist. Raises Fault if the cluster was not read."""
        if self.fault is not None:
            raise self.fault
        if self.choice.name is None:
            raise Fault(UNREACHABLE, self.choice.problem.rstrip("."))
        return self.connectors.get(connector)

    def find_password_keys(self, *class_names: str) -> frozenset[str]:
        """Return the known keys that any of the given classes defines as PASSWORD."""
        return frozenset().union(*(self.password_keys.get(name, frozenset()) for name in class_names))

    def is_same_class(self, name: str, other_name: str) -> bool:
        """Whether two class names or aliases denote the same class."""
        if name == other_name:
            return True
        class_name = find_class(self.classes, name)
        return class_name is not None and class_name == find_class(self.classes, other_name)


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """The live state of connectors by Connect cluster. The keys are the names that manifests use."""

    clusters: Mapping[Endpoint, ClusterSnapshot] = field(default_factory=dict)

    def get_cluster(self, endpoint: Endpoint) -> ClusterSnapshot:
        """Return the state of a Connect cluster.

        The key in ``clusters`` can differ from ``endpoint``: manifests can omit the name of the Connect
        cluster, but operations and ownership records always contain the name.
        """
        if endpoint in self.clusters:
            return self.clusters[endpoint]
        by_name = {snapshot.name: snapshot for snapshot in self.clusters.values() if snapshot.name}
        if endpoint in by_name:
            return by_name[endpoint]
        return ClusterSnapshot(choose_endpoint(endpoint, by_name, ENVIRONMENT_FIELD))
