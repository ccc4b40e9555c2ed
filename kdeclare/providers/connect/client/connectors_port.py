"""The interface to the connectors of one Connect cluster (its REST API), and the values that it returns.

How responses become Faults:

============================================  ======================  =========
Response                                      code                    kind
============================================  ======================  =========
no worker can be reached; nothing was sent    ``UNREACHABLE``         refused
a read request got no response                ``LOST``                retriable
a change got no response                      ``LOST``                unknown
500 "Request timed out" for a change          ``TIMED_OUT``           unknown
any other 500 for a change                    ``SERVER_ERROR``        unknown
500 because a config cannot be validated      ``INVALID_CONNECTOR``   refused
500 because the leader has just stopped       ``NOT_READY``           retriable
500 because a rebalance is expected           ``NOT_READY``           retriable
409 because of a rebalance or a new leader    ``NOT_READY``           retriable
409 because the connector exists              ``CONNECTOR_EXISTS``    refused
404                                           ``CONNECTOR_MISSING``   refused
400 for a change to offsets                   ``NOT_STOPPED``         refused
any other 400                                 ``INVALID_CONNECTOR``   refused
401, 403                                      ``NOT_AUTHORIZED``      refused
the certificate is not trusted                ``NOT_TRUSTED``         refused
a response that is not from Connect           ``BAD_ANSWER``          refused
============================================  ======================  =========

There is one exception: if a worker responds with 500 because a config provider cannot resolve a placeholder,
the worker has not written anything. The code is then ``INVALID_CONNECTOR``, and the kind is refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.providers.connect.client.port import (
    BAD_ANSWER,
    LOST,
    NOT_AUTHORIZED,
    NOT_READY,
    NOT_TRUSTED,
    UNREACHABLE,
)

ConnectorConfig = Mapping[str, str]
"""The whole config of a connector, with ``connector.class``.

