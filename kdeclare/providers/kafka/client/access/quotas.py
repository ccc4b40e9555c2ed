"""Read and change client quotas: DescribeClientQuotas and AlterClientQuotas (KIP-546)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest

from kdeclare.core.live.faults import Fault, Result
from kdeclare.providers.kafka.client.faults import build_fault_from_code
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire, send_batches
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity

_MAX_SINGLE_ENTITIES = 16
"""The maximum number of entities to describe one by one.

For more entities, one request reads all entities.
"""
_EXACTLY, _DEFAULT = 0, 1
"""Match types of DescribeClientQuotas (org.apache.kafka.common.requests.DescribeClientQuotasRequest)."""
_TYPES = frozenset(EntityType)

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


def describe_quotas(wire: Wire, freshness: Freshness, entities: Sequence[QuotaEntity] | None) -> Quotas:
    """Return the limits by entity. Entities of unknown types are omitted. Raises Fault."""
    if entities is not None and len(entities) <= _MAX_SINGLE_ENTITIES:
        requests = [_build_describe_request(entity) for entity in entities]
    else:
        requests = [DescribeClientQuotasRequest(components=[], strict=False)]
    limits_by_entity: dict[QuotaEntity, Mapping[str, float]] = {}
    for answer in wire.ask(requests, _read_quotas, changes=False, nodes=freshness.nodes()):
        if isinstance(answer, Fault):
            raise answer
        limits_by_entity |= answer
    return (
        limits_by_entity
        if entities is None
        else {entity: limits_by_entity[entity] for entity in entities if entity in limits_by_entity}
    )


def alter_quotas(
    wire: Wire, items: Mapping[QuotaEntity, Mapping[str, float | None]], validate_only: bool
) -> dict[QuotaEntity, Result]:
    """Set and remove limits, and return a result for each entity.

    Raises Fault if only one request is sent and the request fails.
    """

    def build_request(batch: Iterable[tuple[QuotaEntity, Mapping[str, float | None]]]) -> Any:
        entries = [_build_entry(entity, limits) for entity, limits in batch]
        return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)

    return send_batches(
        wire,
        list(items.items()),
        get_key=lambda item: item[0],
        build_request=build_request,
        read_codes=_read_codes,
        count_metadata_records=lambda item: len(item[1]),
        validate_only=validate_only,
    )


def _build_describe_request(entity: QuotaEntity) -> Any:
    component_class = DescribeClientQuotasRequest.ComponentData
    components = [
        component_class(
            entity_type=type_.value, match_type=_DEFAULT if name is None else _EXACTLY, match=name
        )
        for type_, name in entity.parts
    ]
    return DescribeClientQuotasRequest(components=components, strict=True)


def _build_entry(entity: QuotaEntity, limits: Mapping[str, float | None]) -> Any:
    entry_class = AlterClientQuotasRequest.EntryData
    return entry_class(
        entity=[entry_class.EntityData(entity_type=t.value, entity_name=name) for t, name in entity.parts],
        ops=[
            entry_class.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in limits.items()
        ],
    )


def _read_quotas(response: Any) -> dict[QuotaEntity, Mapping[str, float]]:
    if response.error_code:
        raise build_fault_from_code(response.error_code, response.error_message, changes=False)
    return {
        _read_entity(entry): {item.key: item.value for item in entry.values}
        for entry in response.entries or ()
        if all(part.entity_type in _TYPES for part in entry.entity)
    }


def _read_codes(response: Any) -> Iterable[tuple[QuotaEntity, int, str | None]]:
    for entry in response.entries:
        yield _read_entity(entry), entry.error_code, entry.error_message


def _read_entity(entry: Any) -> QuotaEntity:
    return QuotaEntity.of({EntityType(part.entity_type): part.entity_name for part in entry.entity})
