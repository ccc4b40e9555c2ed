"""Where every field of a resource comes from, once overlays, defaults and variables are in it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Place
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.references import Referenced
from kdeclare.manifests.layers import Layers
from kdeclare.manifests.nodes import find, node_at
from kdeclare.manifests.overlays import without_identity
from kdeclare.manifests.reading import RESOURCE_MODES, VALUE, Reader
from kdeclare.manifests.scalars import resolve
from kdeclare.manifests.sources import Steps
from kdeclare.manifests.substitution import is_single, names_in

_PARTS = ("metadata", "spec")


class Origin(StrEnum):
    """What sort of document a field stands in."""

    MANIFEST = "manifest"
    OVERLAY = "overlay"
    DEFAULTS = "defaults"


@dataclass(frozen=True, slots=True)
class Said:
    """A place where something is said of a field. name: of the Defaults manifest, if it is one."""

    origin: Origin
    place: Place
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands in a value by reference: ``var.NAME``, and where that is defined, if a file says so."""

    name: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Origins:
    """One field: its value, as far as it may be seen, and who says so.

    value: text, numbers, truth values, null, or lists and mappings of them; None of a secret.
    by_reference: whether the value is the text as written, as what it stands for is from outside of the
        project and no business of a terminal; but not of a number that stands where one is due. Of a secret
        only what is one reference and nothing else: text around it, and project variables in it, may be
        parts of the secret.
    over: who said something else of it, what counts most first.
    """

    path: Steps
    value: Json
    by: Said
    over: tuple[Said, ...] = ()
    references: tuple[Reference, ...] = ()
    secret: bool = False
    by_reference: bool = False


@dataclass(frozen=True, slots=True)
class EffectiveManifest:
    """A resource as it is planned in an environment. Labels and spec, field by field, in their order."""

    project: str
    env: str
    resource: ResourceId
    place: Place
    fields: tuple[Origins, ...]


def origins(
    made_of: Layers, reader: Reader, variables: Mapping[str, Place], is_secret: Callable[[Steps], bool]
) -> tuple[Origins, ...]:
    """All fields of a resource whose documents are well.

    variables: where those of the environment are defined.
    """
    layers = tuple(_layers(made_of))
    found = []
    for keys, node, mode in _leaves(made_of.effective):
        path = tuple(map(_step, keys))
        value = reader.read(node, mode)
        hidden = is_secret(path) and not _is_one_reference(value)
        outside = not hidden and _is_from_outside(value)
        by, *over = _said(layers, [key.value for key in keys])
        names = tuple(Reference(name, variables.get(name.removeprefix("var."))) for name in _names(node))
        shown = None if hidden else _as_seen(value, as_written=outside)
        found.append(Origins(path, shown, by, tuple(over), names, hidden, outside))
    return tuple(found)


def _layers(made_of: Layers) -> Iterator[tuple[Origin, str | None, Node]]:
    """The documents, what counts most first."""
    for overlay in reversed(made_of.overlays):
        yield Origin.OVERLAY, None, without_identity(overlay)
    yield Origin.MANIFEST, None, made_of.base
    for given in made_of.defaults:
        yield Origin.DEFAULTS, given.name, given.root


def _said(layers: Iterable[tuple[Origin, str | None, Node]], path: Sequence[str]) -> Iterator[Said]:
    """path: keys as written, as `fill` and `merge` compare them."""
    for origin, name, root in layers:
        if node_at(root, path) is not None:
            yield Said(origin, find(root, path, key=True), name)


def _leaves(root: Node) -> Iterator[tuple[tuple[ScalarNode, ...], Node, int]]:
    """Keys, value and how to read it, of all that is no mapping of more; a list is one value."""
    for key, node in root.value:
        if key.value in _PARTS:
            yield from _below((key,), node, RESOURCE_MODES.get(key.value, VALUE))


def _below(
    keys: tuple[ScalarNode, ...], node: Node, mode: int
) -> Iterator[tuple[tuple[ScalarNode, ...], Node, int]]:
    if not isinstance(node, MappingNode) or not node.value:
        yield keys, node, mode
        return
    for key, value in node.value:
        inner = mode if isinstance(value, ScalarNode) else RESOURCE_MODES.get(key.value, mode)
        yield from _below((*keys, key), value, inner)


def _step(key: ScalarNode) -> str | int:
    """A key as it means: a plain number is no text."""
    meaning = None if key.style else resolve(key.value)
    number = meaning[0] if isinstance(meaning, tuple) else None
    return number if type(number) is int else str(key.value)


def _is_from_outside(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return any(map(_is_from_outside, value)) if isinstance(value, list) else isinstance(value, Referenced)


def _is_one_reference(value: Any) -> bool:
    return isinstance(value, Referenced) and is_single(value.reference)


def _as_seen(value: Any, *, as_written: bool) -> Json:
    """With references in place of what they stand for, and then what could be taken for one is escaped."""
    if isinstance(value, dict):
        return {key: _as_seen(inner, as_written=as_written) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_seen(inner, as_written=as_written) for inner in value]
    if isinstance(value, Referenced):
        return value.reference
    return value.replace("${", "$${") if as_written and isinstance(value, str) else value


def _names(node: Node) -> Iterator[str]:
    if isinstance(node, ScalarNode):
        yield from names_in(node.value)
        return
    for item in node.value:
        for inner in item if isinstance(item, tuple) else (item,):
            yield from _names(inner)
