"""The variables that rules can use: names, types, and functions that read their values from a request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import cast, get_args, get_origin

from kdeclare.core.jsontypes import to_float
from kdeclare.core.policies.policy_fields import PolicyWords, is_text_mapping, make_field_reader
from kdeclare.core.policies.policy_request import ImpactRequest, PolicyRequest
from kdeclare.core.policies.policy_subjects import find_policy_words
from kdeclare.core.resources.owned_record import find_owner

NO_STATE = object()
"""The value of every field of a state that is null. For example, ``pre`` is null for a new topic."""
_PRESENT = "there"
"""The value of every state that is not null. Rules can compare states only with null."""

RequestReader = Callable[[PolicyRequest], object]
Converter = Callable[[object], object]
_GENERAL_TYPES: Mapping[str, type] = {
    "action": str,
    "changed": list[str],
    "labels": dict[str, str],
    "resource.kind": str,
    "resource.labels": dict[str, str],
    "resource.name": str,
    "resource.owner": str,
}
"""The variables that rules for any kind can use, and that are never null."""
_RESOURCE = "resource"
IMPACT = "impact"
_TEXT_MAP = dict[str, str]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The variables that rules for one kind can use.

    The name of a state's field contains a dot, such as ``post.partitions``.

    sides: for each state (such as ``pre`` and ``post``), whether it is the state before the change.
    types: the types of all variables except the states and ``principal``.
    nullable: the names of the variables in ``types`` that can be null.
    readers: the functions that read the values of the variables from a request.
    converters: the functions that convert values to types that CEL accepts. Variables whose values need no
        conversion are omitted.
    """

    kind: str
    words: PolicyWords
    sides: Mapping[str, bool] = field(init=False)
    types: Mapping[str, type] = field(init=False)
    nullable: frozenset[str] = field(init=False)
    readers: Mapping[str, RequestReader] = field(init=False)
    converters: Mapping[str, Converter] = field(init=False)

    def __post_init__(self) -> None:
        words = self.words
        sides = {words.before: True, words.after: False, "before": True, "after": False}
        types = dict(_GENERAL_TYPES) | ({words.subject: str} if words.subject else {})
        readers: dict[str, RequestReader] = {
            "action": lambda request: str(request.action),
            "changed": lambda request: sorted(request.changed),
            "labels": lambda request: request.labels,
            "principal": lambda request: request.principal,
            "resource.kind": lambda request: self.kind,
            "resource.labels": lambda request: request.labels,
            "resource.name": lambda request: str(request.name),
            "resource.owner": lambda request: find_owner(request.labels) or "",
        }
        if words.subject:
            readers[words.subject] = readers["resource.name"]
        for side, is_before in sides.items():
            readers[side] = _make_side_reader(is_before)
            for name, policy_field in words.fields.items():
                types[f"{side}.{name}"] = policy_field.value_type
                readers[f"{side}.{name}"] = _make_field_reader(
                    is_before, make_field_reader(name, policy_field)
                )
        for name, policy_field in words.impact.items():
            types[f"{IMPACT}.{name}"] = policy_field.value_type
            readers[f"{IMPACT}.{name}"] = _make_impact_reader(make_field_reader(name, policy_field))
        nullable_names = {
            *(f"{side}.{name}" for side in sides for name, known in words.fields.items() if known.nullable),
            *(f"{IMPACT}.{name}" for name, known in words.impact.items() if known.nullable),
        }
        object.__setattr__(self, "nullable", frozenset(nullable_names))
        object.__setattr__(self, "sides", sides)
        object.__setattr__(self, "types", types)
        object.__setattr__(self, "readers", readers)
        # variables that are not fields are already strings, except for labels
        convertible_types = {
            name: known for name, known in types.items() if "." in name or known == _TEXT_MAP
        }
        converter_items = ((name, _find_converter(known)) for name, known in convertible_types.items())
        object.__setattr__(
            self, "converters", {name: convert for name, convert in converter_items if convert}
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that each state has. Examples of states are ``pre`` and ``post``."""
        return tuple(sorted(self.words.fields))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the top-level variables, sorted."""
        kind_names = {self.words.before, self.words.after, self.words.subject or _RESOURCE}
        if self.words.impact:
            kind_names.add(IMPACT)
        return tuple(sorted({"action", "changed", "labels", "principal", *kind_names}))

    @property
    def all_variables(self) -> tuple[str, ...]:
        """The names of all variables. The top-level variables come first."""
        sides = (self.words.before, self.words.after)
        return (
            *(name for name in self.names if name != IMPACT),  # which is not a variable itself
            *(f"{side}.{name}" for side in sides for name in self.fields),
            *(f"{IMPACT}.{name}" for name in self.words.impact),
        )

    @property
    def text_maps(self) -> tuple[str, ...]:
        """The names of state fields whose values are mappings with string keys, such as ``post.configs``."""
        maps = [name for name, known in self.words.fields.items() if is_text_mapping(known)]
        return tuple(f"{side}.{name}" for side in self.sides for name in maps)

    @property
    def example_map(self) -> str:
        """A mapping that can lack a key. Hints use this mapping as an example."""
        maps = [name for name in self.fields if is_text_mapping(self.words.fields[name])]
        return f"{self.words.after}.{maps[0]}" if maps else "labels"

    def is_before(self, side: str) -> bool:
        """Return whether ``side``, such as ``pre``, is the name of the state before the change."""
        return self.sides[side]


@cache
def _build_vocabulary(kind: str, words: PolicyWords) -> Vocabulary:
    return Vocabulary(kind, words)


def get_vocabulary(kind: str) -> Vocabulary:
    """Return the variables that rules for a kind can use. Raises LookupError for an unsupported kind."""
    words = find_policy_words(kind)
    if words is None:
        raise LookupError(f"policies cannot check resources of kind {kind}")
    return _build_vocabulary(kind, words)


def _make_side_reader(is_before: bool) -> RequestReader:
    def read(request: PolicyRequest) -> object:
        state = request.pre_request_state if is_before else request.post_request_state
        return None if state is None else _PRESENT

    return read


def _make_field_reader(is_before: bool, read: Callable[[object], object]) -> RequestReader:
    def read_value(request: PolicyRequest) -> object:
        state = request.pre_request_state if is_before else request.post_request_state
        return NO_STATE if state is None else read(state)

    return read_value


def _make_impact_reader(read: Callable[[object], object]) -> RequestReader:
    def read_fact(request: PolicyRequest) -> object:
        return read(cast(ImpactRequest, request).impact)  # see `PolicyWords.impact`

    return read_fact


def _find_converter(value_type: type) -> Converter | None:
    """Return a function that converts values to types that CEL accepts, or None if no conversion is needed.

    For example, the value of a reference (``${…}``) has a subclass of str, which CEL does not accept.
    """
    if value_type == _TEXT_MAP:
        return _as_texts
    if value_type is str:
        return _as_text
    if value_type is float:
        return _as_float
    arguments = [_find_converter(argument) or _as_is for argument in get_args(value_type)]
    if get_origin(value_type) is dict:
        return partial(_as_dict, arguments[1])
    return partial(_as_list, arguments[0]) if get_origin(value_type) is list else None


def _as_texts(value: object) -> object:
    if not isinstance(value, Mapping) or (
        type(value) is dict and all(type(item) is str for item in value.values())
    ):
        return value
    return {key: str(item) for key, item in value.items()}


def _as_text(value: object) -> object:
    return value if type(value) is str else str(value)


def _as_float(value: object) -> object:
    return to_float(value) if isinstance(value, int) else value


def _as_dict(convert: Converter, value: object) -> object:
    return {k: convert(item) for k, item in value.items()} if isinstance(value, Mapping) else value


def _as_list(convert: Converter, value: object) -> object:
    return [convert(item) for item in value] if isinstance(value, list | tuple) else value


def _as_is(value: object) -> object:
    return value
