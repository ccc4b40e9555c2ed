"""Change the overrides that Connect workers share (KIP-1185).

kdeclare validates a change with every worker, sends the change to one worker, and waits for all workers.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Annotated, Literal

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_text
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, FaultKind, Result
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_NONE, get_arguments
from kdeclare.core.operations.operation import Arguments, Operation, UndoResult
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.secret_hashes import is_mark
from kdeclare.core.secrets.secret_refs import SecretRef, SecretSource, ValuePath
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED, Changes, apply_changes, require_valid
from kdeclare.providers.connect.connection import ConnectClients
from kdeclare.providers.connect.worker_config.collector import WorkerSelection, WorkerState
from kdeclare.providers.connect.worker_health import IN_STEP, find_refusing, find_unconverged
from kdeclare.providers.connect.worker_state import (
    GroupSnapshot,
    WorkerGroup,
    mark_new_value,
    mark_secret,
    redact_marked,
)


@dataclass(frozen=True, slots=True)
class WorkerConfigOpArgs(Arguments):
    """The change to one key.

    value: the new value; None removes the override.
    was: the reference and hash of the secret that the change replaces; None if it replaces no secret.
    """

    key: str
    op: Literal["SET", "DELETE"]
    value: str | SecretRef | None
    was: Annotated[SecretRef | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class PatchWorkersArgs(Arguments):
    """The changes to the overrides that the workers of one group share.

    again: the URLs of workers that refused the current values. The operation sends these values again.
    """

    workers: WorkerGroup
    ops: tuple[WorkerConfigOpArgs, ...]
    again: Annotated[tuple[str, ...], OMIT_EMPTY] = ()


REFUSED = "refused"
"""The state of a worker that refused an update, so that the update must be sent again."""
WORKER_PATH_PREFIX = "workers."
"""The prefix of a field path that represents a worker. The URL of the worker follows."""


def get_group(op: Operation) -> WorkerGroup:
    """Return the workers that an operation changes."""
    return _get_args(op).workers


def _get_args(op: Operation) -> PatchWorkersArgs:
    return get_arguments(op, PatchWorkersArgs)


class PatchWorkers(OperationType):
    """The operation type that changes the overrides of one group of workers."""

    name = "connect.worker-config.patch"
    done_label = ("group of Connect workers configured", "groups of Connect workers configured")
    arguments = PatchWorkersArgs
    validates = True
    propagates = True

    def describe_target(self, op: Operation) -> tuple[str, str]:
        """Return the label "workers" and the URLs of the workers, separated by commas."""
        return "workers", ", ".join(get_group(op).names)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Explain a fault. The only cause that is recognized is a missing permission."""
        if fault.error == NOT_AUTHORIZED:
            missing_right = "permission to change the worker config of these Connect workers"
            return Explanation(FaultCause.NOT_AUTHORIZED, missing_right)
        return Explanation()

    def is_confined(self, op: Operation) -> bool:
        """Whether the resource of the operation is a ConnectWorkerConfig.

        The name of the resource is not checked, because it does not identify the workers.
        """
        return op.resource.kind == "ConnectWorkerConfig"

    def select(self, op: Operation) -> Selections:
        """Select the workers that the operation changes."""
        return (WorkerSelection(frozenset({get_group(op)})),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return the raw values of the changed keys, and the state of each worker in ``again``.

        A secret is represented by a string that contains a part of its hash. Raises Fault if no worker
        reports the overrides.
        """
        snapshot = live.get(WorkerState).groups[get_group(op)]
        overrides, location = _require_overrides(snapshot), str(get_group(op))
        view: dict[str, JsonValue] = {
            item.key: mark_secret(location, item.key, overrides.get(item.key), _collect_hashes(item))
            for item in _get_args(op).ops
        }
        refusing_urls = {standing.url for standing in find_refusing(snapshot)}
        return view | {url: REFUSED if url in refusing_urls else IN_STEP for url in _get_args(op).again}

    def expected_state(self, op: Operation) -> View:
        """Return the view after the operation: the new values, and `IN_STEP` for each worker in ``again``."""
        new_values = {item.key: mark_new_value(item.value) for item in _get_args(op).ops}
        return {**op.expect, **new_values, **dict.fromkeys(_get_args(op).again, IN_STEP)}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return one field per key, and one field per worker to which values are sent again."""
        expected_view = self.expected_state(op)
        key_changes = (
            FieldChange(
                f"configs.{item.key}",
                FieldOp(item.op),
                redact_marked(op.expect.get(item.key)),
                redact_marked(expected_view[item.key]),
            )
            for item in _get_args(op).ops
        )
        retry_changes = (
            FieldChange(f"{WORKER_PATH_PREFIX}{url}", FieldOp.CHANGE, REFUSED, IN_STEP)
            for url in _get_args(op).again
        )
        return (*key_changes, *retry_changes)

    def find_element(self, op: Operation, at: ValuePath) -> str:
        """Return the config key that the argument at the path ``at`` belongs to."""
        if at[0] == "ops" and isinstance(at[1], int):
            return _get_args(op).ops[at[1]].key
        return super().find_element(op, at)

    def without_elements(self, op: Operation, elements: Set[str]) -> Operation | None:
        """Return the operation without the changes to the given keys; None if no change remains."""
        remaining_ops = tuple(item for item in _get_args(op).ops if item.key not in elements)
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        return (
            replace(op, args=replace(_get_args(op), ops=remaining_ops), expect=expect)
            if remaining_ops
            else None
        )

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return one claim per key, and one claim per worker to which values are sent again."""
        names = [*(item.key for item in _get_args(op).ops), *_get_args(op).again]
        return {name: f"connect/{get_group(op)}/{name}" for name in names}

    def get_batch_key(self, op: Operation) -> str:
        """Return the group of workers. Operations with the same key go into different batches."""
        return str(get_group(op))

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return all claims of the operation."""
        return frozenset(self.claims(op).values())

    def list_lagging_members(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """Return the workers that lag behind or do not present the certificate that they report.

        If no worker shows the new values yet, return only one entry, which names the keys.
        """
        snapshot = live.get(WorkerState).groups[get_group(op)]
        if snapshot.overrides is None:
            return (_explain_unknown_overrides(snapshot),)
        expected_view, current_view = self.expected_state(op), self.compute_view(op, live)
        pending_keys = [
            item.key for item in _get_args(op).ops if current_view[item.key] != expected_view[item.key]
        ]
        if pending_keys:
            return (f"no worker shows the new value of {', '.join(pending_keys)}",)
        return tuple(
            f"{standing.url}: {standing.why}" for standing in find_unconverged(snapshot, snapshot.overrides)
        )

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Have every worker validate each change. Then send one PATCH, unless ``validate_only`` is set."""
        clients = connections.get(ConnectClients)
        return {op.id: _patch_group(clients, op, secrets, validate_only=validate_only) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Return the operation that restores the earlier values.

        A key whose value changed again after the operation is reported as a conflict.
        """
        expected_view = self.expected_state(op)
        inverse_ops: list[WorkerConfigOpArgs] = []
        conflicts: list[str] = []
        lost_secrets: list[str] = []
        for item in _get_args(op).ops:
            key = item.key
            before, current = op.expect.get(key), now.get(key)
            if current == before:
                continue
            if current != expected_view[key]:
                conflicts.append(key)
            elif is_mark(before) and not (item.was and item.was.reference is not None):
                lost_secrets.append(f"the secret of {key}")
            else:
                inverse_ops.append(_invert_op(item, before))
        args = PatchWorkersArgs(get_group(op), tuple(inverse_ops)) if inverse_ops else None
        return UndoResult(self.name, args, tuple(conflicts), tuple(lost_secrets))


def _collect_hashes(item: WorkerConfigOpArgs) -> list[str]:
    """Return the hashes of the secrets that a change sets or replaces."""
    return [value.secret for value in (item.value, item.was) if isinstance(value, SecretRef)]


def _require_overrides(snapshot: GroupSnapshot) -> Mapping[str, str]:
    if snapshot.overrides is None:
        raise Fault("WORKER_UNREACHABLE", _explain_unknown_overrides(snapshot), FaultKind.UNKNOWN)
    return snapshot.overrides


def _explain_unknown_overrides(snapshot: GroupSnapshot) -> str:
    reasons = "; ".join(f"{worker.url}: {worker.trouble}" for worker in snapshot.workers if worker.trouble)
    return f"no worker reports its overrides ({reasons or 'no reason given'})"


def _patch_group(
    clients: ConnectClients, op: Operation, secrets: SecretSource, *, validate_only: bool
) -> Result:
    workers = clients.open(get_group(op))
    changes = _build_changes(op, secrets)
    try:
        if validate_only:
            require_valid(workers, changes)
        else:
            apply_changes(workers, changes)
    except Fault as fault:
        return fault
    return None


def _build_changes(op: Operation, secrets: SecretSource) -> Changes:
    return {
        item.key: secrets.reveal(item.value) if isinstance(item.value, SecretRef) else item.value
        for item in _get_args(op).ops
    }


def _invert_op(item: WorkerConfigOpArgs, before: JsonValue) -> WorkerConfigOpArgs:
    was = item.value if isinstance(item.value, SecretRef) else None
    if before is None:
        return WorkerConfigOpArgs(item.key, "DELETE", None, was)
    return WorkerConfigOpArgs(item.key, "SET", item.was if is_mark(before) else as_text(before), was)
