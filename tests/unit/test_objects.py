"""Kinds of objects: the diff, the operations and their inverses, without any system."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest
from pydantic import ValidationError

from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Outcome
from kdeclare.core.operations.footprint import Access, FootprintEntry
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.provider.provider import Provider
from kdeclare.core.resources.changes import Action, Reason
from kdeclare.core.resources.fleet_capabilities import FleetComparable
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.manifest_capabilities import (
    Exportable,
    ExportRequest,
)
from kdeclare.core.resources.object_system import ObjectSystem, SystemObjectKind, SystemObjects
from kdeclare.core.resources.objects import (
    Fields,
    ObjectArgs,
    ObjectBody,
    ObjectKind,
    ObjectRecord,
    ObjectSpec,
    ObjectWrite,
)
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.plan_capabilities import PREVENT_DESTROY
from kdeclare.core.resources.record_binding import bind_record, dump_record
from kdeclare.core.secrets.secret_hashes import SecretHasher
from kdeclare.core.secrets.secret_refs import (
    SENSITIVE_MASK,
    Referenced,
    Secret,
    SecretRef,
    SecretText,
    find_records,
    hide,
)
from tests.jsontypes import Json
from tests.loaded_providers import replace_load_providers


class DoorSpec(ObjectSpec):
    color: str | None = None
    rooms: list[str] | None = None
    key: SecretText | None = None


@dataclass(frozen=True)
class House:
    doors: Mapping[str, Fields]


class DoorKind(ObjectKind):
    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        return ()

    def read(self, live: LiveState) -> Mapping[str, Fields]:
        return live.get(House).doors

    def write(
        self, connections: Connections, writes: Sequence[ObjectWrite], *, validate_only: bool
    ) -> Sequence[Outcome]:
        return [None for _ in writes]


DOOR = DoorKind("FrontDoor", DoorSpec, references={"rooms": "Room"})
ID = ResourceId("FrontDoor", "main")
HASHER = SecretHasher("test")


def make_declared(**spec: Json) -> DesiredResource:
    body, problems = DOOR.parse("main", DoorSpec.model_validate(spec))
    assert not problems
    fields = {
        name: replace(v, digest=HASHER.make_hash(str(ID), name, v.value)) if isinstance(v, Secret) else v
        for name, v in body.fields.items()
    }
    return DesiredResource(ID, replace(body, fields=fields))


def compare(
    desired: DesiredResource | None, doors: Mapping[str, Fields], owned: OwnedRecord | None = None
) -> Difference:
    return DOOR.diff(ID, desired, LiveState(House(doors)), owned, PlanContext())


def plan(
    desired: DesiredResource | None, doors: Mapping[str, Fields], owned: OwnedRecord | None = None
) -> Operation:
    change = compare(desired, doors, owned).change
    assert change is not None
    (op,) = DOOR.plan_operations(change, desired, LiveState(House(doors)), owned, PlanContext())
    return op


def test_body_contains_only_stated_fields() -> None:
    assert make_declared(color="red").get_body(ObjectBody).fields == {"color": "red"}
    with pytest.raises(ValidationError):
        DoorSpec.model_validate({"colour": "red"})


def test_diff_creates_missing_object() -> None:
    difference = compare(make_declared(color="red"), {})
    assert difference.change is not None
    assert (difference.change.action, difference.change.reason) == (Action.CREATE, Reason.DECLARED)
    assert difference.owned == ObjectRecord({"color": "red"})


def test_diff_ignores_fields_neither_stated_nor_owned() -> None:
    assert compare(make_declared(color="red"), {"main": {"color": "red", "rooms": ["hall"]}}).change is None


def test_diff_resets_owned_field_no_longer_stated() -> None:
    owned = ObjectRecord({"color": "red", "rooms": ["hall"]})
    op = plan(make_declared(color="red"), {"main": {"color": "red", "rooms": ["hall"]}}, owned)
    assert (op.verb, op.args) == ("front-door.update", ObjectArgs({"rooms": None}))


def test_diff_creates_object_with_ignored_fields() -> None:
    difference = compare(make_declared(color="red", lifecycle={"ignoreChanges": ["color"]}), {})
    assert difference.change is not None
    assert [field.path for field in difference.change.fields] == ["color"]
    assert difference.owned == ObjectRecord({"color": "red"})


def test_diff_leaves_ignored_field_and_its_ownership_unchanged() -> None:
    owned = ObjectRecord({"color": "red", "rooms": ["hall"]})
    live = {"main": {"color": "green", "rooms": ["attic"]}}
    ignoring = make_declared(color="blue", rooms=["hall"], lifecycle={"ignoreChanges": ["color"]})
    difference = compare(ignoring, live, owned)
    assert difference.change is not None
    assert [field.path for field in difference.change.fields] == ["rooms"]
    assert (difference.owned, difference.drifted) == (owned, ("rooms",))
    assert plan(ignoring, live, owned).args == ObjectArgs({"rooms": ["hall"]})
    undeclared = make_declared(rooms=["attic"], lifecycle={"ignoreChanges": ["color"]})
    assert compare(undeclared, live, owned).change is None


def test_diff_never_owns_ignored_field_of_other_client() -> None:
    difference = compare(
        make_declared(color="red", lifecycle={"ignoreChanges": ["color"]}), {"main": {"color": "green"}}
    )
    assert (difference.change, difference.owned) == (None, ObjectRecord({}))


def test_ignored_fields_survive_conversion_to_json() -> None:
    desired = make_declared(color="red", lifecycle={"ignoreChanges": ["color"]})
    assert DOOR.from_json(DOOR.to_json("main", desired.body)) == desired.body


def test_unknown_ignored_field_is_an_error() -> None:
    spec = DoorSpec.model_validate({"lifecycle": {"ignoreChanges": ["colour"]}})
    _, (problem,) = DOOR.parse("main", spec)
    assert (problem.path, problem.diagnostic.hint) == (
        ("lifecycle", "ignoreChanges", 0),
        "Did you mean 'color'?",
    )


def test_diff_adopts_different_object_only_if_allowed() -> None:
    there = {"main": {"color": "red"}}
    denied = compare(make_declared(color="blue"), there)
    assert denied.change is not None
    assert (denied.change.reason, denied.change.blocked) == (Reason.ADOPT, "adoption")
    allowed = compare(make_declared(color="blue", lifecycle={"adopt": True}), there)
    assert allowed.change is not None
    assert allowed.change.blocked is None


def test_diff_compares_secret_by_value_or_hash() -> None:
    reference = Referenced("s3cret-value", "${env.KEY}")
    desired = make_declared(key=reference)
    there: Mapping[str, Fields] = {"main": {"key": hide("s3cret-value")}}
    assert compare(desired, there).change is None
    read_back = replace(desired, body=DOOR.from_json(DOOR.to_json("main", desired.body)))
    assert compare(read_back, there).change is None
    difference = compare(desired, {"main": {"key": hide("another-value")}})
    assert difference.change is not None
    assert [(f.before, f.after) for f in difference.change.fields] == [(SENSITIVE_MASK, SENSITIVE_MASK)]


def test_update_is_undone_field_by_field() -> None:
    owned = ObjectRecord({"color": "red", "rooms": ["hall"]})
    op = plan(
        make_declared(color="blue", rooms=["attic"]), {"main": {"color": "red", "rooms": ["hall"]}}, owned
    )
    now = {**DOOR.update.expected_state(op), "rooms": ["cellar"]}
    undo = DOOR.update.invert(op, now, allow_data_loss=False)
    assert (undo.verb, undo.args, undo.conflicts) == (
        "front-door.update",
        ObjectArgs({"color": "red"}),
        ("rooms",),
    )


def test_undo_keeps_created_object_changed_by_others() -> None:
    op = plan(make_declared(color="red"), {})
    now = {**DOOR.create.expected_state(op), "color": "blue"}
    undo = DOOR.create.invert(op, now, allow_data_loss=False)
    assert (undo.args, undo.conflicts) == (None, ("color",))


def test_undo_loses_previous_secret_without_reference() -> None:
    op = plan(
        make_declared(key=Referenced("s3cret-value", "${env.KEY}")), {"main": {"key": hide("unknown-value")}}
    )
    undo = DOOR.update.invert(op, DOOR.update.expected_state(op), allow_data_loss=False)
    assert (undo.args, undo.lost) == (None, ("key",))
    assert op.irreversible == "Cannot be restored: key."


def test_undo_recreates_deleted_object() -> None:
    owned = ObjectRecord({"color": "red"})
    op = plan(None, {"main": {"color": "red", "opened": 7}}, owned)
    assert op.args == ObjectArgs({"color": None}), "what no manifest states is the system's own"
    assert op.inverse == Inverse("front-door.create", ObjectArgs({"color": "red"}))


def test_diff_keeps_protected_object() -> None:
    owned = ObjectRecord({"color": "red"}, True)
    assert [d.code for d in compare(None, {"main": {"color": "red"}}, owned).diagnostics] == [PREVENT_DESTROY]


def test_footprint_contains_old_and_new_references() -> None:
    owned = ObjectRecord({"rooms": ["hall"]})
    op = plan(make_declared(rooms=["attic"]), {"main": {"rooms": ["hall"]}}, owned)
    assert set(DOOR.update.compute_footprint(op)) == {
        FootprintEntry(ID.kind, ID.name, Access.UPDATE),
        FootprintEntry("Room", "attic", Access.REQUIRES),
        FootprintEntry("Room", "hall", Access.AFTER),
    }


def test_partial_rollback_restores_ownership_of_undone_fields() -> None:
    now = ObjectRecord({"color": "blue", "rooms": ["attic"]})
    before = ObjectRecord({"color": "red"})
    undone = Operation("undo", "front-door.update", ID, ObjectArgs({"rooms": None}), {})
    record = DOOR.merge_ownership(now, before, (undone,), False)
    assert record == ObjectRecord({"color": "blue"})


def test_exported_object_has_references_for_secrets() -> None:
    doors: Mapping[str, Fields] = {
        "main": {"color": "yes", "rooms": ["a${b}"], "key": hide("unknown-value"), "opened": 7}
    }
    assert isinstance(DOOR, Exportable)
    assert isinstance(DOOR, FleetComparable)
    live = LiveState(House(doors))
    request = ExportRequest(lambda selections: live, bool, lambda id_: id_.name == "main")
    assert DOOR.export(Connections(), request).manifests["main"].splitlines()[4:] == [
        "spec:",
        '  color: "yes"',
        '  rooms: ["a$${b}"]',
        "  key: ${env.MAIN_KEY}",
    ]


def test_change_fields_do_not_depend_on_order_of_spec() -> None:
    """A body read back from JSON has its fields in alphabetical order, unlike the spec."""
    change = compare(make_declared(rooms=["hall"], color="red"), {}).change
    assert change is not None
    assert [field.path for field in change.fields] == ["color", "rooms"]
    item = make_declared(color="red", rooms=["hall"])
    assert isinstance(item.body, ObjectBody)
    turned = replace(item, body=replace(item.body, fields=dict(reversed(list(item.body.fields.items())))))
    assert compare(turned, {}).change == change


def test_record_round_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    providers = (Provider("doors", (DOOR,), ()),)
    replace_load_providers(monkeypatch, lambda: providers)
    secret: JsonObject = {"secret": "a-hash", "reference": "${env.KEY}"}
    json: JsonObject = {"fields": {"key": secret, "rooms": ["hall"], "color": None}, "preventDestroy": True}
    record = bind_record(DOOR.name, json)
    assert record == ObjectRecord(
        {"key": SecretRef("a-hash", "${env.KEY}"), "rooms": ["hall"], "color": None}, True
    )
    assert dump_record(record) == json
    assert [at for at, _ in find_records(record)] == [("fields", "key")]


class SlowConnection:
    """A connection that detects concurrent use by two threads."""

    def __init__(self) -> None:
        self.inside, self.most = 0, 0

    def read(self) -> SystemObjects:
        self._stay()
        return SystemObjects({})

    def write(self, writes: Sequence[ObjectWrite], *, validate_only: bool) -> Sequence[Outcome]:
        self._stay()
        return [None for _ in writes]

    def _stay(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.01)
        self.inside -= 1


@pytest.mark.parametrize(("is_thread_safe", "takes_turns"), [(False, True), (True, False)])
def test_reads_and_writes_are_serialized_unless_thread_safe(is_thread_safe: bool, takes_turns: bool) -> None:
    """Two concurrent read-modify-write cycles would lose one of the changes."""
    slow, system = (
        SlowConnection(),
        ObjectSystem("slow", SlowConnection, SystemObjects, is_thread_safe=is_thread_safe),
    )
    door = SystemObjectKind(system, "FrontDoor", DoorSpec)
    connections = Connections(slow)
    work: list[Callable[[], object]] = [lambda: door.write(connections, [], validate_only=False)] * 8
    work += [lambda: system.read(connections)] * 8
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(act) for act in work]:
            future.result()
    assert (slow.most == 1) is takes_turns


def test_objects_of_kind_are_grouped_once() -> None:
    """Not once per resource: for a plan of 20,000 objects, that would be 400 million iterations."""
    objects = SystemObjects(
        {ResourceId("FrontDoor", "main"): {"color": "red"}, ResourceId("Room", "hall"): {}}
    )
    door = SystemObjectKind(ObjectSystem("slow", SlowConnection, SystemObjects), "FrontDoor", DoorSpec)
    live = LiveState(objects)
    assert door.read(live) == {"main": {"color": "red"}}
    assert door.read(live) is door.read(live)
    assert door.read(LiveState()) == {}
