"""Planning hooks for connectors: unreachable Connect clusters, order between kinds, and validation."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.live_references import find_deleted_names
from kdeclare.core.plans.observation import Observation
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.arguments import (
    ConfigArgs,
    ConfigureConnectorArgs,
    CreateConnectorArgs,
    DeleteConnectorArgs,
)
from kdeclare.providers.connect.connector.connector_operation import find_connector
from kdeclare.providers.connect.connector.diff import withhold_connector
from kdeclare.providers.connect.connector.live import ClusterSnapshot, ConnectorState
from kdeclare.providers.connect.connector.preflight import Proposal, validate_proposals
from kdeclare.providers.connect.connector.record import ConnectorRecord
from kdeclare.providers.connect.connector.settings import CONNECTOR, Setting
from kdeclare.providers.connect.connector.spec import ConnectorBody
from kdeclare.providers.connect.connector.topics import TOPIC, list_override_users
from kdeclare.providers.connect.connector_references import observe_topic_references
from kdeclare.providers.connect.operations import PatchWorkersArgs
from kdeclare.providers.kafka.acl.operations import is_acl_creation, is_acl_operation, list_bindings
from kdeclare.providers.kafka.scram_user.operations import DeleteScram, ScramArgs, UpsertScram

_NEEDED = "the manifest of the connector declares that it needs this resource"
_ACCESS_FIRST = "the connector logs in as a user whose access is set up first"
_WORKERS_FIRST = "the workers that run the connector are configured first"
_CONNECTOR_FIRST = "the connector that uses the access is changed first"


class ConnectorPlanning(PlanHooks):
    """The planning hooks for connectors."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Prepare the planning hooks for one plan."""
        self._inputs = inputs
        self._state = inputs.live.find(ConnectorState)
        self._desired = {item.id: item for item in inputs.desired if item.id.kind == CONNECTOR}

    def withhold(
        self, resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None
    ) -> Difference | None:
        """Block a connector whose Connect cluster is not configured or did not respond."""
        if resource.kind != CONNECTOR or self._state is None:
            return None
        return withhold_connector(resource, desired, self._state, narrow_record(owned, ConnectorRecord))

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Order changes to connectors relative to the resources, workers and access rights that they need."""
        connector_operations = [op for op in operations if isinstance(op.args, ConfigArgs)]
        if not connector_operations:
            return PlanStep(operations)
        operations = _link_needed(operations, connector_operations)
        operations = link_workers(operations, connector_operations)
        users = {op.id: self._list_users(op) for op in connector_operations}
        return PlanStep(
            _link_access(operations, users), tuple(self._warn_unknown_needs(connector_operations))
        )

    def _list_users(self, op: Operation) -> frozenset[str]:
        """Return the users that the clients of a connector authenticate as.

        For a deletion, the live config determines the users; otherwise, the declared config does.
        """
        config: Mapping[str, Setting] = {}
        if isinstance(op.args, DeleteConnectorArgs):
            connector = find_connector(op, self._inputs.live)
            config = connector.config if connector is not None else {}
        elif op.resource in self._desired:
            config = self._desired[op.resource].get_body(ConnectorBody).config
        return list_override_users(config)

    def _warn_unknown_needs(self, operations: Sequence[Operation]) -> Iterator[Diagnostic]:
        if not self._inputs.is_complete:
            return
        known = {item.id for item in self._inputs.desired}
        owned = self._inputs.state.resources if self._inputs.state is not None else {}
        for op in operations:
            if isinstance(op.args, DeleteConnectorArgs) or not isinstance(op.args, ConfigArgs):
                continue
            for resource in op.args.needed_resources:
                if resource not in known and str(resource) not in owned:
                    yield _warn_unknown_need(op.resource, resource, self._desired.get(op.resource))

    def preflight(self, operations: tuple[Operation, ...]) -> tuple[Diagnostic, ...]:
        """Have Connect validate the configs that the plan would send.

        A rollback sends configs that Connect accepted earlier, so they are not validated.
        """
        proposals = [proposal for op in operations if (proposal := self._build_proposal(op)) is not None]
        return validate_proposals(proposals)

    def _build_proposal(self, op: Operation) -> Proposal | None:
        desired = self._desired.get(op.resource)
        if desired is None or not isinstance(op.args, CreateConnectorArgs | ConfigureConnectorArgs):
            return None
        config = desired.get_body(ConnectorBody).whole_config
        if any(isinstance(setting, Secret) and not setting.value for setting in config.values()):
            return None  # the body was read from plain data, so the values of its secrets are unknown
        connector = find_connector(op, self._inputs.live)
        ignored = op.args.ignore if isinstance(op.args, ConfigureConnectorArgs) else ()
        live_config = connector.config if connector is not None else {}
        kept = {key: live_config[key] for key in ignored if key in live_config}
        clients = self._inputs.connections.get(ConnectClients)
        cluster = clients.open_cluster(op.args.endpoint)
        return Proposal(op.resource, cluster, op.args.connector, config, kept)

    def count_unmanaged(self, known: Set[str]) -> int:
        """Return the number of connectors that are neither declared nor owned."""
        if self._state is None:
            return 0
        snapshots = {snapshot.name: snapshot for snapshot in self._state.clusters.values()}
        known_connectors = {
            (self._state.get_cluster(body.endpoint).name, body.name)
            for body in (item.get_body(ConnectorBody) for item in self._desired.values())
            if body.endpoint in self._state.clusters
        }
        owned = self._inputs.state.resources if self._inputs.state is not None else {}
        known_connectors |= {
            (record.endpoint, record.connector)
            for record in owned.values()
            if isinstance(record, ConnectorRecord)
        }
        return sum(
            (name, connector) not in known_connectors
            for name, snapshot in snapshots.items()
            for connector in _list_connectors(snapshot)
        )

    def observe_impact(
        self, operations: tuple[Operation, ...], changes: Sequence[Change]
    ) -> Iterable[Observation]:
        """Return observations about undeclared connectors that refer to deleted topics."""
        topics = find_deleted_names(changes, TOPIC)
        return observe_topic_references(self._inputs, operations, topics) if topics else ()


def _list_connectors(snapshot: ClusterSnapshot) -> Sequence[str]:
    return list(snapshot.connectors) if snapshot.is_readable else []


def _link_needed(
    operations: tuple[Operation, ...], connector_operations: Sequence[Operation]
) -> tuple[Operation, ...]:
    """Add dependencies, so that needed resources are applied before the connectors and deleted after them.

    Footprints alone do not ensure this order, because for some kinds, such as Acl, they do not contain the
    resource itself.
    """
    by_resource: dict[ResourceId, list[Operation]] = defaultdict(list)
    for op in operations:
        by_resource[op.resource].append(op)
    needs: dict[str, dict[str, str]] = defaultdict(dict)
    for op in connector_operations:
        assert isinstance(op.args, ConfigArgs)
        is_deletion = isinstance(op.args, DeleteConnectorArgs)
        for needed in op.args.needed_resources:
            for other in by_resource.get(needed, ()):
                other_is_deletion = get_operation_type(other).find_deleted_resource(other) is not None
                if other_is_deletion:
                    needs[other.id][op.id] = _CONNECTOR_FIRST
                elif not is_deletion:
                    needs[op.id][other.id] = _NEEDED
    return tuple(
        replace(op, needs={**needs[op.id], **op.needs}) if op.id in needs else op for op in operations
    )


def link_workers(
    operations: tuple[Operation, ...], connector_operations: Sequence[Operation]
) -> tuple[Operation, ...]:
    """Add dependencies, so that connectors change after the worker overrides of their Connect cluster.

    kdeclare can determine the Connect cluster of the workers only if the environment names this cluster.
    """
    worker_operations: dict[str, list[str]] = defaultdict(list)
    for op in operations:
        if isinstance(op.args, PatchWorkersArgs) and op.args.workers.endpoint is not None:
            worker_operations[op.args.workers.endpoint].append(op.id)
    follows: dict[str, dict[str, str]] = {}
    for op in connector_operations:
        assert isinstance(op.args, ConfigArgs)
        follows[op.id] = dict.fromkeys(worker_operations.get(op.args.endpoint, ()), _WORKERS_FIRST)
    return _add_follows(operations, follows)


def _link_access(
    operations: tuple[Operation, ...], users: Mapping[str, frozenset[str]]
) -> tuple[Operation, ...]:
    """Add dependencies between the operations on connectors and the operations on the access of their users.

    Connectors change after their users get access, and are deleted before their users lose access.
    """
    if not any(users.values()):
        return operations
    follows: dict[str, dict[str, str]] = defaultdict(dict)
    connectors = {op.id: op for op in operations if op.id in users}
    for other in operations:
        granted, revoked = _list_affected_users(other)
        for op_id, op in connectors.items():
            is_deletion = isinstance(op.args, DeleteConnectorArgs)
            if granted & users[op_id] and not is_deletion:
                follows[op_id][other.id] = _ACCESS_FIRST
            elif revoked & users[op_id] and is_deletion:
                follows[other.id][op_id] = _CONNECTOR_FIRST
    return _add_follows(operations, follows)


def _add_follows(
    operations: tuple[Operation, ...], follows: Mapping[str, Mapping[str, str]]
) -> tuple[Operation, ...]:
    """Return the operations with additional predecessors.

    follows: for the id of each operation, the ids of its additional predecessors, each with a reason.
    """
    return tuple(
        replace(op, follows={**follows[op.id], **op.follows}) if follows.get(op.id) else op
        for op in operations
    )


def _list_affected_users(op: Operation) -> tuple[frozenset[str], frozenset[str]]:
    """Return the users that an operation gives access, and the users whose access it takes away."""
    if is_acl_operation(op):
        principals = (binding.principal for binding in list_bindings(op))
        users = frozenset(p.removeprefix("User:") for p in principals if p.startswith("User:"))
        return (users, frozenset()) if is_acl_creation(op) else (frozenset(), users)
    if isinstance(op.args, ScramArgs):
        users = frozenset({op.args.user})
        return (
            users if op.verb == UpsertScram.name else frozenset(),
            users if op.verb == DeleteScram.name else frozenset(),
        )
    return frozenset(), frozenset()


def _warn_unknown_need(
    resource: ResourceId, needed: ResourceId, desired: DesiredResource | None
) -> Diagnostic:
    return warning(
        "unknown-need",
        "Needed resource is not declared",
        f"{resource} needs {needed}, which no manifest declares. kdeclare cannot ensure that it exists.",
        hint="Check the id, declare the resource, or remove it from 'needs'.",
        place=desired.source if desired is not None else None,
        resource=str(resource),
        subject="spec.needs",
    )
