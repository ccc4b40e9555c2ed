"""Write a converted resource as the YAML of a manifest."""

from collections.abc import Iterator, Mapping, Sequence

from kdeclare.convert.result import ConvertedResource, Reference
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.provider.registry import find_api_version
from kdeclare.core.resources.manifest_text import quote_scalar, scalar

_WIDTH = 100


def render_resource(resource: ConvertedResource) -> str:
    """Return the YAML of a manifest."""
    document: dict[str, JsonValue] = {"name": resource.name}
    if resource.labels:
        document["labels"] = dict(resource.labels)
    header = [f"apiVersion: {find_api_version(resource.kind)}", f"kind: {resource.kind}"]
    body: dict[str, JsonValue] = {"metadata": document, "spec": dict(resource.spec)}
    return "\n".join([*header, *_render_mapping(body, ""), ""])


def _render_mapping(mapping: Mapping[str, JsonValue], indent: str) -> Iterator[str]:
    for key, value in mapping.items():
        start = f"{indent}{_render_key(key)}:"
        if isinstance(value, Mapping) and value:
            yield start
            yield from _render_mapping(value, f"{indent}  ")
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            line = f"{start} {_render_flow(value)}"
            if len(line) <= _WIDTH and not any(isinstance(item, Mapping) for item in value):
                yield line
            else:
                yield start
                yield from _render_list(value, f"{indent}  ")
        else:
            yield f"{start} {_render_flow(value)}"


def _render_key(key: str) -> str:
    """Return a key as YAML. Numeric keys, which are the partition numbers of assignments, get no quotes."""
    return scalar(key, text=not key.isdigit())


def _render_list(items: Sequence[JsonValue], indent: str) -> Iterator[str]:
    for item in items:
        line = f"{indent}- {_render_flow(item)}"
        if isinstance(item, Mapping) and len(line) > _WIDTH:
            first, *rest = _render_mapping(item, f"{indent}  ")
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        else:
            yield line


def _render_flow(value: JsonValue) -> str:
    if isinstance(value, Reference):
        return quote_scalar(value)
    if isinstance(value, str):
        return scalar(value, text=True)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_render_key(k)}: {_render_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_render_flow, value)) + "]"
    return str(value)
