"""A foreign provider: kettles, which are known by serial numbers, and jars, declared as sets."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from kdeclare.core.audit_rules import AuditRules, Element
from kdeclare.core.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.collector import Collector, Selections
from kdeclare.core.faults import Fault
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference, Problem
from kdeclare.core.live_codec import DeclaredFacts, LiveFacts, LiveKey, LiveListing, LiveObject, hash_fact
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.provider import Provider


@dataclass(frozen=True)
class Kettle:
    """made: tells a kettle from a later one with the same serial number."""

    heat: int
    made: str


@dataclass(frozen=True)
class KitchenState:
    """kettles: by serial number. jars: ``shelf/spice``. volts: what all kettles share."""

    kettles: Mapping[str, Kettle] = field(default_factory=dict)
    jars: frozenset[str] = frozenset()
    volts: int = 230


@dataclass
class KitchenConnection:
    """A kitchen, or why nothing can be read of it."""

    state: KitchenState
    fault: Fault | None = None


@dataclass(frozen=True)
class KitchenSelection:
    """Kettles and shelves."""

    names: frozenset[str] = frozenset()

    def merge(self, others: Sequence["KitchenSelection"]) -> "KitchenSelection":
        """All of them."""
        return KitchenSelection(self.names.union(*(other.names for other in others)))


class KitchenCodec:
    """Kettles with facts, jars in groups."""

    name = "kitchen"
    sorts = frozenset({"Kettle", "Jars"})
    identifies_system = False
    groups = True
    context: tuple[object, ...] = ()

    def list_objects(self, connections: Connections) -> LiveListing:
        """All kettles and jars."""
        kitchen = connections.get(KitchenConnection)
        if kitchen.fault is not None:
            raise kitchen.fault
        state = kitchen.state
        return LiveListing({"volts": state.volts}, self._objects(state))

    def _objects(self, state: KitchenState) -> Iterator[LiveObject]:
        for serial, kettle in state.kettles.items():
            facts = LiveFacts([hash_fact("heat", str(kettle.heat)), hash_fact("made", kettle.made)])
            body = {"heat": kettle.heat, "made": kettle.made}
            yield LiveObject(LiveKey("Kettle", serial), body, facts=facts)
        for jar in sorted(state.jars):
            yield LiveObject(LiveKey("Jars", jar), {}, group=jar.partition("/")[0])

    def decode(self, system: str, objects: Iterable[tuple[LiveKey, str]]) -> KitchenState:
        """A kitchen with just these."""
        kettles: dict[str, Kettle] = {}
        jars: set[str] = set()
        for key, text in objects:
            if key.sort == "Jars":
                jars.add(key.key)
            else:
                kettles[key.key] = Kettle(**json.loads(text))
        return KitchenState(kettles, frozenset(jars), json.loads(system)["volts"])

    def contains(self, key: LiveKey, live: LiveState) -> bool:
        """Whether the kettle or the jar is there."""
        state = live.get(KitchenState)
        return key.key in (state.jars if key.sort == "Jars" else state.kettles)

    def find_identity(self, key: LiveKey, live: LiveState) -> str | None:
        """When a kettle was made."""
        kettle = live.get(KitchenState).kettles.get(key.key)
        return kettle.made if kettle is not None else None

    def is_reported(self, key: LiveKey, body: str) -> bool:
        """All but the kettle of the house."""
        return key.key != "house"


class KettleSpec(BaseModel):
    """``spec`` of a Kettle."""

    serial: str
    heat: int


class KettleKind:
    """Its name is free, its key is the serial number."""

    name = "Kettle"
    spec: type[BaseModel] = KettleSpec
    audit_rules: AuditRules = AuditRules(identity_field="made")

    def parse(self, name: str, spec: KettleSpec) -> tuple[KettleSpec, tuple[Problem, ...]]:
        return spec, ()

    def select(self, name: str, body: KettleSpec | None, owned: Json) -> Selections:
        return (KitchenSelection(frozenset({self.find_live_key(name, body, owned).key})),)

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        state = live.get(KitchenState)
        if desired is None:
            return Difference(None)
        kettle = state.kettles.get(desired.body.serial)
        record = {"serial": desired.body.serial, "heat": desired.body.heat}
        if kettle is None:
            fields = (FieldChange("heat", FieldOp.SET, None, desired.body.heat),)
            return Difference(Change(resource, Action.CREATE, Reason.DECLARED, Risk.SAFE, fields), record)
        if kettle.heat == desired.body.heat:
            return Difference(None, record)
        drifted = ("heat",) if owned and kettle.heat != owned["heat"] else ()
        fields = (FieldChange("heat", FieldOp.SET, kettle.heat, desired.body.heat),)
        change = Change(resource, Action.UPDATE, Reason.CHANGED, Risk.SAFE, fields)
        return Difference(change, record, drifted=drifted)

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        return ()

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        return after

    def to_json(self, name: str, body: KettleSpec) -> Json:
        return body.model_dump()

    def from_json(self, data: Json) -> KettleSpec:
        return KettleSpec(**data)

    def is_self_contained(self, name: str, body: KettleSpec) -> bool:
        return True

    def find_live_key(self, name: str, body: KettleSpec | None, owned: Json) -> LiveKey:
        return LiveKey("Kettle", body.serial if body is not None else owned["serial"])

    def list_facts(self, body: KettleSpec, owned: Json) -> DeclaredFacts:
        need = [hash_fact("heat", str(body.heat))]
        made = (owned or {}).get("made")
        return DeclaredFacts([*need, hash_fact("made", made)] if made else need)


class JarsSpec(BaseModel):
    """``spec`` of Jars: ``shelf/spice``."""

    jars: tuple[str, ...]


class JarsKind:
    """A set: each jar is one live object."""

    name = "Jars"
    spec: type[BaseModel] = JarsSpec

    def parse(self, name: str, spec: JarsSpec) -> tuple[JarsSpec, tuple[Problem, ...]]:
        return spec, ()

    def select(self, name: str, body: JarsSpec | None, owned: Json) -> Selections:
        return (KitchenSelection(frozenset({*(body.jars if body else ()), *(owned or {}).get("jars", ())})),)

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        there = live.get(KitchenState).jars
        wanted = frozenset(desired.body.jars) if desired is not None else frozenset[str]()
        had = frozenset((owned or {}).get("jars", ()))
        missing, spare = sorted(wanted - there), sorted((had - wanted) & there)
        if desired is None or not (missing or spare):
            return Difference(None, {"jars": sorted(wanted)})
        fields = [FieldChange(f"jars.{jar}", FieldOp.APPEND, None, jar) for jar in missing]
        fields += [FieldChange(f"jars.{jar}", FieldOp.SUBTRACT, jar, None) for jar in spare]
        drifted = tuple(f"jars.{jar}" for jar in missing if jar in had)
        change = Change(resource, Action.UPDATE, Reason.CHANGED, Risk.SAFE, tuple(fields))
        return Difference(change, {"jars": sorted(wanted)}, drifted=drifted)

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        return ()

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        return after

    def to_json(self, name: str, body: JarsSpec) -> Json:
        return body.model_dump(mode="json")

    def from_json(self, data: Json) -> JarsSpec:
        return JarsSpec(**data)

    def is_self_contained(self, name: str, body: JarsSpec) -> bool:
        return True

    def find_live_key(self, name: str, body: JarsSpec | None, owned: Json) -> LiveKey | None:
        jars = [*(body.jars if body else ()), *(owned or {}).get("jars", ())]
        return LiveKey("Jars", jars[0]) if jars else None

    def list_elements(self, name: str, body: JarsSpec | None, owned: Json) -> Iterator[Element]:
        declared, had = body.jars if body is not None else (), (owned or {}).get("jars", ())
        for jar in sorted({*declared, *had}):
            part = None if body is None else JarsSpec(jars=(jar,) if jar in declared else ())
            yield Element(LiveKey("Jars", jar), part, {"jars": [jar]} if jar in had else None)


def read_kitchen(connections: Connections, selection: KitchenSelection) -> KitchenState:
    """All of it."""
    return connections.get(KitchenConnection).state


PROVIDER = Provider(
    "kitchen",
    kinds=(KettleKind(), JarsKind()),
    operation_types=(),
    collectors=(Collector(KitchenSelection, read_kitchen, codec=KitchenCodec()),),
)
