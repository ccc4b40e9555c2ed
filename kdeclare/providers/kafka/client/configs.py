"""Configs: DescribeConfigs and IncrementalAlterConfigs (KIP-339)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kafka.protocol.admin import IncrementalAlterConfigsRequest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client.configs_decoder import RESOURCE_TYPES, Described, read_configs
from kdeclare.providers.kafka.client.describe_cluster import describe
from kdeclare.providers.kafka.client.faults import INVALID_TOPIC, UNKNOWN_TOPIC_OR_PARTITION, fault_for_code
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire, chunks, send_batches
from kdeclare.providers.kafka.client.wire_format import RawDescribeConfigsRequest
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, parse_broker_id
from kdeclare.providers.kafka.port import Alteration, ConfigQuery, Configs

_OPS = {FieldOp.SET: 0, FieldOp.DELETE: 1, FieldOp.APPEND: 2, FieldOp.SUBTRACT: 3}
"""org.apache.kafka.clients.admin.AlterConfigOp.OpType"""

_TOPICS_A_REQUEST = 250
"""Enough requests for all brokers to share. Measured: from 100 to 500 it makes no difference."""


def configs(
    wire: Wire, fresh: Freshness, queries: Sequence[ConfigQuery]
) -> dict[ConfigResource, Configs | Fault]:
    """Described keys of each resource that exists, or why there are none. Raises Fault.

    A request about one broker's own configs fails for that one; any other fails them all.
    """
    wanted = _merged(queries)
    live = wire.brokers()
    found: dict[ConfigResource, Configs | Fault] = {}
    anywhere: list[ConfigQuery] = []
    here: dict[int, list[ConfigResource]] = {}
    for query in wanted.values():
        broker = _broker(query.resource)
        if broker is None:
            anywhere.append(query)
        elif broker in live:
            here.setdefault(broker, []).append(query.resource)
        elif (missing := _not_serving(wire, broker)) is not None:
            found[query.resource] = missing

    def read(response: Any) -> list[Described]:
        return read_configs(response, wanted)

    parts = chunks(anywhere, _TOPICS_A_REQUEST)
    nodes = fresh.nodes(here)
    for answer in wire.ask([_describe(part) for part in parts], read, changes=False, nodes=nodes):
        if isinstance(answer, Fault):
            raise answer
        found.update(_sorted_out(answer))
    own = wire.ask_each({b: [_describe([wanted[r]]) for r in part] for b, part in here.items()}, read)
    for broker, resources in here.items():
        for resource, answer in zip(resources, own[broker], strict=True):
            found.update({resource: answer} if isinstance(answer, Fault) else _sorted_out(answer))
    return {resource: found[resource] for resource in wanted if resource in found}


def _sorted_out(
    answer: Iterable[Described],
) -> Iterator[tuple[ConfigResource, Configs | Fault]]:
    """What was answered about each resource that exists."""
    for item in answer:
        if item.error_code == 0:
            yield item.resource, item.entries
        elif item.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC):
            text = f"{item.resource.scope} {item.resource.name}: {item.message or ''}"
            yield item.resource, fault_for_code(item.error_code, text, changes=False)


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
    return parse_broker_id(resource.name) if resource.scope is ConfigScope.BROKER else None


def _not_serving(wire: Wire, broker: int) -> Fault | None:
    """Why a broker that metadata does not list cannot be asked; None where there is none. Raises Fault."""
    if all(known.id != broker for known in describe(wire).brokers):
        return None
    wire.refresh()
    return Fault(
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
