"""A third-party provider: kettles, identified by serial number, and jars, declared as sets."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.collector import Collector, Selections
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import (
    DeclaredFacts,
    LiveFacts,
    LiveKey,
    LiveListing,
    LiveObject,
    UnreadPart,
    hash_fact,
)
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.audit_rules import AuditRules, Element
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, SpecProblem, narrow, narrow_optional
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from tests.jsontypes import Json


@dataclass(frozen=True)
class Kettle:
    """made: distinguishes a kettle from a later one with the same serial number."""

    heat: int
    made: str


@dataclass(frozen=True)
class KitchenState:
    """kettles: by serial number. jars: ``shelf/spice``. volts: state that all kettles share."""

    kettles: Mapping[str, Kettle] = field(default_factory=dict)
    jars: frozenset[str] = frozenset()
    volts: int = 230


@dataclass
class KitchenConnection:
    """A kitchen, or the fault that prevents reading it. unread: the parts that cannot be read."""

    state: KitchenState
    fault: Fault | None = None
    unread: Sequence[UnreadPart] = ()


@dataclass(frozen=True)
class KitchenSelection:
    """Kettles and shelves."""

    names: frozenset[str] = frozenset()

    def merge(self, others: Sequence["KitchenSelection"]) -> "KitchenSelection":
        """Return the whole kitchen."""
        return KitchenSelection(self.names.union(*(other.names for other in others)))


class KitchenCodec:
    """Kettles with facts, jars in groups."""

    name = "kitchen"
    sorts = frozenset({"Kettle", "Jars"})
    identifies_system = False
    groups = True
    nouns: Mapping[str, tuple[str, str]] = {"Kettle": ("kettle", "kettles"), "Jars": ("jar", "jars")}
    internal_marker: str | None = '"made":"house"'
    context: tuple[object, ...] = ()

    def list_objects(self, connections: Connections) -> LiveListing:
        """All kettles and jars."""
        kitchen = connections.get(KitchenConnection)
        if kitchen.fault is not None:
            raise kitchen.fault
        state = kitchen.state
        return LiveListing({"volts": state.volts}, self._objects(state), unread=kitchen.unread)

    def _objects(self, state: KitchenState) -> Iterator[LiveObject]:
        for serial, kettle in state.kettles.items():
            facts = LiveFacts([hash_fact("heat", str(kettle.heat)), hash_fact("made", kettle.made)])
            body: dict[str, JsonValue] = {"heat": kettle.heat, "made": kettle.made}
            yield LiveObject(LiveKey("Kettle", serial), body, facts=facts)
        for jar in sorted(state.jars):
            yield LiveObject(LiveKey("Jars", jar), {}, group=jar.partition("/")[0])

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> KitchenState:
        """Build a kitchen with these objects."""
        kettles: dict[str, Kettle] = {}
        jars: set[str] = set()
        for key, text in objects:
            if key.sort == "Jars":
                jars.add(key.key)
            else:
                kettles[key.key] = Kettle(**json.loads(text))
        return KitchenState(kettles, frozenset(jars), json.loads(system)["volts"])

    def has_object(self, key: LiveKey, live: LiveState) -> bool:
        """Whether the kettle or the jar exists."""
        state = live.get(KitchenState)
        return key.key in (state.jars if key.sort == "Jars" else state.kettles)

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """Return when a kettle was made."""
        kettle = live.get(KitchenState).kettles.get(key.key)
        return kettle.made if kettle is not None else None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """Whether to report an object: all but the built-in kettle."""
        return key.key != "house"


class KettleSpec(BaseModel):
    """``spec`` of a Kettle."""

    serial: str
    heat: int


@dataclass(frozen=True, slots=True)
class KettleRecord(OwnedRecord):
    """The record of a kettle. made: when it was made, if known."""

    serial: str
    heat: int
    made: Annotated[str | None, OMIT_NONE] = None


class KettleKind:
    """Kettles have any name; their key is the serial number."""

    name = "Kettle"
    spec: type[BaseModel] = KettleSpec
    record: type[OwnedRecord] = KettleRecord
    audit_rules: AuditRules = AuditRules(identity_field="made")
    policy_words = PolicyWords({"heat": PolicyField(int)})

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        return {"heat": desired.get_body(KettleSpec).heat}

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        body = desired.get_body(KettleSpec) if desired is not None else None
        key = self.find_live_key(resource.name, body, owned).key if body or owned else resource.name
        kettle = live.get(KitchenState).kettles.get(key)
        return None if kettle is None else {"heat": kettle.heat}

    def parse(self, name: str, spec: BaseModel) -> tuple[KettleSpec, tuple[SpecProblem, ...]]:
        return narrow(spec, KettleSpec), ()

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        body = narrow_optional(body, KettleSpec)
        return (KitchenSelection(frozenset({self.find_live_key(name, body, owned).key})),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        state = live.get(KitchenState)
        if desired is None:
            return Difference(None)
        body = desired.get_body(KettleSpec)
        kettle = state.kettles.get(body.serial)
        record = KettleRecord(body.serial, body.heat)
        before = narrow_record(owned, KettleRecord)
        if kettle is None:
            fields = (FieldChange("heat", FieldOp.SET, None, body.heat),)
            built_in = body.serial.startswith("built-in")  # a built-in kettle that is off needs no creation
            action = Action.UPDATE if built_in else Action.CREATE
            drifted = ("heat",) if built_in and owned else ()
            change = Change(resource, action, Reason.DECLARED, Risk.SAFE, fields)
            return Difference(change, record, drifted=drifted)
        if kettle.heat == body.heat:
            return Difference(None, record)
        drifted = ("heat",) if before is not None and kettle.heat != before.heat else ()
        fields = (FieldChange("heat", FieldOp.SET, kettle.heat, body.heat),)
        change = Change(resource, Action.UPDATE, Reason.CHANGED, Risk.SAFE, fields)
        return Difference(change, record, drifted=drifted)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        return ()

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        return after

    def to_json(self, name: str, body: object) -> Json:
        return narrow(body, KettleSpec).model_dump()

    def from_json(self, data: Json) -> KettleSpec:
        return KettleSpec(**data)

    def is_self_contained(self, name: str, body: object) -> bool:
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey:
        body = narrow_optional(body, KettleSpec)
        return LiveKey("Kettle", (body or narrow(owned, KettleRecord)).serial)

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts:
        body = narrow(body, KettleSpec)
        need = [hash_fact("heat", str(body.heat))]
        record = narrow_record(owned, KettleRecord)
        made = record.made if record is not None else None
        return DeclaredFacts([*need, hash_fact("made", made)] if made else need)


class JarsSpec(BaseModel):
    """``spec`` of Jars: ``shelf/spice``."""

    jars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JarsRecord(OwnedRecord):
    """The record of owned jars."""

    jars: tuple[str, ...] = ()


class JarsKind:
    """A set in which each jar is one live object."""

    name = "Jars"
    spec: type[BaseModel] = JarsSpec
    record: type[OwnedRecord] = JarsRecord

    def parse(self, name: str, spec: BaseModel) -> tuple[JarsSpec, tuple[SpecProblem, ...]]:
        return narrow(spec, JarsSpec), ()

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        body = narrow_optional(body, JarsSpec)
        return (KitchenSelection(frozenset({*(body.jars if body else ()), *_list_jars(owned)})),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        there = live.get(KitchenState).jars
        wanted = frozenset(desired.get_body(JarsSpec).jars) if desired is not None else frozenset[str]()
        had = frozenset(_list_jars(owned))
        missing, spare = sorted(wanted - there), sorted((had - wanted) & there)
        if desired is None or not (missing or spare):
            return Difference(None, JarsRecord(tuple(sorted(wanted))))
        fields = [FieldChange(f"jars.{jar}", FieldOp.APPEND, None, jar) for jar in missing]
        fields += [FieldChange(f"jars.{jar}", FieldOp.SUBTRACT, jar, None) for jar in spare]
        drifted = tuple(f"jars.{jar}" for jar in missing if jar in had)
        change = Change(resource, Action.UPDATE, Reason.CHANGED, Risk.SAFE, tuple(fields))
        return Difference(change, JarsRecord(tuple(sorted(wanted))), drifted=drifted)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        return ()

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        return after

    def to_json(self, name: str, body: object) -> Json:
        return narrow(body, JarsSpec).model_dump(mode="json")

    def from_json(self, data: Json) -> JarsSpec:
        return JarsSpec(**data)

    def is_self_contained(self, name: str, body: object) -> bool:
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        body = narrow_optional(body, JarsSpec)
        jars = [*(body.jars if body else ()), *_list_jars(owned)]
        return LiveKey("Jars", jars[0]) if jars else None

    def list_elements(self, name: str, body: object | None, owned: OwnedRecord | None) -> Iterator[Element]:
        body = narrow_optional(body, JarsSpec)
        declared, had = body.jars if body is not None else (), _list_jars(owned)
        for jar in sorted({*declared, *had}):
            part = None if body is None else JarsSpec(jars=(jar,) if jar in declared else ())
            yield Element(LiveKey("Jars", jar), part, JarsRecord((jar,)) if jar in had else None)


def _list_jars(owned: OwnedRecord | None) -> tuple[str, ...]:
    record = narrow_record(owned, JarsRecord)
    return record.jars if record is not None else ()


def read_kitchen(connections: Connections, selection: KitchenSelection) -> KitchenState:
    """The whole provider."""
    return connections.get(KitchenConnection).state


PROVIDER = Provider(
    "kitchen",
    kinds=(KettleKind(), JarsKind()),
    operation_types=(),
    collectors=(Collector(KitchenSelection, read_kitchen, codec=KitchenCodec()),),
)
