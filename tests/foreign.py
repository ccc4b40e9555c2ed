"""A small third-party provider: queues in a shed. kdeclare itself is never changed for it.

Test modules import the fixture ``shed`` from here; the provider is installed while such a test runs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict

from kdeclare.cli import main
from kdeclare.core.diagnostics import Diagnostic, denied, error, warning
from kdeclare.core.live.collector import Collector, Selections
from kdeclare.core.live.faults import Outcome
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import DATA_LOSS, Arguments, Operation, UndoResult
from kdeclare.core.operations.operation_type import OperationType, View, with_inverse
from kdeclare.core.parts import Connections, LiveState, PlanContext, PlanOptions
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanSettings, PlanStep
from kdeclare.core.provider import entry_points, plan_options
from kdeclare.core.provider.entry_points import InstalledEntryPoint
from kdeclare.core.provider.installed_providers import GROUP, find_providers, load_providers, use_providers
from kdeclare.core.provider.plan_options import PlanOption
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    ResourceComparison,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    ManifestEdits,
    OmittedObjects,
    ValueEdit,
)
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import SecretSource, SecretText
from tests.jsontypes import Json, untyped


@dataclass
class Shed:
    """The system: the maximum size of each queue, and whether its content is durable."""

    queues: dict[str, dict[str, Json]] = field(default_factory=dict)


SHED = Shed()


@dataclass(frozen=True, slots=True)
class QueueSelection:
    """Selects all queues, because there are few."""

    def merge(self, others: Sequence[Self]) -> Self:
        return self


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues as they were read."""

    by_name: Mapping[str, Mapping[str, Json]]


def read_queues(connections: Connections, selection: QueueSelection) -> Queues:
    return Queues({name: dict(values) for name, values in SHED.queues.items()})


class QueueSpec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    size: int = 10
    durable: bool = False
    password: SecretText | None = None


@dataclass(frozen=True, slots=True)
class NameArguments(Arguments):
    queue: str


@dataclass(frozen=True, slots=True)
class QueueArguments(NameArguments):
    size: int
    durable: bool

    @property
    def values(self) -> dict[str, Json]:
        return {"size": self.size, "durable": self.durable}


@dataclass(frozen=True, slots=True)
class RemoveArguments(NameArguments):
    speed: Literal["slow", "fast"]


def get_queue_name(op: Operation) -> str:
    return get_arguments(op, NameArguments).queue


class QueueOperationType(OperationType):
    """The view contains each value of the queue, and None if the queue does not exist."""

    arguments: type[Arguments] = QueueArguments

    def is_confined(self, op: Operation) -> bool:
        return op.resource == ResourceId("Queue", get_queue_name(op))

    def select(self, op: Operation) -> Selections:
        return (QueueSelection(),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        return read_queue(live, get_queue_name(op))

    def expected_state(self, op: Operation) -> View:
        return get_arguments(op, QueueArguments).values

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        return compare_fields(op.expect, self.expected_state(op))

    def claims(self, op: Operation) -> Mapping[str, str]:
        return {element: f"queues/{get_queue_name(op)}/{element}" for element in ("size", "durable")}

    def get_batch_key(self, op: Operation) -> str:
        return get_queue_name(op)

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        return frozenset(self.claims(op).values())

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        if not validate_only:
            for op in ops:
                SHED.queues[get_queue_name(op)] = dict(self.expected_state(op))
        return {op.id: None for op in ops}


class CreateQueue(QueueOperationType):
    name = "queue.create"
    creates = True

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        return UndoResult("queue.remove", RemoveArguments(get_queue_name(op), "fast"))


class ChangeQueue(QueueOperationType):
    name = "queue.change"

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        if now != self.expected_state(op):
            return UndoResult(conflicts=("the queue",))
        return UndoResult(self.name, QueueArguments(get_queue_name(op), **untyped(op.expect)))


class RemoveQueue(QueueOperationType):
    """The view is the same, and empty afterwards."""

    name = "queue.remove"
    arguments = RemoveArguments
    deletes = True
    manner = frozenset({"speed"})

    def expected_state(self, op: Operation) -> View:
        return {"size": None, "durable": None}

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Outcome]:
        if not validate_only:
            for op in ops:
                SHED.queues.pop(get_queue_name(op), None)
        return {op.id: None for op in ops}

    def announce_losses(self, connections: Connections, ops: Sequence[Operation]) -> tuple[Diagnostic, ...]:
        names = ", ".join(op.resource.name for op in ops)
        return (warning(DATA_LOSS, "Queues will be emptied", f"What waits in {names} is lost."),)

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        return UndoResult("queue.create", QueueArguments(get_queue_name(op), **untyped(op.expect)))


def read_queue(live: LiveState, name: str) -> dict[str, Json]:
    values = live.get(Queues).by_name.get(name, {})
    return {"size": values.get("size"), "durable": values.get("durable")}


def compare_fields(before: View, after: View) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(name, FieldOp.CHANGE, before[name], after[name])
        for name in ("size", "durable")
        if before[name] != after[name]
    )


@dataclass(frozen=True, slots=True)
class QueueRecord(OwnedRecord):
    """The ownership record of a queue."""

    size: int | None = None
    durable: bool | None = None


