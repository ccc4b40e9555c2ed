"""From a change of worker overrides to its one operation: all keys go in one PATCH."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kdeclare.core.arguments import Inverse
from kdeclare.core.changes import Change, FieldChange, FieldOp
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.operation_arguments import get_arguments
from kdeclare.core.operation_type import with_inverse
from kdeclare.core.operations import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.secrets import Secret, is_secret, read_secret_ref
from kdeclare.providers.connect.collector import WorkerState
from kdeclare.providers.connect.operation_arguments import PatchWorkersArgs, WorkerConfigOpArgs
from kdeclare.providers.connect.operations import WORKERS, PatchWorkers
from kdeclare.providers.connect.worker_config.diff import group_for
from kdeclare.providers.kafka.config.config_ops import config_fields, key_of
from kdeclare.providers.kafka.config.wishes import Unset, Whole, Wish

_PATCH = PatchWorkers()


def worker_operation(change: Change, desired: Desired | None, live: WorkerState, owned: Json) -> Operation:
    """The operation of a change.

    Where the overrides are as declared and workers have refused them, they are sent once more as they are.
    """
    body = desired.body if desired else None
    records: Mapping[str, Json] = (owned or {}).get("configs", {})
    fields = config_fields(change.fields)
    again = [] if fields else [f.path.removeprefix(WORKERS) for f in change.fields if _is_worker(f)]
    wishes: Mapping[str, Wish] = body.configs if body else {}
    ops = [_as_is(key, wish) for key, wish in sorted(wishes.items()) if not isinstance(wish, Unset)]
    args = PatchWorkersArgs(
        group_for(body, owned),
        tuple(ops if again else (_op(field, records) for field in fields)),
        tuple(again),
    )
    bare = Operation(f"{_PATCH.name}:{change.id}", _PATCH.name, change.id, args, {})
    op = replace(bare, expect=_PATCH.view(bare, LiveState(live)))
    return replace(op, inverse=Inverse(_PATCH.name, args)) if again else with_inverse(_PATCH, op)


def keys_of(operations: Sequence[Operation]) -> frozenset[str]:
    """The keys that operations are about."""
    return frozenset(item.key for op in operations for item in get_arguments(op, PatchWorkersArgs).ops)


def _is_worker(field: FieldChange) -> bool:
    return field.path.startswith(WORKERS)


def _as_is(key: str, wish: Wish) -> WorkerConfigOpArgs:
    if isinstance(wish, Secret):
        return WorkerConfigOpArgs(key, "SET", wish.ref)
    value = wish.value if isinstance(wish, Whole) else None
    return WorkerConfigOpArgs(key, "SET", value if isinstance(value, str) else None)


def _op(field: FieldChange, records: Mapping[str, Json]) -> WorkerConfigOpArgs:
    key = key_of(field)
    value = field.value if field.value is not None else field.after
    return WorkerConfigOpArgs(
        key,
        "DELETE" if field.op is FieldOp.DELETE else "SET",
        read_secret_ref(value) if is_secret(value) else value,
        read_secret_ref(records[key]) if is_secret(records.get(key)) else None,
    )
