import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from kdeclare.core.frozen_dataclass import dataclass

library = dataclasses.dataclass
Decorator = Callable[..., Callable[[type], Any]]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Base:
    name: str
    kind: ClassVar[str] = "base"
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Derived(Base, Generic[_T]):
    count: int = 1
    notes: list[str] = field(default_factory=list)
    secret: str = field(default="hidden", repr=False, compare=False)

    def doubled(self) -> int:
        return 2 * self.count


def write_plain() -> type:
    class Plain:
        a: int
        b: "str" = "x"
        c: list[int] = field(default_factory=list)
        d: str = field(default="y", repr=False)
        e: int = field(default=0, compare=False)
        f: ClassVar[int] = 7

    return Plain


def write_methods() -> type:
    class Methods:
        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Methods) and self.a % 2 == other.a % 2

        def __repr__(self) -> str:
            return "mine"

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")

    return Methods


def write_rare() -> type:
    class Rare:
        a: int
        b: int = field(default=2, init=False)
        c: int = field(default=3, hash=False)

    return Rare


def write_derived() -> type:
    class Derived:
        a: int = field(init=False, default=7)
        b: int
        c: list[int] = field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", self.b + 1)

    return Derived


def write_keywords() -> type:
    class Keywords:
        a: int
        b: int = field(default=3, kw_only=True)
        c: list[int] = field(default_factory=list)
        d: int = field(kw_only=True, default=4)

    return Keywords


def write_empty() -> type:
    class Empty:
        pass

    return Empty


def write_init_variable() -> type:
    class InitVariable:
        a: InitVar[int]
        b: int = field(default=0, init=False)

        def __post_init__(self, a: int) -> None:
            object.__setattr__(self, "b", a + 1)

    return InitVariable


def write_init_variable_as_text() -> type:
    class InitVariableAsText:
        a: "InitVar[int]"
        b: int = 2

        def __post_init__(self, a: int) -> None:
            object.__setattr__(self, "b", a + 1)

    return InitVariableAsText


def write_hash() -> type:
    class Hash:
        a: list[int]

        def __hash__(self) -> int:
            return 3

    return Hash


WRITTEN: dict[Callable[[], type], list[tuple[object, ...]]] = {
    write_plain: [(1,), (2, "z"), (2, "z", [1], "q", 5), (2, "z", [1], "r", 6), (2, "z", [1], "r", 7)],
    write_methods: [(1,), (2,), (3,)],
    write_rare: [(1,), (2,)],
    write_derived: [(1,), (2,)],
    write_keywords: [(1,), (1, [2])],
    write_empty: [()],
    write_init_variable: [(1,), (2,)],
    write_init_variable_as_text: [(1,), (2, 3)],
    write_hash: [([1],), ([2],)],
}


def attempt(work: Callable[[], object]) -> object:
    try:
        return work()
    except Exception as problem:  # noqa: BLE001  what both answer is compared
        return type(problem), str(problem)


def make_both(body: Callable[[], type]) -> tuple[Any, Any]:
    return dataclass(frozen=True, slots=True)(body()), library(frozen=True, slots=True)(body())


@pytest.mark.parametrize("body", WRITTEN)
def test_classes_equal_those_of_standard_library(body: Callable[[], type]) -> None:
    ours, theirs = make_both(body)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    for one, other in zip(dataclasses.fields(ours), dataclasses.fields(theirs), strict=True):
        assert repr(one) == repr(other)
    for name in ("__slots__", "__match_args__", "__qualname__", "__module__"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert vars(ours).keys() == vars(theirs).keys()
    assert repr(vars(ours)["__dataclass_params__"]) == repr(vars(theirs)["__dataclass_params__"])


@pytest.mark.parametrize("body", WRITTEN)
def test_values_equal_those_of_standard_library(body: Callable[[], type]) -> None:
    ours, theirs = make_both(body)
    mine, others = ([made(*arguments) for arguments in WRITTEN[body]] for made in (ours, theirs))
    assert [repr(value) for value in mine] == [repr(value) for value in others]
    assert [a == b for a in mine for b in mine] == [a == b for a in others for b in others]
    assert mine[0] != others[0]
    assert [attempt(partial(hash, value)) for value in mine] == [
        attempt(partial(hash, value)) for value in others
    ]
    assert [dataclasses.asdict(value) for value in mine] == [dataclasses.asdict(value) for value in others]
    wrong = [(), (-1,), tuple(range(9))]
    ends = [[str(attempt(partial(made, *arguments))) for arguments in wrong] for made in (ours, theirs)]
    assert ends[0] == ends[1]


def test_factory_is_called_for_each_value() -> None:
    one, other = Derived[int]("a"), Derived[int]("a")
    assert one == other
    assert one.notes is not other.notes


@pytest.mark.parametrize("name", ["count", "name", "other"])
def test_attributes_cannot_be_set_or_deleted(name: str) -> None:
    value = Derived[int]("a")
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(value, name, 2)
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(value, name)
    assert not hasattr(value, "__dict__")


def test_fields_of_base_class_come_first() -> None:
    value = Derived[int]("a", ("t",), 3)
    assert repr(value) == "Derived(name='a', tags=('t',), count=3, notes=[])"
    assert value == Derived[int]("a", ("t",), 3, secret="other")
    assert value != Base("a", ("t",))
    assert (Derived.kind, vars(Derived)["__slots__"]) == ("base", ("count", "notes", "secret"))
    assert value.doubled() == 6


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_values_can_be_copied_and_pickled(protocol: int) -> None:
    value = Derived[int]("a", ("t",), 3, ["n"], "s")
    again = pickle.loads(pickle.dumps(value, protocol))
    assert (again, again.secret) == (value, "s")
    assert copy.deepcopy(value) == value
    assert dataclasses.replace(value, count=4) == Derived("a", ("t",), 4, ["n"])


def test_values_can_be_matched_and_hashed() -> None:
    match Base("a", ("t",)):
        case Base(name, tags):
            assert (name, tags) == ("a", ("t",))
    assert len({Base("a"), Base("a"), Base("b")}) == 2


@pytest.mark.parametrize(("first", "second"), [(dataclass, library), (library, dataclass)])
def test_our_and_standard_dataclasses_can_inherit_from_each_other(
    first: Decorator, second: Decorator
) -> None:
    class Lower:
        a: int

    lower = first(frozen=True, slots=True)(Lower)

    class Upper(lower):  # type: ignore[misc,valid-type]
        b: int = 2

    upper = second(frozen=True, slots=True)(Upper)
    assert repr(upper(1)) == f"{upper.__qualname__}(a=1, b=2)"
    assert upper(1) == upper(1, 2) != lower(1)
    with pytest.raises(FrozenInstanceError):
        upper(1).a = 3


def test_plain_subclass_can_have_own_attributes() -> None:
    class Plain(Base):
        pass

    value: Any = Plain("a")
    value.note = "n"
    assert value.note == "n"
    with pytest.raises(FrozenInstanceError):
        value.name = "b"


def test_other_options_use_standard_library() -> None:
    @dataclass(order=True)
    class Ordered:
        a: int

    @dataclass
    class Bare:
        a: int

    assert Ordered(1) < Ordered(2)
    bare = Bare(1)
    bare.a = 2
    assert bare == Bare(2)
