"""Edges that follow from what operations touch, and contradictions between them."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry, Key, Prefix
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.patterns import Pattern
from kdeclare.core.provider import registry
from kdeclare.core.provider.registry import OPERATION_TYPES, UnknownOperationType
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.operation_graph import OperationCycleError, link_operations, order_operations

LAMP, ROOM = "house.lamp", "house.room"


@dataclass(frozen=True)
class Touches(Arguments):
    """The footprint itself."""

    touches: tuple[FootprintEntry, ...]


class House(UnknownOperationType):
    """Operations touch what their arguments state, and have no claims."""

    def __init__(self, name: str, *, creates: bool = False, deletes: bool = False) -> None:
        super().__init__(name)
        self.creates, self.deletes = creates, deletes

    def compute_footprint(self, op: Operation) -> Footprint:
        return get_arguments(op, Touches).touches

    def claims(self, op: Operation) -> Mapping[str, str]:
        return {}


@pytest.fixture(autouse=True)
def house(monkeypatch: pytest.MonkeyPatch) -> None:
    own = (House("add", creates=True), House("set"), House("remove", deletes=True))
    known: Mapping[str, OperationType] = {**OPERATION_TYPES, **{t.name: t for t in own}}
    monkeypatch.setattr(registry, "OPERATION_TYPES", known)


def make_op(verb: str, name: str, *touches: FootprintEntry) -> Operation:
    return Operation(f"{verb}:{name}", verb, ResourceId("Lamp", name), Touches(touches), {})


def add(name: str, *touches: FootprintEntry, sort: str = ROOM) -> Operation:
    return make_op("add", name, FootprintEntry(sort, name, Access.CREATE), *touches)


def remove(name: str, *touches: FootprintEntry, sort: str = ROOM) -> Operation:
    return make_op("remove", name, FootprintEntry(sort, name, Access.DELETE), *touches)


def touch(key: Key, access: Access, sort: str = ROOM) -> FootprintEntry:
    return FootprintEntry(sort, key, access)


@pytest.mark.parametrize("key", ["hall", Prefix("ha"), Prefix(""), Pattern("h.*l")])
@pytest.mark.parametrize("access", [Access.REQUIRES, Access.UPDATE])
def test_link_creates_used_objects_first(key: Key, access: Access) -> None:
    _, lamp = link_operations([add("hall"), make_op("set", "lamp", touch(key, access))]).operations
    assert lamp.needs == {"add:hall": "the object that it uses is created first"}
    assert lamp.follows == {}


def test_link_after_access_orders_without_dependency() -> None:
    _, lamp = link_operations([add("hall"), make_op("set", "lamp", touch("hall", Access.AFTER))]).operations
    assert (lamp.needs, lamp.follows) == ({}, {"add:hall": "the object that it uses is created first"})


@pytest.mark.parametrize(
    "other",
    [
        touch("hall", Access.MENTIONS),
        touch("hal", Access.REQUIRES),
        touch("hall", Access.REQUIRES, LAMP),
        touch(Prefix("hallway"), Access.REQUIRES),
        touch(Pattern("hal"), Access.REQUIRES),
    ],
)
def test_link_mentions_and_other_objects_add_no_edges(
    other: FootprintEntry,
) -> None:
    operations = (add("hall"), make_op("set", "lamp", other))
    assert link_operations(operations).operations == operations


def test_link_use_of_deleted_object_is_contradiction() -> None:
    linked = link_operations([remove("hall"), make_op("set", "lamp", touch(Prefix("h"), Access.REQUIRES))])
    (problem,) = linked.diagnostics
    assert (problem.code, problem.resource) == ("contradiction", "Lamp/lamp")
    assert "Lamp/lamp uses hall, which the same plan deletes" in problem.detail


def test_link_order_and_mentions_allow_deletion() -> None:
    users = [make_op("set", a.value, touch("hall", a)) for a in (Access.AFTER, Access.MENTIONS)]
    linked = link_operations([remove("hall"), *users])
    assert not linked.diagnostics
    assert linked.operations[0].needs == {"set:after": "operations on objects that refer to it run first"}


@pytest.mark.parametrize("access", [Access.REQUIRES, Access.AFTER])
def test_link_deletes_users_before_used_objects(access: Access) -> None:
    linked = link_operations([remove("hall"), remove("lamp", touch("hall", access), sort=LAMP)])
    assert not linked.diagnostics
    hall, lamp = linked.operations
    assert hall.needs == {"remove:lamp": "operations on objects that refer to it run first"}
    assert order_operations(linked.operations) == (lamp, hall)


def test_operation_cycle_error_names_path() -> None:
    linked = link_operations(
        [add("a", touch("b", Access.REQUIRES)), add("b", touch("a", Access.REQUIRES)), add("c")]
    )
    with pytest.raises(OperationCycleError) as caught:
        order_operations(linked.operations)
    assert sorted(caught.value.path) == ["add:a", "add:b"]
    assert str(caught.value) in ("add:a → add:b → add:a", "add:b → add:a → add:b")


names = st.text("ab", max_size=3)
keys = names | names.map(Prefix) | names.map(lambda name: Pattern(f"{name}.?"))


@given(st.sets(names), st.lists(st.tuples(keys, st.sampled_from([Access.REQUIRES, Access.AFTER]))))
def test_link_finds_every_matching_object(made: set[str], used: list[tuple[Key, Access]]) -> None:
    operations = [add(name) for name in sorted(made)]
    users = [make_op("set", f"user-{n}", touch(key, access)) for n, (key, access) in enumerate(used)]
    linked = link_operations([*operations, *users]).operations[len(operations) :]
    for (key, access), user in zip(used, linked, strict=True):
        wanted = {f"add:{name}" for name in made if matches(key, name)}
        found = user.needs if access is Access.REQUIRES else user.follows
        assert found.keys() == wanted


def matches(key: Key, name: str) -> bool:
    """In the simplest way."""
    if isinstance(key, Prefix):
        return name.startswith(key.text)
    return name == key if isinstance(key, str) else key.matches(name)
