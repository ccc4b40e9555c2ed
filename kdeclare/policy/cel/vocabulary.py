"""What rules about a kind can speak of: names, types, and how each is read of a request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import get_args, get_origin

from kdeclare.core.resources.policy_subjects import (
    PolicyRequest,
    PolicyWords,
    find_policy_words,
    is_text_map,
    read_field,
)

NO_STATE = object()
"""Stands for a field of a state that is null."""
_THERE = "there"
"""Stands for a state that is not null; rules can only compare it with null."""

Reader = Callable[[PolicyRequest], object]
Converter = Callable[[object], object]
_GENERAL: Mapping[str, type] = {
    "action": str,
    "changed": list[str],
    "labels": dict[str, str],
    "resource.kind": str,
    "resource.labels": dict[str, str],
    "resource.name": str,
}
"""What is never null, whatever the kind."""
_DOTTED = "resource"
_TEXTS = dict[str, str]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The variables of rules about one kind. A field of a state is a variable with a dot in its name.

    sides: the names of the states, each with whether it is the one before. types: of all variables that are
    never null by themselves, and nullable those of them that can be unset. converters: of the variables whose
    values CEL does not take as they are.
    """

    kind: str
    words: PolicyWords
    sides: Mapping[str, bool] = field(init=False)
    types: Mapping[str, type] = field(init=False)
    nullable: frozenset[str] = field(init=False)
    readers: Mapping[str, Reader] = field(init=False)
    converters: Mapping[str, Converter] = field(init=False)

    def __post_init__(self) -> None:
        words = self.words
        sides = {words.before: True, words.after: False, "before": True, "after": False}
        types = dict(_GENERAL) | ({words.subject: str} if words.subject else {})
        readers: dict[str, Reader] = {
            "action": lambda request: str(request.action),
            "changed": lambda request: sorted(request.changed),
            "labels": lambda request: request.labels,
            "principal": lambda request: request.principal,
            "resource.kind": lambda request: self.kind,
            "resource.labels": lambda request: request.labels,
            "resource.name": lambda request: str(request.name),
        }
        if words.subject:
            readers[words.subject] = readers["resource.name"]
        for side, before in sides.items():
            readers[side] = _read_side(before)
            for name, known in words.fields.items():
                types[f"{side}.{name}"] = known.value_type
                readers[f"{side}.{name}"] = _read_field_of(before, read_field(name, known))
        unset = {f"{side}.{name}" for side in sides for name, known in words.fields.items() if known.nullable}
        object.__setattr__(self, "nullable", frozenset(unset))
        object.__setattr__(self, "sides", sides)
        object.__setattr__(self, "types", types)
        object.__setattr__(self, "readers", readers)
        # what is not a field is text already, but for labels
        own = {name: known for name, known in types.items() if "." in name or known == _TEXTS}
        found = ((name, _find_converter(known)) for name, known in own.items())
        object.__setattr__(self, "converters", {name: convert for name, convert in found if convert})

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the states."""
        return tuple(sorted(self.words.fields))

    @property
    def names(self) -> tuple[str, ...]:
        """What an expression can begin with, as people are told of it."""
        own = {self.words.before, self.words.after, self.words.subject or _DOTTED}
        return tuple(sorted({"action", "changed", "labels", "principal", *own}))

    @property
    def listed(self) -> tuple[str, ...]:
        """All variables, as people are told of them."""
        sides = (self.words.before, self.words.after)
        return (*self.names, *(f"{side}.{name}" for side in sides for name in self.fields))

    @property
    def text_maps(self) -> tuple[str, ...]:
        """The fields that are mappings of names, of all sides."""
        maps = [name for name, known in self.words.fields.items() if is_text_map(known)]
        return tuple(f"{side}.{name}" for side in self.sides for name in maps)

    @property
    def example_map(self) -> str:
        """A mapping in which a key can be missing, for hints."""
        maps = [name for name in self.fields if is_text_map(self.words.fields[name])]
        return f"{self.words.after}.{maps[0]}" if maps else "labels"

    def is_before(self, side: str) -> bool:
        """Whether a name of a state is that of the state before."""
        return self.sides[side]


@cache
def _vocabulary(kind: str, words: PolicyWords) -> Vocabulary:
    return Vocabulary(kind, words)


def vocabulary_of(kind: str) -> Vocabulary:
    """Return what rules about a kind can speak of. Raises LookupError where policies cannot judge it."""
    words = find_policy_words(kind)
    if words is None:
        raise LookupError(f"policies cannot judge resources of kind {kind}")
    return _vocabulary(kind, words)


def _read_side(before: bool) -> Reader:
    def read(request: PolicyRequest) -> object:
        state = request.pre_request_state if before else request.post_request_state
        return None if state is None else _THERE

    return read


def _read_field_of(before: bool, read: Callable[[object], object]) -> Reader:
    def reader(request: PolicyRequest) -> object:
        state = request.pre_request_state if before else request.post_request_state
        return NO_STATE if state is None else read(state)

    return reader


def _find_converter(known: type) -> Converter | None:
    """What makes a value one that CEL takes: a text from a reference is a str of its own sort, for one."""
    if known == _TEXTS:
        return _as_texts
    if known is str:
        return _as_text
    if known is float:
        return _as_float
    arguments = [_find_converter(argument) or _as_it_is for argument in get_args(known)]
    if get_origin(known) is dict:
        return partial(_as_dict, arguments[1])
    return partial(_as_list, arguments[0]) if get_origin(known) is list else None


def _as_texts(value: object) -> object:
    if not isinstance(value, Mapping) or (
        type(value) is dict and all(type(item) is str for item in value.values())
    ):
        return value
    return {key: str(item) for key, item in value.items()}


def _as_text(value: object) -> object:
    return value if type(value) is str else str(value)


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) else value


def _as_dict(convert: Converter, value: object) -> object:
    return {k: convert(item) for k, item in value.items()} if isinstance(value, Mapping) else value


def _as_list(convert: Converter, value: object) -> object:
    return [convert(item) for item in value] if isinstance(value, list | tuple) else value


def _as_it_is(value: object) -> object:
    return value
