"""Changing what Connect workers share (KIP-1185): every worker is asked, one PATCH is sent, all follow."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Annotated, Literal

from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue, as_text
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Explanation, Fault, FaultCause, FaultKind, Result
from kdeclare.core.operations.binding import EMPTY_UNSTATED, UNSTATED, get_arguments
from kdeclare.core.operations.operation import Arguments, Operation, Undo
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.secret_hashes import is_mark
from kdeclare.core.secrets.secret_refs import SecretRef, SecretSource, Steps
from kdeclare.providers.connect.client.port import NOT_AUTHORIZED, Changes, change, check
from kdeclare.providers.connect.connection import ConnectClients, WorkerSelection, WorkerState
from kdeclare.providers.connect.worker_health import IN_STEP, not_reached, refusing
from kdeclare.providers.connect.worker_state import (
    WorkerGroup,
    WorkersSeen,
    mark_of,
    mark_secret,
    show_marked,
)


@dataclass(frozen=True, slots=True)
class WorkerConfigOpArgs(Arguments):
    """One op on one key. value: None for DELETE. was: the record of a secret that it overwrites."""

    key: str
    op: Literal["SET", "DELETE"]
    value: str | SecretRef | None
    was: Annotated[SecretRef | None, UNSTATED] = None


@dataclass(frozen=True, slots=True)
class PatchWorkersArgs(Arguments):
    """Ops on what the workers of one group share.

    again: the workers for whose sake values are sent that are there already, as these workers refused them.
    """

    workers: WorkerGroup
    ops: tuple[WorkerConfigOpArgs, ...]
    again: Annotated[tuple[str, ...], EMPTY_UNSTATED] = ()


REFUSED = "refused"
"""What a worker is that has to be told again."""
WORKERS = "workers."
"""Of the path of a field that is about one worker; its URL follows."""


def group_of(op: Operation) -> WorkerGroup:
    """The workers that an operation is about."""
    return _args(op).workers


def _args(op: Operation) -> PatchWorkersArgs:
    return get_arguments(op, PatchWorkersArgs)


class PatchWorkers(OperationType):
    """Changes what the workers of one group share."""

    name = "connect.worker-config.patch"
    done_label = ("group of Connect workers configured", "groups of Connect workers configured")
    arguments = PatchWorkersArgs
    validates = True
    propagates = True

    def name_target(self, op: Operation) -> tuple[str, str]:
        """The workers."""
        return "workers", ", ".join(group_of(op).urls)

    def explain(self, op: Operation, fault: Fault) -> Explanation:
        """Workers refuse clients that their authorizer does not permit."""
        if fault.error == NOT_AUTHORIZED:
            right = "to change the worker config of these Connect workers"
            return Explanation(FaultCause.NOT_AUTHORIZED, right)
        return Explanation()

    def is_confined(self, op: Operation) -> bool:
        """To a resource that says which workers it is about, under a name of its own."""
        return op.resource.kind == "ConnectWorkerConfig"

    def select(self, op: Operation) -> Selections:
        """Its workers."""
        return (WorkerSelection(frozenset({group_of(op)})),)

    def view(self, op: Operation, live: LiveState) -> View:
        """The raw overrides of its keys, secrets as marks; and of workers to be told again, how they are.

        Raises Fault where no worker tells.
        """
        seen = live.get(WorkerState).groups[group_of(op)]
        overrides, place = _told(seen), str(group_of(op))
        view: dict[str, JsonValue] = {
            item.key: mark_secret(place, item.key, overrides.get(item.key), _hashes(item))
            for item in _args(op).ops
        }
        late = {standing.url for standing in refusing(seen)}
        return view | {url: REFUSED if url in late else IN_STEP for url in _args(op).again}

    def expected_state(self, op: Operation) -> View:
        """The overrides once the ops are done; the workers are all in step."""
        done = {item.key: mark_of(item.value) for item in _args(op).ops}
        return {**op.expect, **done, **dict.fromkeys(_args(op).again, IN_STEP)}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """One a key, and one a worker that is told again."""
        after = self.expected_state(op)
        keys = (
            FieldChange(
                f"configs.{item.key}",
                FieldOp(item.op),
                show_marked(op.expect.get(item.key)),
                show_marked(after[item.key]),
            )
            for item in _args(op).ops
        )
        again = (FieldChange(f"{WORKERS}{url}", FieldOp.CHANGE, REFUSED, IN_STEP) for url in _args(op).again)
        return (*keys, *again)

    def element_at(self, op: Operation, at: Steps) -> str:
        """The key that an op is about."""
        if at[0] == "ops" and isinstance(at[1], int):
            return _args(op).ops[at[1]].key
        return super().element_at(op, at)

    def without(self, op: Operation, elements: Set[str]) -> Operation | None:
        """The ops on other keys."""
        left = tuple(item for item in _args(op).ops if item.key not in elements)
        expect = {element: value for element, value in op.expect.items() if element not in elements}
        return replace(op, args=replace(_args(op), ops=left), expect=expect) if left else None

    def claims(self, op: Operation) -> Mapping[str, str]:
        """One a key, and one a worker that is told again."""
        names = [*(item.key for item in _args(op).ops), *_args(op).again]
        return {name: f"connect/{group_of(op)}/{name}" for name in names}

    def item(self, op: Operation) -> str:
        """The workers: two changes of one group are made one after the other."""
        return str(group_of(op))

    def produces(self, op: Operation) -> frozenset[str]:
        """All of it."""
        return frozenset(self.claims(op).values())

    def lagging(self, op: Operation, live: LiveState) -> tuple[str, ...]:
        """The workers that do not run on all overrides yet, or show another certificate than they say.

        Where no worker has read the change yet, all of them are in step with what was before.
        """
        seen = live.get(WorkerState).groups[group_of(op)]
        if seen.overrides is None:
            return (_unknown(seen),)
        after, now = self.expected_state(op), self.view(op, live)
        unread = [item.key for item in _args(op).ops if now[item.key] != after[item.key]]
        if unread:
            return (f"no worker shows {', '.join(unread)} as it was sent",)
        return tuple(f"{standing.url}: {standing.why}" for standing in not_reached(seen, seen.overrides))

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Have every worker check the change; then, unless that is all, one PATCH through one of them."""
        clients = connections.get(ConnectClients)
        return {op.id: _patched(clients, op, secrets, validate_only=validate_only) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> Undo:
        """Bring back the earlier value of each key that still is as the operation left it."""
        after = self.expected_state(op)
        back: list[WorkerConfigOpArgs] = []
        conflicts: list[str] = []
        lost: list[str] = []
        for item in _args(op).ops:
            key = item.key
            before, current = op.expect.get(key), now.get(key)
            if current == before:
                continue
            if current != after[key]:
                conflicts.append(key)
            elif is_mark(before) and not (item.was and item.was.reference is not None):
                lost.append(f"the secret of {key}")
            else:
                back.append(_inverse(item, before))
        args = PatchWorkersArgs(group_of(op), tuple(back)) if back else None
        return Undo(self.name, args, tuple(conflicts), tuple(lost))


def _hashes(item: WorkerConfigOpArgs) -> list[str]:
    """Of the secrets that an operation sets and replaces."""
    return [value.secret for value in (item.value, item.was) if isinstance(value, SecretRef)]


def _told(seen: WorkersSeen) -> Mapping[str, str]:
    if seen.overrides is None:
        raise Fault("WORKER_UNREACHABLE", _unknown(seen), FaultKind.UNKNOWN)
    return seen.overrides


def _unknown(seen: WorkersSeen) -> str:
    reasons = "; ".join(f"{worker.url}: {worker.trouble}" for worker in seen.workers if worker.trouble)
    return f"no worker tells its overrides ({reasons or 'no reason given'})"


def _patched(clients: ConnectClients, op: Operation, secrets: SecretSource, *, validate_only: bool) -> Result:
    workers = clients.open(group_of(op))
    changes = _changes(op, secrets)
    try:
        if validate_only:
            check(workers, changes)
        else:
            change(workers, changes)
    except Fault as fault:
        return fault
    return None


def _changes(op: Operation, secrets: SecretSource) -> Changes:
    return {
        item.key: secrets.reveal(item.value) if isinstance(item.value, SecretRef) else item.value
        for item in _args(op).ops
    }


def _inverse(item: WorkerConfigOpArgs, before: JsonValue) -> WorkerConfigOpArgs:
    was = item.value if isinstance(item.value, SecretRef) else None
    if before is None:
        return WorkerConfigOpArgs(item.key, "DELETE", None, was)
    return WorkerConfigOpArgs(item.key, "SET", item.was if is_mark(before) else as_text(before), was)