class QueueKind:
    """Queues, which have exactly the declared values."""

    name = "Queue"
    spec: type[BaseModel] = QueueSpec
    record: type[OwnedRecord] = QueueRecord
    deletion_cause = "What is in the queue is lost."

    def parse(self, name: str, spec: BaseModel) -> tuple[QueueSpec, tuple[SpecProblem, ...]]:
        return narrow(spec, QueueSpec), ()

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        return (QueueSelection(),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        now = read_queue(live, resource.name)
        if desired is None:
            fields = compare_fields(now, {"size": None, "durable": None})
            gone = Change(resource, Action.DELETE, Reason.ORPHANED, Risk.DESTRUCTIVE, fields)
            return Difference(gone if fields else None)
        body = desired.get_body(QueueSpec)
        wanted: dict[str, Json] = {"size": body.size, "durable": body.durable}
        record = QueueRecord(body.size, body.durable)
        fields = compare_fields(now, wanted)
        if not fields:
            return Difference(None, record)
        action = Action.CREATE if now["size"] is None else Action.UPDATE
        reason = Reason.DECLARED if action is Action.CREATE else Reason.CHANGED
        return Difference(Change(resource, action, reason, Risk.SAFE, fields, desired.source), record)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        queue = change.id.name
        args: Arguments = RemoveArguments(queue, "slow")
        if desired is not None:
            body = desired.get_body(QueueSpec)
            args = QueueArguments(queue, body.size, body.durable)
        verb = {Action.CREATE: CREATE, Action.UPDATE: CHANGE, Action.DELETE: REMOVE}[change.action]
        bare = Operation(
            f"{verb.name}:{change.id}", verb.name, change.id, args, read_queue(live, change.id.name)
        )
        return (with_inverse(verb, bare),)

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        return after if all_done else before

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        return ManifestEdits(tuple(ValueEdit((field.path,), untyped(field.after)) for field in change.fields))

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        return [f"{field.path}: {json.dumps(field.after)}" for field in change.fields]

    def is_same_value(self, path: SpecPath, text: str, value: Json) -> bool:
        return text == json.dumps(value)

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        before = narrow_optional(before, QueueSpec)
        after = narrow(after, QueueSpec)
        return after == (before or QueueSpec()).model_copy(update={f.path: f.after for f in change.fields})

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        found = [name for name in SHED.queues if request.matches(name)]
        mine = [name for name in found if request.permits(ResourceId(self.name, name))]
        texts = {
            name: render_manifest(self.name, name, [f"size: {SHED.queues[name]['size']}"]) for name in mine
        }
        left = OmittedObjects(len(found) - len(mine), "queue", "queues", "of others")
        return Export(texts, (left,))


class ShelfSpec(BaseModel):
    """The project's settings for new queues."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    highest: int | None = None


@dataclass(frozen=True, slots=True)
class ShedOptions:
    """The maximum size of a queue; on the command line ``--highest``."""

    highest: Annotated[int | None, PlanOption("The size of the largest queue.", metavar="N")] = None


def complete_options(options: PlanOptions, stated: Sequence[BaseModel]) -> PlanOptions:
    chosen = options.find(ShedOptions) or ShedOptions()
    for spec in stated:
        if isinstance(spec, ShelfSpec) and chosen.highest is None:
            chosen = ShedOptions(spec.highest)
    return options.with_part(chosen)


class ShedPlanning(PlanHooks):
    """Denies queues that are too large."""

    def __init__(self, inputs: PlanInputs) -> None:
        self.highest = (inputs.options.find(ShedOptions) or ShedOptions()).highest

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        highest = self.highest
        sizes = {op.resource: op.args.size for op in operations if isinstance(op.args, QueueArguments)}
        too_large = [id_ for id_, size in sizes.items() if highest is not None and size > highest]
        return PlanStep(
            operations,
            tuple(
                denied("too-large", "Queue is too large", "There is no room.", resource=str(id_))
                for id_ in too_large
            ),
        )


def find_overfull(declared: Sequence[DesiredResource]) -> Sequence[Diagnostic]:
    """Return an error if the queues need more space than the shed has."""
    queues = [item for item in declared if item.id.kind == "Queue"]
    if sum(item.get_body(QueueSpec).size for item in queues) <= 1000:
        return ()
    return [error("no-room", "There is no room for all queues", "They hold more than 1,000.")]


CREATE, CHANGE, REMOVE = CreateQueue(), ChangeQueue(), RemoveQueue()
PROVIDER = Provider(
    "shed",
    kinds=(QueueKind(),),
    operation_types=(CREATE, CHANGE, REMOVE),
    builds_on=("kafka",),
    plan_settings=PlanSettings("shelves", ShelfSpec, complete_options),
    start_plan=ShedPlanning,
    may_hold_secret=lambda key: key == "combination",
    find_contradictions=find_overfull,
    collectors=(Collector(QueueSelection, read_queues, base_selection=QueueSelection()),),
)


@pytest.fixture
def shed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shed]:
    """An empty shed, with its provider installed in addition to kdeclare's own."""
    _clear_caches()
    installed = entry_points.find_all()
    provider = InstalledEntryPoint(GROUP, "shed", f"{__name__}:PROVIDER")
    options = InstalledEntryPoint(plan_options.GROUP, "shed", f"{__name__}:ShedOptions")
    monkeypatch.setattr(entry_points, "find_all", lambda: (*installed, provider, options))
    SHED.queues.clear()
    yield SHED
    _clear_caches()


def _clear_caches() -> None:
    use_providers(None)  # a fleet command of an earlier test may have chosen the providers
    find_providers.cache_clear()
    load_providers.cache_clear()
    plan_options.find_plan_options.cache_clear()
    main._build_cached_application.cache_clear()
