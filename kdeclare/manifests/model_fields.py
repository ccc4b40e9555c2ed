"""What a pydantic model knows at a place in its data: to guess what was meant, and what may be shown."""

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from kdeclare.core.secrets.secret_refs import Secret


def known_fields(model: type[BaseModel], path: Sequence[str | int]) -> Iterator[str]:
    """The names of the fields that a model has at a place in its data."""
    for annotation in _annotations(model, path):
        for inner in _models(annotation):
            yield from (field.alias or name for name, field in inner.model_fields.items())


def choices_at(model: type[BaseModel], path: Sequence[str | int]) -> list[Any]:
    """The literals that a field takes."""
    found: list[Any] = []
    waiting = list(_annotations(model, path))
    while waiting:
        annotation = waiting.pop()
        arguments = get_args(annotation)
        found += [a for a in arguments if isinstance(a, str | int) and not isinstance(a, bool)]
        waiting += [a for a in arguments if not isinstance(a, str | int)]
    return found


def may_be_shown(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Whether the model takes a scalar at this place that is no secret.

    What it does not know there may be a secret under a misspelt name.
    """
    found = _leaves_at(model, path)
    return Secret not in found and any(_is_scalar(leaf) for leaf in found)


def is_secret_at(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    """Whether the model takes a secret at this place."""
    return Secret in _leaves_at(model, path)


def _leaves_at(model: type[BaseModel], path: Sequence[str | int]) -> list[Any]:
    current: list[Any] = [model]
    for step in path:
        current = [after for annotation in current for after in _stepped(annotation, step)]
    return [leaf for annotation in current for leaf in _leaves(annotation)]


def _stepped(annotation: Any, step: str | int) -> Iterator[Any]:
    """The annotations of what one step leads to."""
    for leaf in _leaves(annotation):
        if isinstance(leaf, type) and issubclass(leaf, BaseModel):
            fields = leaf.model_fields.items()
            yield from (field.annotation for name, field in fields if step in (name, field.alias))
        elif isinstance(get_origin(leaf), type):
            inner = get_args(leaf)
            yield from inner[1:] if issubclass(get_origin(leaf), Mapping) else inner


def _leaves(annotation: Any) -> Iterator[Any]:
    """The members of unions, and what is annotated; of literals, their types."""
    origin = get_origin(annotation)
    if hasattr(annotation, "__value__"):  # a type alias
        yield from _leaves(annotation.__value__)
    elif origin is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif origin is Literal:
        yield from map(type, get_args(annotation))
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _leaves(member)
    else:
        yield annotation


def _is_scalar(leaf: Any) -> bool:
    return isinstance(leaf, type) and issubclass(leaf, bool | int | float | str)


def _annotations(model: type[BaseModel], path: Sequence[str | int]) -> list[Any]:
    """The annotations that a path can lead to. A step into a list or mapping changes nothing, as
    ``_models`` looks into them."""
    current: list[Any] = [model]
    for step in path:
        following: list[Any] = []
        stepped = False
        for annotation in current:
            for inner in _models(annotation):
                for name, field in inner.model_fields.items():
                    if step in (name, field.alias):
                        following.append(field.annotation)
                        stepped = True
        current = following if stepped else current
    return current


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for argument in get_args(annotation):
        yield from _models(argument)
