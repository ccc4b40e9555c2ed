"""Quotas: DescribeClientQuotas and AlterClientQuotas (KIP-546)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from kdeclare.core.live.faults import Fault, Result
from kdeclare.providers.kafka.client.faults import fault_for_code
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire, send_batches
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity

_ONE_BY_ONE = 16
"""Up to that many entities are asked for one by one; of more, all that the cluster has is read at once."""
_EXACTLY, _DEFAULT = 0, 1
"""Match types (org.apache.kafka.common.requests.DescribeClientQuotasRequest)."""
_TYPES = frozenset(EntityType)

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


def quotas(wire: Wire, fresh: Freshness, entities: Sequence[QuotaEntity] | None) -> Quotas:
    """Limits by entity; entities without any, and of types that are not known, are left out. Raises Fault."""
    if entities is not None and len(entities) <= _ONE_BY_ONE:
        requests = [_describe(entity) for entity in entities]
    else:
        requests = [DescribeClientQuotasRequest(components=[], strict=False)]
    found: dict[QuotaEntity, Mapping[str, float]] = {}
    for answer in wire.ask(requests, _read, changes=False, nodes=fresh.nodes()):
        if isinstance(answer, Fault):
            raise answer
        found |= answer
    return found if entities is None else {entity: found[entity] for entity in entities if entity in found}


def alter_quotas(
    wire: Wire, items: Mapping[QuotaEntity, Mapping[str, float | None]], validate_only: bool
) -> dict[QuotaEntity, Result]:
    """Set and remove limits, with a result for each entity. Raises Fault when the only request failed."""

    def request(part: Iterable[tuple[QuotaEntity, Mapping[str, float | None]]]) -> Any:
        entries = [_entry(entity, limits) for entity, limits in part]
        return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)

    return send_batches(
        wire,
        list(items.items()),
        key=lambda item: item[0],
        request=request,
        codes=_codes,
        records=lambda item: len(item[1]),
        validate_only=validate_only,
    )


def _describe(entity: QuotaEntity) -> Any:
    kind = DescribeClientQuotasRequest.ComponentData
    components = [
        kind(entity_type=type_.value, match_type=_DEFAULT if name is None else _EXACTLY, match=name)
        for type_, name in entity.parts
    ]
    return DescribeClientQuotasRequest(components=components, strict=True)


def _entry(entity: QuotaEntity, limits: Mapping[str, float | None]) -> Any:
    kind = AlterClientQuotasRequest.EntryData
    return kind(
        entity=[kind.EntityData(entity_type=t.value, entity_name=name) for t, name in entity.parts],
        ops=[
            kind.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in limits.items()
        ],
    )


def _read(response: Any) -> dict[QuotaEntity, Mapping[str, float]]:
    if response.error_code:
        raise fault_for_code(response.error_code, response.error_message, changes=False)
    return {
        _entity(entry): {item.key: item.value for item in entry.values}
        for entry in response.entries or ()
        if all(part.entity_type in _TYPES for part in entry.entity)
    }


def _codes(response: Any) -> Iterable[tuple[QuotaEntity, int, str | None]]:
    for entry in response.entries:
        yield _entity(entry), entry.error_code, entry.error_message


def _entity(entry: Any) -> QuotaEntity:
    return QuotaEntity.of({EntityType(part.entity_type): part.entity_name for part in entry.entity})