Placeholders are not resolved. If the provider or the key of a placeholder does not exist, Connect uses the
placeholder itself as the value.
"""

TIMED_OUT = "CONNECT_REQUEST_TIMED_OUT"
SERVER_ERROR = "CONNECT_SERVER_ERROR"
CONNECTOR_EXISTS = "CONNECTOR_ALREADY_EXISTS"
CONNECTOR_MISSING = "CONNECTOR_NOT_FOUND"
INVALID_CONNECTOR = "INVALID_CONNECTOR_CONFIG"
NOT_STOPPED = "CONNECTOR_NOT_STOPPED"
CONNECTOR_ERRORS = frozenset(
    {
        UNREACHABLE,
        NOT_TRUSTED,
        LOST,
        NOT_READY,
        NOT_AUTHORIZED,
        BAD_ANSWER,
        TIMED_OUT,
        SERVER_ERROR,
        CONNECTOR_EXISTS,
        CONNECTOR_MISSING,
        INVALID_CONNECTOR,
        NOT_STOPPED,
    }
)
"""All error codes of Faults about connectors."""


def is_addressable(name: str) -> bool:
    """Whether the URLs of Connect's REST API can contain the name of a connector.

    Connect also creates connectors whose names cannot be in URLs, but no request can change or delete them.
    In addition, Connect rejects control characters in names.
    """
    return name not in ("", ".", "..") and not set(name) & set("/\\%")


class TargetState(StrEnum):
    """The target state of a connector.

    Workers accept a new target state at once; the connector reaches it some time later.
    """

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class RunState(StrEnum):
    """The states that Connect 4 reports for connectors and tasks. Later versions can report other states."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"  # connectors only
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    DESTROYED = "DESTROYED"


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The status of one task.

    state: one of `RunState`.
    trace: the first line of the stack trace of a failed task, without secrets that this process knows;
        otherwise empty.
    """

    id: int
    state: str
    worker_id: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class LiveConnector:
    """A connector as its Connect cluster reports it.

    type: ``source``, ``sink`` or ``unknown`` (the class is not installed).
    config: the raw config, with ``name``. Literal secrets are in plain text.
    state: one of `RunState`; empty if no status exists yet, for example just after the creation.
    trace: like `TaskStatus.trace`.
    tasks: in the order of their ids. For a few seconds after a change to the config, Connect can still report
        the earlier tasks.
    """

    name: str
    type: str
    config: ConnectorConfig = field(repr=False)
    state: str = ""
    worker_id: str = ""
    trace: str = ""
    tasks: tuple[TaskStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginClass:
    """A connector class that is installed on the worker. Several versions of a class can be installed.

    name: the full class name. type: ``source`` or ``sink``.
    """

    name: str
    type: str
    version: str = ""

    @property
    def aliases(self) -> frozenset[str]:
        """The short names of the class.

        Connect accepts a short name as ``connector.class`` unless several classes share the name.
        """
        simple_name = self.name.rpartition(".")[2].rpartition("$")[2]
        return frozenset({simple_name, simple_name.removesuffix("Connector") or simple_name})


def find_class(plugins: Iterable[PluginClass], name_or_alias: str) -> str | None:
    """Return the full name of the class that a value of ``connector.class`` refers to.

    Return None if no installed class has this name, or if several classes share the short name.
    """
    names = {plugin.name for plugin in plugins if name_or_alias in plugin.aliases | {plugin.name}}
    if name_or_alias in names:
        return name_or_alias
    return next(iter(names)) if len(names) == 1 else None


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """A config key that a connector class defines. type: Kafka's name for the type, such as ``PASSWORD``."""

    name: str
    type: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class ConfigValidation:
    """The response of a worker to a proposed config.

    errors: the messages by key; keys without errors are missing. A message contains the raw value from the
        request instead of the resolved value of a placeholder.
    definitions: the keys that the class and the worker define. The worker does not report other keys, so
        typos pass the validation.
    """

    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    definitions: Mapping[str, ConfigDefinition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The information that a worker reports about itself.

    kafka_cluster_id: the id of the Kafka cluster that stores the connectors. Connect does not report its
        ``group.id``, so this id does not distinguish Connect clusters that use the same Kafka cluster.
    """

    version: str
    kafka_cluster_id: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorOffset:
    """One offset of a connector, in the format of the connector class.

    partition: for sinks, the keys are ``kafka_topic`` and ``kafka_partition``.
    offset: None resets the partition (in changes only).
    """

    partition: Mapping[str, JsonValue]
    offset: Mapping[str, JsonValue] | None


ConnectorOffsets = tuple[ConnectorOffset, ...]
"""All offsets of a connector."""


class ConnectCluster(Protocol):
    """The connectors of one Connect cluster. Safe to use from several threads.

    Every worker accepts all requests, and forwards changes to the leader. If a worker cannot be reached, or
    does not respond to a read, the next worker gets the request. A change whose response was lost is never
    sent again.

    Every method can raise Fault, with the codes and kinds in the docstring of this module. Except for
    creations and deletions, a change is asynchronous: when the method returns, Connect has accepted the
    change, but possibly not completed it.
    """

    def identify(self) -> ClusterInfo:
        """Return the information that the first reachable worker reports about itself."""

    def list_connectors(self) -> Mapping[str, LiveConnector]:
        """Return all connectors by name.

        Two requests list all connectors that have a status. Each connector without a status needs a separate
        request, because Connect's list omits it.
        """

    def describe_connector(self, name: str) -> LiveConnector | None:
        """Return one connector; None if it does not exist."""

    def list_plugins(self) -> tuple[PluginClass, ...]:
        """Return the installed connector classes."""

    def validate_config(self, name: str, config: ConnectorConfig) -> ConfigValidation:
        """Have a worker validate a config. Nothing is changed, but plugins can connect to other systems.

        Raises Fault INVALID_CONNECTOR if the class is missing or not installed, or if a config provider
        cannot resolve a placeholder.
        """

    def create_connector(
        self, name: str, config: ConnectorConfig, initial_state: TargetState | None = None
    ) -> None:
        """Create a connector. Raises Fault CONNECTOR_EXISTS if it exists, regardless of its config.

        initial_state: None means RUNNING.
        """

    def replace_config(self, name: str, config: ConnectorConfig) -> bool:
        """Replace the whole config of a connector. The target state does not change.

        If the connector does not exist, Connect creates it in the state RUNNING. Return whether the connector
        was created.
        """

    def set_state(self, name: str, state: TargetState) -> None:
        """Pause, stop or resume a connector, depending on ``state``.

        Has no effect if the connector already has this state.
        """

    def restart_connector(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Restart a connector.

        include_tasks: also restart its tasks. only_failed: skip the connector and tasks that are not FAILED.
        """

    def delete_connector(self, name: str) -> None:
        """Delete a connector.

        The offsets are kept: a later connector with the same name continues from these offsets.
        """

    def read_offsets(self, name: str) -> ConnectorOffsets:
        """Return the offsets of a connector, which can be in any state."""

    def alter_offsets(self, name: str, offsets: ConnectorOffsets) -> None:
        """Change these offsets of a connector.

        Raises Fault NOT_STOPPED unless the connector is STOPPED and has no tasks.
        """

    def delete_offsets(self, name: str) -> None:
        """Delete all offsets of a connector.

        Raises Fault NOT_STOPPED unless the connector is STOPPED and has no tasks.
        """

    def close(self) -> None:
        """Close the connections to the workers. A second call has no effect."""
