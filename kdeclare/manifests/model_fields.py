"""What a pydantic model knows at a place in its data: for guesses at what was meant."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel


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
