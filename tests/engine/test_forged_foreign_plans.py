"""A plan file with a kind that kdeclare does not know does what it shows, or is refused."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.plans.plan import Plan
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.test_forged_plans import Document, accept_plan, get_refusal, load_document, sign
from tests.engine.world import World, desired
from tests.foreign import ChangeQueue, Shed, shed

__all__ = ["shed"]

Forge = Callable[[Document], None]


@pytest.fixture
def world(shed: Shed) -> World:
    return World(MemoryCluster())


def plan_creation(world: World) -> Plan:
    return world.plan(desired("Queue", "orders", size=5, durable=True))


def plan_update(world: World) -> Plan:
    world.apply(desired("Queue", "orders", size=5))
    return world.plan(desired("Queue", "orders", size=9, durable=True))


def plan_deletion(world: World) -> Plan:
    world.apply(desired("Queue", "orders"), desired("Queue", "returns"))
    return world.plan(desired("Queue", "returns"), scope=PlanScope(allow_deletes=True))


def alter_op(**parts: Any) -> Forge:
    """Change the operation, and only the named arguments and expectations of it."""

    def forge(document: Document) -> None:
        (op,) = document["operations"]
        merge(op, parts)

    return forge


def merge(op: Document, parts: Document) -> None:
    """Change the verb of the operation, and replace all of its arguments."""
    for name, value in parts.items():
        merges = name == "expect" or (name == "args" and "verb" not in parts)
        op[name] = op[name] | value if merges else value


def alter_change(**parts: Any) -> Forge:
    def forge(document: Document) -> None:
        document["changes"][0].update(parts)

    return forge


def alter_field(number: int, **parts: Any) -> Forge:
    def forge(document: Document) -> None:
        document["changes"][0]["fields"][number].update(parts)

    return forge


def add_op(**parts: Any) -> Forge:
    """Add one operation after the other; its inverse is not compared."""

    def forge(document: Document) -> None:
        first = document["operations"][0]
        more = copy.deepcopy(first) | {"id": "more", "needs": [first["id"]], "irreversible": "It stays."}
        more.pop("inverse")
        merge(more, parts)
        document["operations"].append(more)

    return forge


def drop_section(name: str) -> Forge:
    def forge(document: Document) -> None:
        document[name] = []

    return forge


def hide_field(document: Document) -> None:
    document["changes"][0]["fields"].pop()


def hide_expectation(document: Document) -> None:
    document["operations"][0]["expect"].pop("durable")


INVERSE = {"verb": "queue.remove", "args": {"queue": "returns", "speed": "fast"}}

FORGERIES: list[tuple[str, Callable[[World], Plan], Forge]] = [
    ("another queue is created", plan_creation, alter_op(args={"queue": "returns"})),
    ("a larger queue is created", plan_creation, alter_op(args={"size": 500})),
    ("a field is hidden", plan_creation, hide_field),
    ("an argument has another type", plan_creation, alter_op(args={"size": "5"})),
    ("an argument is unknown", plan_creation, alter_op(args={"colour": "red"})),
    ("a creation is shown as an update", plan_creation, alter_change(action="update")),
    ("a creation is shown as blocked", plan_creation, alter_change(blocked="policy-violation")),
    ("undoing it removes another queue", plan_creation, alter_op(inverse=INVERSE)),
    ("nothing is created", plan_creation, drop_section("operations")),
    ("nothing is shown", plan_creation, drop_section("changes")),
    ("a topic is created as well", plan_creation,
     add_op(verb="topic.create", resource="Topic/t",
            args={"topic": "t", "partitions": 1, "replication_factor": 1, "assignments": None, "configs": {}},
            expect={"topic": "absent", "partitions": None, "configs": None})),
    ("a topic is created in its name", plan_creation,
     alter_op(verb="topic.create", args={"topic": "orders", "partitions": 1, "replication_factor": 1,
                                         "assignments": None, "configs": {}})),
    ("another queue is changed", plan_update, alter_op(args={"queue": "returns"})),
    ("another size is set", plan_update, alter_op(args={"size": 1})),
    ("another size is shown", plan_update, alter_field(0, after=7)),
    ("another size is shown as the one before", plan_update, alter_field(0, before=7)),
    ("another field is shown", plan_update, alter_field(0, path="colour")),
    ("a change is hidden", plan_update, hide_field),
    ("nothing is shown to change", plan_update, alter_change(fields=[])),
    ("the size takes a detour", plan_update, add_op(args={"size": 9}, expect={"size": 1, "durable": True})),
    ("it does not say what it expects", plan_update, hide_expectation),
    ("another queue is changed as well", plan_update,
     add_op(resource="Queue/returns", args={"queue": "returns"})),
    ("another queue is removed", plan_deletion, alter_op(args={"queue": "returns"})),
    ("a removal is shown as an update", plan_deletion, alter_change(action="update")),
    ("a removal is shown as safe", plan_deletion, alter_change(risk="safe", risks=["safe"])),
    ("undoing a removal makes another queue", plan_deletion,
     alter_op(inverse={"verb": "queue.create", "args": {"queue": "orders", "size": 1, "durable": False}})),
    ("a removal does more", plan_deletion,
     add_op(verb="queue.change", args={"queue": "orders", "size": 1, "durable": False})),
]  # fmt: skip


@pytest.mark.parametrize("make", [plan_creation, plan_update, plan_deletion])
def test_plan_of_foreign_kind_is_accepted(world: World, make: Callable[[World], Plan]) -> None:
    accept_plan(sign(load_document(make(world))))


@pytest.mark.parametrize(("make", "forge"), [f[1:] for f in FORGERIES], ids=[f[0] for f in FORGERIES])
def test_forged_plan_of_foreign_kind_is_refused(
    world: World, make: Callable[[World], Plan], forge: Forge
) -> None:
    document = load_document(make(world))
    accept_plan(sign(document))
    forge(document)
    assert "'x.plan' shows changes that differ from its operations" in get_refusal(document)


def test_plan_with_different_inverse_is_accepted(world: World) -> None:
    document = load_document(plan_creation(world))
    document["operations"][0]["inverse"]["args"]["speed"] = "slow"
    accept_plan(sign(document))


SILENT = ["is_confined", "claims", "fields", "invert", "expected_state"]


@pytest.mark.parametrize("silent", SILENT)
def test_operation_type_without_proof_methods_is_refused(
    world: World, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider may lack the methods that prove its operations. Its plans then cannot be plan files."""
    document = load_document(plan_update(world))
    monkeypatch.setattr(ChangeQueue, silent, getattr(OperationType, silent))
    assert "queue.change" in get_refusal(document)


def test_operation_type_without_fields_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    document = load_document(plan_update(world))
    monkeypatch.setattr(ChangeQueue, "fields", lambda self, op: ())
    document["changes"][0]["fields"] = []
    assert "do not state what they change" in get_refusal(document)


def test_operation_type_that_raises_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: ChangeQueue, op: Operation) -> bool:
        return bool(op.expect["no such element"])

    document = load_document(plan_update(world))
    monkeypatch.setattr(ChangeQueue, "is_confined", fail)
    assert "queue.change" in get_refusal(document)


def test_accepted_plan_is_applied_and_rolled_back(world: World, shed: Shed) -> None:
    text = sign(load_document(plan_creation(world)))
    accept_plan(text)
    assert world.apply(desired("Queue", "orders", size=5, durable=True)).complete
    assert shed.queues == {"orders": {"size": 5, "durable": True}}
    assert json.loads(text)["operations"][0]["args"]["size"] == 5
    assert world.rollback().complete
    assert shed.queues == {}
