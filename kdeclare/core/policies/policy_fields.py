"""The fields of resources that the rules of policies can use, with their types."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PolicyField:
    """One field of a resource, for policies.

    value_type: int, float, str, bool, or a list or dict of these; ``object`` if several types are possible.
    read: reads the field from the state of a resource; by default, reads the item with the field's name.
    keys: for a mapping, the known keys with the types of their values, to detect misspelled keys. Other keys
        are possible, too.
    elements: for a mapping, the plural noun for its keys.
    nullable: whether the field is null if it is not set. A collection that is not set is empty instead.
    """

    value_type: type
    read: Callable[[object], object] | None = None
    keys: Callable[[], Mapping[str, type]] | None = None
    elements: str = "keys"
    nullable: bool = False


_SCALARS = (str, bool, int, float)
_LISTS: Mapping[type, type] = {str: list[str], bool: list[bool], int: list[int], float: list[float]}
_DICTS: Mapping[type, type] = {
    str: dict[str, str],
    bool: dict[str, bool],
    int: dict[str, int],
    float: dict[str, float],
}


def build_policy_field(annotation: object) -> PolicyField:
    """Return the policy field for a spec field with this type annotation.

    A type that rules cannot express becomes ``object``.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        member_types = [argument for argument in arguments if argument is not type(None)]
        policy_field = build_policy_field(member_types[0]) if len(member_types) == 1 else PolicyField(object)
        is_scalar = get_origin(policy_field.value_type) is None
        return replace(policy_field, nullable=is_scalar and len(member_types) < len(arguments))
    if origin is Annotated:
        return build_policy_field(arguments[0])
    if origin is Literal:
        return build_policy_field(type(arguments[0]))
    if origin in (list, tuple):
        return PolicyField(_LISTS.get(build_policy_field(arguments[0]).value_type, list[object]))
    if origin is dict:
        return PolicyField(_DICTS.get(build_policy_field(arguments[1]).value_type, dict[str, object]))
    return PolicyField(next((scalar for scalar in _SCALARS if annotation is scalar), object))


def is_text_mapping(policy_field: PolicyField) -> bool:
    """Whether a field is a mapping with string keys. Each key can change independently."""
    return get_origin(policy_field.value_type) is dict and get_args(policy_field.value_type)[0] is str


@dataclass(frozen=True, eq=False)
class PolicyWords:
    """The names that a policy rule about a kind can use.

    fields: the fields of a resource of the kind, by name.
    subject: an alias of ``resource.name``.
    before, after: aliases of the states before and after the request.
    is_name: returns whether a given name is valid for a resource.
    impact: the fields that describe the impact of a request, by name. A rule reads such a field as
        ``impact.<name>``. If there are such fields, the requests are of type `ImpactRequest`.
    """

    fields: Mapping[str, PolicyField]
    subject: str = ""
    before: str = "before"
    after: str = "after"
    is_name: Callable[[str], bool] = bool
    impact: Mapping[str, PolicyField] = field(default_factory=dict)

    def has_field(self, changed: str) -> bool:
        """Whether a request can change ``changed``: the name of a field, or ``field.key`` for a mapping."""
        name, dot, key = changed.partition(".")
        policy_field = self.fields.get(name)
        return (
            policy_field is not None and (not dot or bool(key)) and bool(dot) == is_text_mapping(policy_field)
        )


def make_field_reader(name: str, policy_field: PolicyField) -> Callable[[object], object]:
    """Return a function that reads a field from the state of a resource."""
    return policy_field.read if policy_field.read is not None else partial(_read_item, name)


def _read_item(name: str, state: object) -> object:
    return state[name] if isinstance(state, Mapping) else None
