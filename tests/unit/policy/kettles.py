"""A provider for kettles outside kdeclare, to test that policies work without built-in kinds."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel, ConfigDict

from kdeclare.core.jsontypes import JsonValue, as_object
from kdeclare.core.live.collector import Collector, Selections
from kdeclare.core.live.faults import Fault, FaultKind, Outcome
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Arguments, Operation, UndoResult
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, SpecProblem, narrow
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_refs import SecretSource
from tests.jsontypes import Json
from tests.loaded_providers import replace_load_providers


@dataclass
class Kitchen:
    """The system: kettles by name, each with its fields. broken: it does not respond."""

    kettles: dict[str, dict[str, Json]] = field(default_factory=dict)
    broken: bool = False
    reads: int = 0


@dataclass(frozen=True)
class KettleState:
    kettles: Mapping[str, Mapping[str, Json]]


@dataclass(frozen=True)
class KettleSelection:
    def merge(self, others: Sequence["KettleSelection"]) -> "KettleSelection":
        return self


class KettleSpec(BaseModel):
    """``spec`` of a Kettle."""

    model_config = ConfigDict(extra="forbid")
    heat: int | None = None
    extras: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class KettleRecord(OwnedRecord):
    """The applied state of a kettle."""

    values: Mapping[str, JsonValue]
    labels: Mapping[str, str]


class KettleKind:
    """Kettles have a heat and extras by name. They cannot be imported or audited in fleets."""

    name = "Kettle"
    spec: type[BaseModel] = KettleSpec
    record: type[OwnedRecord] = KettleRecord
    policy_words = PolicyWords(
        {
            "heat": PolicyField(int),
            "extras": PolicyField(dict[str, str], keys=lambda: {"whistle": str}),
            "cups": PolicyField(list[int]),
        }
    )

    def parse(self, name: str, spec: BaseModel) -> tuple[object, tuple[SpecProblem, ...]]:
        return narrow(spec, KettleSpec), ()

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        return (KettleSelection(),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        now = live.get(KettleState).kettles.get(resource.name)
        if desired is None:
            gone = Change(resource, Action.DELETE, Reason.ORPHANED, Risk.SAFE)
            return Difference(gone if now is not None else None, owned)
        wanted = _get_values(desired.get_body(KettleSpec))
        fields = _compare_fields(now or {}, wanted)
        record = KettleRecord(wanted, dict(desired.labels))
        if now is None:
            return Difference(Change(resource, Action.CREATE, Reason.DECLARED, Risk.SAFE, fields), record)
        change = Change(resource, Action.UPDATE, Reason.CHANGED, Risk.SAFE, fields) if fields else None
        return Difference(change, record)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        verb = {Action.CREATE: "kettle.buy", Action.DELETE: "kettle.scrap"}.get(change.action, "kettle.set")
        now = live.get(KettleState).kettles.get(change.id.name)
        args = KettleArgs({f.path: f.after for f in change.fields})
        id_ = f"{verb}:{change.id.name}"
        return (Operation(id_, verb, change.id, args, {"kettle": now}, irreversible="It is only a kettle."),)

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        return after if all_done else before

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        return _get_values(desired.get_body(KettleSpec))

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        return live.get(KettleState).kettles.get(resource.name)

    def select_every(self) -> Selections:
        return (KettleSelection(),)

    def list_live(self, live: LiveState) -> Collection[str]:
        return live.get(KettleState).kettles.keys()


class UrnSpec(BaseModel):
    """``spec`` of an Urn."""

    serial: str


class UrnKind(KettleKind):
    """A kettle that the system identifies by its serial number instead of the name in the manifest."""

    name = "Urn"
    spec: type[BaseModel] = UrnSpec

    def parse(self, name: str, spec: BaseModel) -> tuple[object, tuple[SpecProblem, ...]]:
        return narrow(spec, UrnSpec), ()

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        return {}

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        serial = desired.get_body(UrnSpec).serial if desired is not None else resource.name
        return live.get(KettleState).kettles.get(serial)

    def to_json(self, name: str, body: UrnSpec) -> Json:
        return body.model_dump()

    def from_json(self, json: Json) -> UrnSpec:
        return UrnSpec(**json)

    def is_self_contained(self, name: str, body: UrnSpec) -> bool:
        return True

    def find_live_key(self, name: str, body: UrnSpec | None, owned: OwnedRecord | None) -> LiveKey | None:
        return LiveKey(self.name, body.serial) if body is not None else None


@dataclass(frozen=True)
class KettleArgs(Arguments):
    """fields: the new values, by path."""

    fields: Mapping[str, Json]


def _get_fields(op: Operation) -> Mapping[str, Json]:
    return get_arguments(op, KettleArgs).fields


class KettleOperation(OperationType):
    arguments = KettleArgs

    def __init__(self, kitchen: Kitchen, name: str) -> None:
        self.kitchen, self.name = kitchen, name
        self.creates, self.deletes = name == "kettle.buy", name == "kettle.scrap"

    def select(self, op: Operation) -> Selections:
        return (KettleSelection(),)

    def compute_view(self, op: Operation, live: LiveState) -> View:
        return {"kettle": live.get(KettleState).kettles.get(op.resource.name)}

    def expected_state(self, op: Operation) -> View:
        after = None if self.deletes else _apply_fields(as_object(op.expect["kettle"] or {}), _get_fields(op))
        return {"kettle": after}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        before = as_object(op.expect["kettle"] or {})
        return tuple(
            FieldChange(path, FieldOp.CHANGE, before.get(path), after)
            for path, after in _get_fields(op).items()
        )

    def claims(self, op: Operation) -> Mapping[str, str]:
        return {"kettle": f"kettle/{op.resource.name}"}

    def get_batch_key(self, op: Operation) -> str:
        return op.resource.name

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
        for op in ops:
            after = self.expected_state(op)["kettle"]
            self.kitchen.kettles.pop(op.resource.name, None)
            if after is not None:
                self.kitchen.kettles[op.resource.name] = dict(as_object(after))
        return {op.id: None for op in ops}

    def is_confined(self, op: Operation) -> bool:
        return True

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        return UndoResult(lost=("the kettle as it was",))


def _get_values(body: KettleSpec) -> dict[str, Json]:
    found: dict[str, Json] = {"extras": dict(body.extras)}
    return found | ({} if body.heat is None else {"heat": body.heat})


def _compare_fields(now: Mapping[str, Json], wanted: Mapping[str, Json]) -> tuple[FieldChange, ...]:
    found = {"heat": (now.get("heat"), wanted.get("heat", now.get("heat")))}
    before, after = now.get("extras", {}), wanted.get("extras", {})
    found |= {f"extras.{key}": (before.get(key), after.get(key)) for key in sorted({*before, *after})}
    return tuple(FieldChange(p, FieldOp.CHANGE, b, a) for p, (b, a) in found.items() if b != a)


def _apply_fields(now: Mapping[str, Json], fields: Mapping[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {**now, "extras": dict(now.get("extras", {}))}
    for path, value in fields.items():
        name, _, key = path.partition(".")
        if key:
            found["extras"] = {k: v for k, v in {**found["extras"], key: value}.items() if v is not None}
        else:
            found[name] = value
    return found


class TeapotKind(KettleKind):
    """The same, but without support for policies."""

    name = "Teapot"
    policy_words = None  # type: ignore[assignment]
    describe_live = None  # type: ignore[assignment]


@pytest.fixture
def kitchen(monkeypatch: pytest.MonkeyPatch) -> Kitchen:
    """Install the provider of a kitchen next to the others."""
    kitchen = Kitchen()

    def read(connections: Connections, selection: KettleSelection) -> KettleState:
        kitchen.reads += 1
        if kitchen.broken:
            raise Fault("POWER_CUT", "There is no power.", FaultKind.UNKNOWN)
        return KettleState({name: dict(found) for name, found in kitchen.kettles.items()})

    types = tuple(KettleOperation(kitchen, name) for name in ("kettle.buy", "kettle.set", "kettle.scrap"))
    collector = Collector(KettleSelection, read)
    provider = Provider("kitchen", (KettleKind(), TeapotKind(), UrnKind()), types, collectors=(collector,))
    providers = (*load_providers(), provider)
    replace_load_providers(monkeypatch, lambda: providers)
    return kitchen
