"""From the config fields of a change to `configs.alter` operations."""

from collections.abc import Iterable, Mapping, Sequence

from kdeclare.core.changes import FieldChange, FieldOp
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_type import with_inverse
from kdeclare.core.operations import Operation
from kdeclare.core.secrets import is_secret, read_secret_ref
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.alter_configs import AlterConfigs, topics_of
from kdeclare.providers.kafka.operations.arguments import (
    OP_NAMES,
    AlterConfigsArgs,
    ConfigOpArgs,
    make_config_argument,
)
from kdeclare.providers.kafka.topic_identity import identities

PREFIX = "configs."
_ALTER = AlterConfigs()


def config_fields(fields: Iterable[FieldChange]) -> list[FieldChange]:
    """The fields that are configs."""
    return [field for field in fields if field.path.startswith(PREFIX)]


def key_of(field: FieldChange) -> str:
    """The config key of a field's path: all that follows the first dot."""
    return field.path.removeprefix(PREFIX)


def config_operations(
    resource: ResourceId,
    entity: ConfigResource,
    stages: Sequence[Sequence[FieldChange]],
    owned: Json,
    live: KafkaState,
) -> list[Operation]:
    """One atomic operation a stage, each needing the one before it; empty stages are left out."""
    records = (owned or {}).get("configs", {})
    operations: list[Operation] = []
    for fields in stages:
        if not fields:
            continue
        number = len(operations) + 1
        suffix = f"#{number}" if number > 1 else ""
        needs = {operations[-1].id: "one key appears once in a request"} if operations else {}
        op = Operation(
            id=f"{_ALTER.name}:{resource}{suffix}",
            verb=_ALTER.name,
            resource=resource,
            args=AlterConfigsArgs(
                "TOPIC" if entity.scope is ConfigScope.TOPIC else "BROKER",
                entity.name,
                tuple(_op(field, records) for field in fields),
            ),
            expect={key_of(f): f.before for f in fields} | identities(topics_of(entity), live),
            needs=needs,
        )
        operations.append(with_inverse(_ALTER, op))
    return operations


def by_occurrence(fields: Iterable[FieldChange]) -> list[list[FieldChange]]:
    """Stages in which every key appears once: the n-th field of a key goes into stage n (KIP-339)."""
    stages: list[list[FieldChange]] = []
    seen: dict[str, int] = {}
    for field in fields:
        stage = seen.get(field.path, 0)
        seen[field.path] = stage + 1
        if stage == len(stages):
            stages.append([])
        stages[stage].append(field)
    return stages


def _op(field: FieldChange, records: Mapping[str, Json]) -> ConfigOpArgs:
    key = key_of(field)
    value = None if field.op is FieldOp.DELETE else field.value if field.value is not None else field.after
    was = read_secret_ref(records[key]) if is_secret(records.get(key)) else None
    return ConfigOpArgs(key, OP_NAMES[field.op], make_config_argument(value), was)
