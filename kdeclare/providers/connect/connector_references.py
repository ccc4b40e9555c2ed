"""Observe which live connectors refer to the topics that a plan deletes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.live_references import attempt_read, build_unknown_references, read_systems
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan_hooks import PlanInputs
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.units import format_count, format_names
from kdeclare.providers.connect.client.connectors_port import LiveConnector
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.connector.arguments import (
    ConfigArgs,
    ConfigureConnectorArgs,
    DeleteConnectorArgs,
)
from kdeclare.providers.connect.connector.live import ConnectorState
from kdeclare.providers.connect.connector.spec import ConnectorBody
from kdeclare.providers.connect.connector.status import describe_fault
from kdeclare.providers.connect.connector.topics import TOPIC, find_topic_references

_Configs = Mapping[str, Mapping[str, object]]
"""The configs of the connectors of one Connect cluster, by the name of the connector."""


def observe_topic_references(
    inputs: PlanInputs, operations: Sequence[Operation], topics: Sequence[str]
) -> Iterator[Observation]:
    """Yield observations about undeclared connectors that will refer to deleted topics.

    The connectors of each Connect cluster that the environment configures are read. For a Connect cluster
    that cannot be read, yield one observation. topics: the deleted topics, at least one.
    """
    first = f"{TOPIC}/{topics[0]}"
    clients = attempt_read(lambda: inputs.connections.find(ConnectClients))
    if isinstance(clients, Fault):
        what = "which connectors refer to the deleted topics"
        yield build_unknown_references(first, what, describe_fault(clients))
        return
    if clients is None:
        return
    declared = _list_declared(clients, inputs.desired)
    answers = read_systems(
        {name: partial(_list_connectors, inputs, clients, name) for name in sorted(clients.clusters)}
    )
    for name, connectors in answers.items():
        if isinstance(connectors, Fault):
            what = f"which connectors of Connect cluster '{name}' refer to the deleted topics"
            yield build_unknown_references(first, what, _explain_fault(connectors))
            continue
        configs = _predict_configs(name, connectors, operations)
        others = {key: config for key, config in configs.items() if (name, key) not in declared}
        yield from _observe_cluster(name, others, topics)


def _list_declared(clients: ConnectClients, desired: Iterable[DesiredResource]) -> set[tuple[str, str]]:
    """Return the declared connectors, each with the name of its Connect cluster."""
    bodies = [item.body for item in desired if isinstance(item.body, ConnectorBody)]
    return {(clients.choose_cluster(body.endpoint).name or "", body.name) for body in bodies}


def _list_connectors(inputs: PlanInputs, clients: ConnectClients, name: str) -> Mapping[str, LiveConnector]:
    """Return the connectors of a Connect cluster. Raises Fault or KdeclareError.

    If the Connect cluster did not respond earlier during planning, no request is sent to it again.
    """
    state = inputs.live.find(ConnectorState) or ConnectorState()
    fault = state.get_cluster(name).fault
    if fault is not None:
        raise fault
    return clients.open_cluster(name).list_connectors()


def _explain_fault(fault: Fault) -> str:
    reason = describe_fault(fault)
    return f"kdeclare has no permission to list them ({reason})" if fault.error == NOT_AUTHORIZED else reason


def _predict_configs(
    name: str, connectors: Mapping[str, LiveConnector], operations: Sequence[Operation]
) -> _Configs:
    """Return the configs that the live connectors of a Connect cluster will have after the plan.

    Connectors that the plan deletes are left out.
    """
    configs: dict[str, Mapping[str, object]] = {key: item.config for key, item in connectors.items()}
    for op in operations:
        args = op.args
        if not isinstance(args, ConfigArgs) or args.endpoint != name or args.connector not in configs:
            continue
        if isinstance(args, DeleteConnectorArgs):
            del configs[args.connector]
        elif isinstance(args, ConfigureConnectorArgs):
            live = configs[args.connector]
            kept = {key: live[key] for key in (*args.ignore, *args.others) if key in live}
            configs[args.connector] = {**args.config, **kept}
    return configs


def _observe_cluster(name: str, configs: _Configs, topics: Sequence[str]) -> Iterator[Observation]:
    by_topic: dict[str, list[str]] = defaultdict(list)
    uncertain: list[str] = []
    deleted = frozenset(topics)
    for connector, config in sorted(configs.items()):
        references = find_topic_references(config, deleted)
        for topic in references.topics:
            by_topic[topic].append(connector)
        if not references.is_complete and references.topics != deleted:
            uncertain.append(connector)
    for topic, connectors in by_topic.items():
        yield _build_references(f"{TOPIC}/{topic}", name, connectors)
    if uncertain:
        count = format_count(len(uncertain), "connector")
        what = f"whether {count} of Connect cluster '{name}' {_choose_verb(uncertain)} to the deleted topics"
        reason = (
            f"the config of {format_names(uncertain)} names topics with placeholders, or with a regular "
            "expression that kdeclare does not support"
        )
        yield build_unknown_references(f"{TOPIC}/{topics[0]}", what, reason)


def _build_references(resource: str, name: str, connectors: Sequence[str]) -> Observation:
    text = (
        f"{format_count(len(connectors), 'connector')} of Connect cluster '{name}' "
        f"{_choose_verb(connectors)} to this topic: {format_names(connectors)}."
    )
    figures = {"connect": name, "connectors": list(connectors)}
    return Observation(resource, "references", ObservationLevel.EFFECT, text, None, figures)


def _choose_verb(connectors: Sequence[str]) -> str:
    return "refers" if len(connectors) == 1 else "refer"
