"""Convert config changes to `configs.alter` operations.

A large change to the size of a thread pool requires several operations.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import View, with_inverse
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SecretRef
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_record import Applied
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry
from kdeclare.providers.kafka.operations.alter_configs import AlterConfigs
from kdeclare.providers.kafka.operations.arguments import (
    OP_NAMES,
    AlterConfigsArgs,
    ConfigOpArgs,
    make_config_argument,
)

CONFIG_FIELD_PREFIX = "configs."
_ALTER = AlterConfigs()


def filter_config_fields(fields: Iterable[FieldChange]) -> list[FieldChange]:
    """Return only the field changes that are about configs."""
    return [field for field in fields if field.path.startswith(CONFIG_FIELD_PREFIX)]


def get_config_key(field: FieldChange) -> str:
    """Return the config key in the path of a field: the characters after the first dot."""
    return field.path.removeprefix(CONFIG_FIELD_PREFIX)


def build_config_operations(
    resource: ResourceId,
    entity: ConfigResource,
    stages: Sequence[Sequence[FieldChange]],
    applied: Mapping[str, Applied],
    identity: View | None = None,
    *,
    is_whole: bool = False,
) -> list[Operation]:
    """Build one atomic operation for each non-empty stage. Each operation depends on the previous one.

    stages: lists of field changes. One request makes all changes of a stage.
    applied: the owned configs of the resource.
    identity: the expected id of a topic (see `build_identity_view`).
    is_whole: whether the operations create or delete the whole resource.
    """
    operations: list[Operation] = []
    for fields in stages:
        if not fields:
            continue
        number = len(operations) + 1
        suffix = f"#{number}" if number > 1 else ""
        needs = {operations[-1].id: "a request may contain each key only once"} if operations else {}
        op = Operation(
            id=f"{_ALTER.name}:{resource}{suffix}",
            verb=_ALTER.name,
            resource=resource,
            args=AlterConfigsArgs(
                entity.scope.value,
                entity.name,
                tuple(_build_op(field, applied) for field in fields),
                is_whole,
            ),
            expect={get_config_key(f): f.before for f in fields} | dict(identity or {}),
            needs=needs,
        )
        operations.append(with_inverse(_ALTER, op))
    return operations


def group_by_occurrence(fields: Iterable[FieldChange]) -> list[list[FieldChange]]:
    """Group field changes into stages. Stage n contains the n-th field change of each key.

    A stage contains a key only once, because Kafka rejects requests that contain a key twice (KIP-339).
    """
    stages: list[list[FieldChange]] = []
    next_stages: dict[str, int] = {}
    for field in fields:
        stage = next_stages.get(field.path, 0)
        next_stages[field.path] = stage + 1
        if stage == len(stages):
            stages.append([])
        stages[stage].append(field)
    return stages


def _build_op(field: FieldChange, applied: Mapping[str, Applied]) -> ConfigOpArgs:
    key = get_config_key(field)
    value = None if field.op is FieldOp.DELETE else field.value if field.value is not None else field.after
    applied_value = applied.get(key)
    overwritten = applied_value if isinstance(applied_value, SecretRef) else None
    return ConfigOpArgs(key, OP_NAMES[field.op], make_config_argument(value), overwritten)


THREAD_POOLS = frozenset(
    {
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)


def expand_thread_pools(
    stages: Sequence[Sequence[FieldChange]], live: Mapping[str, ConfigEntry]
) -> list[list[FieldChange]]:
    """Add stages for each thread pool whose size changes by more than a factor of two; return all stages."""
    expanded: list[list[FieldChange]] = [[] for _ in stages]
    for number, stage in enumerate(stages):
        for field in stage:
            for offset, step in enumerate(_expand_steps(field, live)):
                if number + offset == len(expanded):
                    expanded.append([])
                expanded[number + offset].append(step)
    return expanded


def _expand_steps(field: FieldChange, live: Mapping[str, ConfigEntry]) -> Iterator[FieldChange]:
    """Yield steps that double or halve the size of a thread pool, and finally the field change itself."""
    key = get_config_key(field)
    if key not in THREAD_POOLS:
        yield field
        return
    info = load_catalog(ConfigScope.BROKER).get(key)
    default = info.default if info else None
    entry = live.get(key)
    current = _parse_size(entry.value if entry else default)
    beneath = entry.beneath if entry and entry.beneath else default
    target = _parse_size(beneath if field.op is FieldOp.DELETE else field.after)
    before = field.before
    while current and target and not current // 2 <= target <= current * 2:
        current = current * 2 if target > current else (current + 1) // 2
        yield FieldChange(field.path, FieldOp.SET, before, str(current))
        before = str(current)
    yield replace(field, before=before)


def _parse_size(value: JsonValue) -> int | None:
    return parse_whole_number(value) if isinstance(value, str) else None
