"""Configs: DescribeConfigs and IncrementalAlterConfigs (KIP-339)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import IncrementalAlterConfigsRequest

from kdeclare.cluster.kafka.batches import chunks, send_batches
from kdeclare.cluster.kafka.configs_decoder import RESOURCE_TYPES, Described, read_configs
from kdeclare.cluster.kafka.faults import INVALID_TOPIC, UNKNOWN_TOPIC_OR_PARTITION, fault_for_code
from kdeclare.cluster.kafka.freshness import Freshness
from kdeclare.cluster.kafka.raw import RawDescribeConfigsRequest
from kdeclare.cluster.kafka.topics import describe
from kdeclare.cluster.kafka.wire import Wire
from kdeclare.cluster.port import Alteration, ConfigQuery, Fault, FaultKind, Result
from kdeclare.model.changes import FieldOp
from kdeclare.model.ids import ConfigResource, ConfigScope
from kdeclare.model.live import ConfigEntry

_OPS = {FieldOp.SET: 0, FieldOp.DELETE: 1, FieldOp.APPEND: 2, FieldOp.SUBTRACT: 3}
"""org.apache.kafka.clients.admin.AlterConfigOp.OpType"""

_TOPICS_A_REQUEST = 250
"""Enough requests for all brokers to share. Measured: from 100 to 500 it makes no difference."""


def configs(
    wire: Wire, fresh: Freshness, queries: Sequence[ConfigQuery]
) -> dict[ConfigResource, Mapping[str, ConfigEntry]]:
    """Described keys by resource, those that exist. Raises Fault."""
    wanted = _merged(queries)
    live = wire.brokers()
    anywhere: list[ConfigQuery] = []
    here: dict[int, list[Any]] = {}
    for query in wanted.values():
        broker = _broker(query.resource)
        if broker is None:
            anywhere.append(query)
        elif broker in live or _is_registered(wire, broker):
            here.setdefault(broker, []).append(_describe([query]))

    def read(response: Any) -> list[Described]:
        return read_configs(response, wanted)

    parts = chunks(anywhere, _TOPICS_A_REQUEST)
    nodes = fresh.nodes(here)
    answers = wire.ask([_describe(part) for part in parts], read, changes=False, nodes=nodes)
    for per_broker in wire.ask_each(here, read).values():
        answers.extend(per_broker)
    found: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
    for answer in answers:
        if isinstance(answer, Fault):
            raise answer
        for item in answer:
            if item.error_code == 0:
                found[item.resource] = item.entries
            elif item.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC):
                text = f"{item.resource.scope} {item.resource.name}: {item.message or ''}"
                raise fault_for_code(item.error_code, text, changes=False)
    return found


def _merged(queries: Iterable[ConfigQuery]) -> dict[ConfigResource, ConfigQuery]:
    """One query a resource: Kafka answers a resource once."""
    merged: dict[ConfigResource, ConfigQuery] = {}
    for query in queries:
        before = merged.get(query.resource)
        if before is not None:
            keys, overrides = before.keys | query.keys, before.overrides or query.overrides
            query = ConfigQuery(query.resource, keys, overrides)
        merged[query.resource] = query
    return merged


def _broker(resource: ConfigResource) -> int | None:
    """The broker that must be asked about a resource; None is any, also where the name is no id."""
    numbered = resource.scope is ConfigScope.BROKER and resource.name.isdecimal()
    return int(resource.name) if numbered else None


def _is_registered(wire: Wire, broker: int) -> bool:
    """False when there is no such broker. Raises Fault when there is and it is not serving."""
    if all(known.id != broker for known in describe(wire).brokers):
        return False
    wire.refresh()
    raise Fault(
        "BROKER_NOT_AVAILABLE", f"broker {broker} is registered, but not serving", FaultKind.RETRIABLE
    )


def _describe(queries: Sequence[ConfigQuery]) -> Any:
    return RawDescribeConfigsRequest(
        resources=[
            RawDescribeConfigsRequest.DescribeConfigsResource(
                resource_type=RESOURCE_TYPES[query.resource.scope],
                resource_name=query.resource.name,
                configuration_keys=None if query.overrides else sorted(query.keys),
            )
            for query in queries
        ],
        include_synonyms=any(_broker(query.resource) is not None for query in queries),
        include_documentation=False,
    )


def alter_configs(
    wire: Wire, items: Sequence[Alteration], validate_only: bool
) -> dict[ConfigResource, Result]:
    """IncrementalAlterConfigs, a result for each resource.

    A broker's own configs go to that broker, which checks them; the rest to the controller, 500
    resources a request. Raises Fault when the only request failed.
    """
    targets: dict[int | None, list[Alteration]] = {}
    for item in items:
        targets.setdefault(_broker(item.resource), []).append(item)
    results: dict[ConfigResource, Result] = {}
    for broker, part in targets.items():
        try:
            results |= _alter(wire, part, validate_only, broker)
        except Fault as fault:
            if len(targets) == 1:
                raise
            results |= dict.fromkeys((item.resource for item in part), fault)
    return results


def _alter(
    wire: Wire, items: Sequence[Alteration], validate_only: bool, broker: int | None
) -> dict[ConfigResource, Result]:
    def request(part: list[Alteration]) -> Any:
        return IncrementalAlterConfigsRequest(
            resources=[_alterable(item) for item in part], validate_only=validate_only
        )

    return send_batches(
        wire,
        items,
        key=lambda item: item.resource,
        request=request,
        codes=_codes,
        records=lambda item: len(item.ops),
        validate_only=validate_only,
        nodes=None if broker is None else [broker],
    )


def _alterable(item: Alteration) -> Any:
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    return kind(
        resource_type=RESOURCE_TYPES[item.resource.scope],
        resource_name=item.resource.name,
        configs=[
            kind.AlterableConfig(
                name=op.key,
                config_operation=_OPS[op.op],
                value=None if op.op is FieldOp.DELETE else op.value,
            )
            for op in item.ops
        ],
    )


def _codes(response: Any) -> Iterable[tuple[ConfigResource, int, str | None]]:
    scopes = {code: scope for scope, code in RESOURCE_TYPES.items()}
    for result in response.responses:
        resource = ConfigResource(scopes[result.resource_type], result.resource_name)
        yield resource, result.error_code, result.error_message
