"""Look up fields of Pydantic models by path, in order to suggest corrections and to detect secrets."""

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel

from kdeclare.core.secrets.secret_refs import Secret


def find_field_names(model: type[BaseModel], path: Sequence[str | int]) -> Iterator[str]:
    """Yield the names of the fields that a model allows at a path in the data."""
    for annotation in _collect_annotations(model, path):
        for inner in _collect_models(annotation):
            yield from (field.alias or name for name, field in inner.model_fields.items())


def find_choices(model: type[BaseModel], path: Sequence[str | int]) -> list[Any]:
    """Return the literals that the field at a path accepts."""
    choices: list[Any] = []
    pending = list(_collect_annotations(model, path))
    while pending:
        annotation = pending.pop()
        arguments = get_args(annotation)
        choices += [a for a in arguments if isinstance(a, str | int) and not isinstance(a, bool)]
        pending += [a for a in arguments if not isinstance(a, str | int)]
    return choices


def is_showable(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Return whether the field at a path accepts scalars, and none of them can be a secret.

    Return False for an unknown field, because its name could be the misspelled name of a secret.
    """
    leaves = _collect_leaves_at(model, path)
    return Secret not in leaves and any(_is_scalar(leaf) for leaf in leaves)


def is_secret_at(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Return whether a model accepts a secret at this path."""
    return Secret in _collect_leaves_at(model, path)


def _collect_leaves_at(model: type[BaseModel], path: Sequence[str | int]) -> list[Any]:
    current: list[Any] = [model]
    for step in path:
        current = [after for annotation in current for after in _follow_step(annotation, step)]
    return [leaf for annotation in current for leaf in _collect_leaves(annotation)]


def _follow_step(annotation: Any, step: str | int) -> Iterator[Any]:
    """Yield the annotations of the values that a key or an index selects."""
    for leaf in _collect_leaves(annotation):
        if isinstance(leaf, type) and issubclass(leaf, BaseModel):
            fields = leaf.model_fields.items()
            yield from (field.annotation for name, field in fields if step in (name, field.alias))
        elif isinstance(get_origin(leaf), type):
            inner = get_args(leaf)
            yield from inner[1:] if issubclass(get_origin(leaf), Mapping) else inner


def _collect_leaves(annotation: Any) -> Iterator[Any]:
    """Yield the plain types in an annotation: the members of unions, and the types of literals."""
    origin = get_origin(annotation)
    if hasattr(annotation, "__value__"):  # a type alias
        yield from _collect_leaves(annotation.__value__)
    elif _is_root_model(annotation):
        yield from _collect_leaves(annotation.model_fields["root"].annotation)
    elif origin is Annotated:
        yield from _collect_leaves(get_args(annotation)[0])
    elif origin is Literal:
        yield from map(type, get_args(annotation))
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _collect_leaves(member)
    else:
        yield annotation


def _is_root_model(annotation: Any) -> bool:
    """Whether the annotation is a root model, which reads a plain value instead of fields."""
    return isinstance(annotation, type) and issubclass(annotation, RootModel)


def _is_scalar(leaf: Any) -> bool:
    return isinstance(leaf, type) and issubclass(leaf, bool | int | float | str)


def _collect_annotations(model: type[BaseModel], path: Sequence[str | int]) -> list[Any]:
    """Return the annotations of the values that can be at a path.

    Steps of the path that are list indexes or keys of plain mappings are skipped, because
    ``_collect_models`` searches lists and mappings for models.
    """
    current: list[Any] = [model]
    for step in path:
        following: list[Any] = []
        has_field = False
        for annotation in current:
            for inner in _collect_models(annotation):
                for name, field in inner.model_fields.items():
                    if step in (name, field.alias):
                        following.append(field.annotation)
                        has_field = True
        current = following if has_field else current
    return current


def _collect_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if _is_root_model(annotation):
        yield from _collect_models(annotation.model_fields["root"].annotation)
        return
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for argument in get_args(annotation):
        yield from _collect_models(argument)
