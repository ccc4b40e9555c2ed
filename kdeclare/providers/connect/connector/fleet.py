"""Connectors in fleet snapshots and audits: one object per connector, without the values of secrets."""

import json
from collections.abc import Iterable, Iterator, Mapping

from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_list, as_object, as_text
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey, LiveListing, LiveObject, UnreadPart
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.endpoint_choice import (
    EndpointChoice,
    choose_endpoint,
    explain_unreachable_endpoint,
)
from kdeclare.providers.connect.client.connectors_port import (
    ConnectCluster,
    LiveConnector,
    TaskStatus,
)
from kdeclare.providers.connect.client.port import UNREACHABLE
from kdeclare.providers.connect.connection import ENVIRONMENT_FIELD, ConnectClients
from kdeclare.providers.connect.connector.collector import read_password_keys
from kdeclare.providers.connect.connector.live import ClusterSnapshot, ConnectorState, Endpoint
from kdeclare.providers.connect.connector.settings import (
    CLASS,
    CONNECTOR,
    MASKED,
    NAME,
    find_path,
    is_hidden,
    to_shown_value,
)
from kdeclare.providers.connect.connector.status import describe_fault


def make_live_key(endpoint: str, connector: str) -> LiveKey:
    """Return the key of a connector. endpoint: the name of its Connect cluster."""
    return LiveKey(CONNECTOR, f"{endpoint}/{connector}")


def split_live_key(key: LiveKey) -> tuple[str, str]:
    """Return the Connect cluster and the connector name that a key contains."""
    endpoint, _, connector = key.key.partition("/")
    return endpoint, connector


class ConnectorCodec:
    """See `LiveCodec`. Reads all connectors of the Connect clusters that the environment configures.

    Secrets are stored as masks. An audit assumes that a masked value is the value that was last applied.
    """

    name = "connect-connectors"
    sorts = frozenset({CONNECTOR})
    identifies_system = False
    groups = False
    context: tuple[object, ...] = ()
    nouns: Mapping[str, tuple[str, str]] = {CONNECTOR: ("connector", "connectors")}
    internal_marker: str | None = None

    def list_objects(self, connections: Connections) -> LiveListing:
        """Read all connectors. A Connect cluster that does not respond becomes an `UnreadPart`."""
        clients = connections.get(ConnectClients)
        problems: dict[str, JsonValue] = {}
        objects: list[LiveObject] = []
        unread: list[UnreadPart] = []
        for endpoint in sorted(clients.clusters):
            problems[endpoint] = None
            try:
                objects += _list_objects(clients.open_cluster(endpoint), endpoint)
            except (Fault, KdeclareError) as problem:
                clause = _describe_problem(problem)
                problems[endpoint] = clause
                reason = explain_unreachable_endpoint(f"{ENVIRONMENT_FIELD}/{endpoint}", clause)
                unread.append(UnreadPart(CONNECTOR, make_live_key(endpoint, "").key, reason))
        return LiveListing(problems, iter(objects), unread=unread)

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> ConnectorState:
        """Convert connectors from the JSON in a snapshot to live state."""
        connectors: dict[str, dict[str, LiveConnector]] = {}
        for key, text in objects:
            endpoint, name = split_live_key(key)
            connectors.setdefault(endpoint, {})[name] = _decode_connector(name, as_object(json.loads(text)))
        problems = as_object(json.loads(system))
        snapshots: dict[Endpoint, ClusterSnapshot] = {
            endpoint: ClusterSnapshot(
                EndpointChoice(endpoint),
                connectors.get(endpoint, {}),
                None if problem is None else Fault(UNREACHABLE, as_text(problem)),
            )
            for endpoint, problem in problems.items()
        }
        only_choice = choose_endpoint(None, problems, ENVIRONMENT_FIELD)
        only_snapshot = snapshots.get(only_choice.name, ClusterSnapshot(only_choice))
        return ConnectorState({**snapshots, None: only_snapshot})

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Whether the connector exists. Raises Fault if its Connect cluster was not read."""
        endpoint, name = split_live_key(key)
        return live.get(ConnectorState).get_cluster(endpoint).find(name) is not None

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return None, because connectors have no ids."""
        return None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Return True: Connect has no internal connectors, so audits report every unmanaged connector."""
        return True

    def flatten_body(self, sort: str, body: JsonObject) -> Mapping[str, JsonValue]:
        """See `DescribesFields`."""
        config = as_object(body["config"])
        fields = {find_path(key): to_shown_value(key, as_text(text)) for key, text in config.items()}
        return {**fields, "state": body["state"]}

    def format_field_name(self, sort: str, path: str) -> str | None:
        """Return None: reports show the path of a field, which is also its name in manifests."""
        return None


def _describe_problem(problem: Fault | KdeclareError) -> str:
    """Return, as a clause, the reason why a Connect cluster cannot be read, such as an unusable TLS file."""
    if isinstance(problem, Fault):
        return describe_fault(problem)
    return summarize_diagnostics(problem.diagnostics).rstrip(".")


def _list_objects(cluster: ConnectCluster, endpoint: str) -> Iterator[LiveObject]:
    connectors = cluster.list_connectors()
    class_names = {connector.config.get(CLASS, "") for connector in connectors.values()} - {""}
    password_keys = {name: read_password_keys(cluster, name) for name in sorted(class_names)}
    for name, connector in sorted(connectors.items()):
        keys = password_keys.get(connector.config.get(CLASS, ""), frozenset())
        yield LiveObject(make_live_key(endpoint, name), _encode_connector(connector, keys))


def _encode_connector(connector: LiveConnector, password_keys: frozenset[str]) -> JsonObject:
    config = {
        key: MASKED if is_hidden(key, text, password_keys) else text
        for key, text in sorted(connector.config.items())
        if key != NAME
    }
    tasks: list[JsonValue] = [task.state for task in connector.tasks]
    return {"type": connector.type, "config": config, "state": connector.state, "tasks": tasks}


def _decode_connector(name: str, body: JsonObject) -> LiveConnector:
    config = {key: as_text(text) for key, text in as_object(body["config"]).items()}
    tasks = tuple(TaskStatus(number, as_text(state)) for number, state in enumerate(as_list(body["tasks"])))
    return LiveConnector(
        name, as_text(body["type"]), {**config, NAME: name}, as_text(body["state"]), tasks=tasks
    )
