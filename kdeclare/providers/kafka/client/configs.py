"""Read and change configs: DescribeConfigs and IncrementalAlterConfigs (KIP-339)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kafka.protocol.admin.configs import IncrementalAlterConfigsRequest, ListConfigResourcesRequest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client.decoding.configs_decoder import (
    RESOURCE_TYPES,
    DescribeConfigsResult,
    decode_configs,
)
from kdeclare.providers.kafka.client.decoding.wire_format import RawDescribeConfigsRequest
from kdeclare.providers.kafka.client.describe_cluster import describe_cluster
from kdeclare.providers.kafka.client.faults import (
    INVALID_TOPIC,
    UNKNOWN_TOPIC_OR_PARTITION,
    build_fault_from_code,
)
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire, batch_items, send_batches
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, parse_broker_id
from kdeclare.providers.kafka.request_values import (
    ConfigAlteration,
    ConfigQuery,
    Configs,
    merge_config_queries,
)

_OPS = {FieldOp.SET: 0, FieldOp.DELETE: 1, FieldOp.APPEND: 2, FieldOp.SUBTRACT: 3}
"""The codes of the operations on configs (org.apache.kafka.clients.admin.AlterConfigOp.OpType)."""

_TOPICS_PER_REQUEST = 250
"""The maximum number of topics per DescribeConfigs request. With small requests, all brokers share the work.

