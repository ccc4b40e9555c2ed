"""Determine whether the scalars of a document are read as YAML values or as strings.

For the scalars in the spec, this depends on the model of the kind. The other fields of a document are read in
the same way for every kind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo

from kdeclare.core.resources.raw_text import RawText
from kdeclare.manifests.syntax.node_reader import KAFKA, TEXT, UNIFORM, VALUE, Modes

_Option = tuple[Any, int]
"""A type that a field accepts, and the mode for reading scalars of this type."""


def build_document_modes(spec: Modes) -> Modes:
    """Return the modes for a manifest, which say for each scalar whether it is read as a string.

    spec: the modes for the spec of the manifest.
    """
    return Modes(VALUE, {"metadata": UNIFORM[TEXT], "spec": spec}, UNIFORM[VALUE])


@cache
def build_spec_modes(model: type[BaseModel]) -> Modes:
    """Return the modes for the data of a model, which say for each scalar whether it is read as a string.

    Scalars in fields that are marked with `RawText` remain strings. All other scalars become YAML values.
    """
    return _build_modes([(model, VALUE)], {})


def can_be_secret_at(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Return whether a model reads the scalar at this path as a string that can be a secret."""
    modes = _build_modes([(model, VALUE)], {})  # not cached: document models are created for each load
    for step in path[:-1]:
        modes = modes.get_modes_below(step)
    return bool(path) and modes.get_mode(path[-1]) == KAFKA


def _build_modes(options: Sequence[_Option], modes_by_key: dict[tuple[tuple[int, int], ...], Modes]) -> Modes:
    """Build the modes for reading a value that can have any of these types.

    modes_by_key: the modes that were already built, so that the recursion ends for models that contain
        themselves. The keys contain the ids of the types, because not all types are hashable.
    """
    key = tuple(dict.fromkeys((id(leaf), mode) for leaf, mode in options))
    if key in modes_by_key:
        return modes_by_key[key]
    built = modes_by_key[key] = Modes(VALUE, {}, UNIFORM[VALUE])
    fields: dict[str | int, list[_Option]] = {}
    others: list[_Option] = []
    for leaf, mode in options:
        if _is_model(leaf):
            for name, field in _collect_fields(leaf):
                fields.setdefault(name, []).extend(_collect_field_options(field, mode))
            others += [(Any, mode)] if mode else []
        elif leaf in (Any, object, dict, list):
            others.append((Any, mode))
        elif isinstance(origin := get_origin(leaf), type):
            arguments = get_args(leaf)[1:] if issubclass(origin, Mapping) else get_args(leaf)
            for argument in arguments:
                others += _collect_options(argument, mode)
    if not fields and all(leaf is Any for leaf, _ in others):
        # the nested types are unknown, so one mode applies at all depths
        modes_by_key[key] = UNIFORM[max((mode for _, mode in others or options), default=VALUE)]
        return modes_by_key[key]
    built.mode = _choose_scalar_mode(others)
    built.fields = {name: _build_modes([*found, *others], modes_by_key) for name, found in fields.items()}
    built.rest = _build_modes(others, modes_by_key)
    modes = {name: _choose_scalar_mode([*found, *others]) for name, found in fields.items()}
    built.scalars = {name: mode for name, mode in modes.items() if mode != built.mode} or None
    if not fields and built.rest is UNIFORM[built.mode]:
        modes_by_key[key] = built.rest
    return modes_by_key[key]


def _choose_scalar_mode(options: Iterable[_Option]) -> int:
    """Return the most restrictive mode of all types that a scalar can have."""
    return max((mode for leaf, mode in options if not _is_container(leaf)), default=VALUE)


def _is_container(leaf: Any) -> bool:
    """Return whether a type accepts no scalars except null. Null is read in the same way in every mode."""
    return leaf in (dict, list, NoneType) or _is_model(leaf) or isinstance(get_origin(leaf), type)


def _is_model(leaf: Any) -> bool:
    return isinstance(leaf, type) and get_origin(leaf) is None and issubclass(leaf, BaseModel)


def _collect_fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    if not model.__pydantic_fields_complete__:  # the model refers to models that were defined after it
        model.model_rebuild(raise_errors=False)
    for name, field in model.model_fields.items():
        aliases = (name, field.alias, field.validation_alias)
        yield from ((alias, field) for alias in dict.fromkeys(aliases) if isinstance(alias, str))


def _collect_field_options(field: FieldInfo, mode: int) -> Iterator[_Option]:
    return _collect_options(field.annotation, _apply_markers(field.metadata, mode))


def _collect_options(annotation: Any, mode: int) -> Iterator[_Option]:
    """Yield the types that an annotation allows. Unions, type aliases and root models are resolved."""
    origin = get_origin(annotation)
    if hasattr(annotation, "__value__"):
        yield from _collect_options(annotation.__value__, mode)
    elif origin is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _collect_options(inner, _apply_markers(metadata, mode))
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _collect_options(member, mode)
    elif _is_model(annotation) and issubclass(annotation, RootModel):
        yield from _collect_field_options(annotation.model_fields["root"], mode)
    else:
        yield annotation, mode


def _apply_markers(metadata: Iterable[Any], mode: int) -> int:
    for marker in metadata:
        if isinstance(marker, RawText):
            mode = KAFKA if marker.may_be_secret else TEXT
    return mode