Values from 100 to 500 are equally fast.
"""


def describe_configs(
    wire: Wire, freshness: Freshness, queries: Sequence[ConfigQuery]
) -> dict[ConfigResource, Configs | Fault]:
    """Return the configs of each existing resource, or a Fault.

    If a request for the configs of one broker fails, the Fault is returned for this broker. If any other
    request fails, the Fault is raised.
    """
    # Kafka describes a resource only once per request.
    queries_by_resource = merge_config_queries(queries)
    live_brokers = wire.brokers()
    configs_by_resource: dict[ConfigResource, Configs | Fault] = {}
    any_broker_queries: list[ConfigQuery] = []
    resources_by_broker: dict[int, list[ConfigResource]] = {}
    for query in queries_by_resource.values():
        broker = _find_broker_id(query.resource)
        if broker is None:
            any_broker_queries.append(query)
        elif broker in live_brokers:
            resources_by_broker.setdefault(broker, []).append(query.resource)
        elif (not_serving := _find_not_serving_fault(wire, broker)) is not None:
            configs_by_resource[query.resource] = not_serving

    def decode(response: Any) -> list[DescribeConfigsResult]:
        return decode_configs(response, queries_by_resource)

    batches = batch_items(any_broker_queries, _TOPICS_PER_REQUEST)
    nodes = freshness.nodes(resources_by_broker)
    for answer in wire.ask(
        [_build_describe_request(part) for part in batches], decode, changes=False, nodes=nodes
    ):
        if isinstance(answer, Fault):
            raise answer
        configs_by_resource.update(_select_existing(answer))
    answers_by_broker = wire.send_each(
        {
            b: [_build_describe_request([queries_by_resource[r]]) for r in part]
            for b, part in resources_by_broker.items()
        },
        decode,
    )
    for broker, resources in resources_by_broker.items():
        for resource, answer in zip(resources, answers_by_broker[broker], strict=True):
            configs_by_resource.update(
                {resource: answer} if isinstance(answer, Fault) else _select_existing(answer)
            )
    return {
        resource: configs_by_resource[resource]
        for resource in queries_by_resource
        if resource in configs_by_resource
    }


def _select_existing(
    results: Iterable[DescribeConfigsResult],
) -> Iterator[tuple[ConfigResource, Configs | Fault]]:
    """Yield the configs of each existing resource, or a Fault."""
    for item in results:
        if item.error_code == 0:
            yield item.resource, item.entries
        elif item.error_code not in (UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC):
            message = f"{item.resource.scope} {item.resource.name}: {item.message or ''}"
            yield item.resource, build_fault_from_code(item.error_code, message, changes=False)


def _find_broker_id(resource: ConfigResource) -> int | None:
    """Return the id of the broker that must receive requests about a resource; None if any broker can.

    If the resource is a broker with an invalid id, return None as well.
    """
    return parse_broker_id(resource.name) if resource.scope is ConfigScope.BROKER else None


def _find_not_serving_fault(wire: Wire, broker: int) -> Fault | None:
    """Return the Fault for a broker that is missing from the metadata although it is registered.

    Return None if the broker is not registered. Raises Fault if the cluster cannot be described.
    """
    if all(known.id != broker for known in describe_cluster(wire).brokers):
        return None
    wire.request_refresh()
    return Fault(
        "BROKER_NOT_AVAILABLE", f"broker {broker} is registered but not available", FaultKind.RETRIABLE
    )


def _build_describe_request(queries: Sequence[ConfigQuery]) -> Any:
    return RawDescribeConfigsRequest(
        resources=[
            RawDescribeConfigsRequest.DescribeConfigsResource(
                resource_type=RESOURCE_TYPES[query.resource.scope],
                resource_name=query.resource.name,
                configuration_keys=None if query.overrides else sorted(query.keys),
            )
            for query in queries
        ],
        include_synonyms=any(_find_broker_id(query.resource) is not None for query in queries),
        include_documentation=False,
    )


_LIST_RESOURCES_KEY = 74
_FIRST_VERSION_WITH_TYPES = 1
"""The first version of ListConfigResources that lists types other than client metrics (KIP-1142)."""


def list_config_resources(wire: Wire, freshness: Freshness, scope: ConfigScope) -> frozenset[ConfigResource]:
    """Return the resources of this type that have overrides. Raises Fault."""
    version = wire.get_max_version(_LIST_RESOURCES_KEY)
    if version < (0 if scope is ConfigScope.CLIENT_METRICS else _FIRST_VERSION_WITH_TYPES):
        raise Fault("UNSUPPORTED_VERSION", f"the brokers cannot list {scope.noun} configs", FaultKind.REFUSED)
    types = [RESOURCE_TYPES[scope]] if version >= _FIRST_VERSION_WITH_TYPES else None
    request = ListConfigResourcesRequest(resource_types=types)

    def read_names(response: Any) -> frozenset[ConfigResource]:
        if response.error_code:
            raise build_fault_from_code(response.error_code, None, changes=False)
        return frozenset(ConfigResource(scope, item.resource_name) for item in response.config_resources)

    return wire.send_one(request, read_names, nodes=freshness.nodes())


def alter_configs(
    wire: Wire, items: Sequence[ConfigAlteration], validate_only: bool
) -> dict[ConfigResource, Result]:
    """Send IncrementalAlterConfigs and return a result for each resource.

    Requests for the configs of a broker go to this broker, which validates them. All other requests go to the
    controller, with at most 500 resources each. Raises Fault if exactly one request is sent and the request
    fails.
    """
    items_by_broker: dict[int | None, list[ConfigAlteration]] = {}
    for item in items:
        items_by_broker.setdefault(_find_broker_id(item.resource), []).append(item)
    results: dict[ConfigResource, Result] = {}
    for broker, broker_items in items_by_broker.items():
        try:
            results |= _send_alterations(wire, broker_items, validate_only, broker)
        except Fault as fault:
            if len(items_by_broker) == 1:
                raise
            results |= dict.fromkeys((item.resource for item in broker_items), fault)
    return results


def _send_alterations(
    wire: Wire, items: Sequence[ConfigAlteration], validate_only: bool, broker: int | None
) -> dict[ConfigResource, Result]:
    def build_request(batch: list[ConfigAlteration]) -> Any:
        return IncrementalAlterConfigsRequest(
            resources=[_build_alterable_resource(item) for item in batch], validate_only=validate_only
        )

    return send_batches(
        wire,
        items,
        get_key=lambda item: item.resource,
        build_request=build_request,
        read_codes=_read_codes,
        count_metadata_records=lambda item: len(item.ops),
        validate_only=validate_only,
        nodes=None if broker is None else [broker],
    )


def _build_alterable_resource(item: ConfigAlteration) -> Any:
    resource_class = IncrementalAlterConfigsRequest.AlterConfigsResource
    return resource_class(
        resource_type=RESOURCE_TYPES[item.resource.scope],
        resource_name=item.resource.name,
        configs=[
            resource_class.AlterableConfig(
                name=op.key,
                config_operation=_OPS[op.op],
                value=None if op.op is FieldOp.DELETE else op.value,
            )
            for op in item.ops
        ],
    )


def _read_codes(response: Any) -> Iterable[tuple[ConfigResource, int, str | None]]:
    scopes = {code: scope for scope, code in RESOURCE_TYPES.items()}
    for result in response.responses:
        resource = ConfigResource(scopes[result.resource_type], result.resource_name)
        yield resource, result.error_code, result.error_message
