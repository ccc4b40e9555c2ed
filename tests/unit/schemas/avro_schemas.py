"""Avro schemas for tests: generated ones, other notations of them, and edits."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.unit.schemas.drawing import Draw

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_DEFAULTS: Mapping[str, Any] = {
    "null": None,
    "boolean": False,
    "int": 7,
    "long": 2**40,
    "float": 0.5,
    "double": 1,
    "bytes": "\u00ff",
    "string": "é",
}


@st.composite
def build_avro_schemas(draw: st.DrawFn, namespaces: tuple[str, ...] = ("", "x", "x.y")) -> Any:
    """A record in normalized form: full names, and no longer notations."""
    return _build_named(draw, ["record"], namespaces, [], depth=3)


def _build_named(
    draw: Draw, kinds: list[str], namespaces: tuple[str, ...], names: list[str], depth: int
) -> Any:
    kind = draw(st.sampled_from(kinds))
    namespace = draw(st.sampled_from(namespaces))
    name = f"{namespace}.N{len(names)}" if namespace else f"N{len(names)}"
    names.append(name)
    result: dict[str, Any] = {"type": kind, "name": name}
    if draw(st.booleans()):
        result["doc"] = draw(st.sampled_from(["An order.", "", "Zeile 1\nZeile 2"]))
    if draw(st.booleans()):
        result["aliases"] = ["other.Alias"]
    if kind == "enum":
        result["symbols"] = ["A", "B", "C"][: draw(st.integers(1, 3))]
        if draw(st.booleans()):
            result["default"] = "A"
    elif kind == "fixed":
        result["size"] = draw(st.integers(0, 16))
    else:
        fields = result["fields"] = []
        for index in range(draw(st.integers(0, 4))):
            field: dict[str, Any] = {
                "name": f"f{index}",
                "type": _build_type(draw, namespaces, names, depth - 1),
            }
            if draw(st.booleans()):
                field["doc"] = "A field."
            if isinstance(field["type"], str) and field["type"] in _DEFAULTS and draw(st.booleans()):
                field["default"] = _DEFAULTS[field["type"]]
            if draw(st.booleans()):
                field["order"] = draw(st.sampled_from(["ascending", "descending", "ignore"]))
            if draw(st.booleans()):
                field["aliases"] = [f"g{index}"]
            fields.append(field)
    return result


def _build_type(draw: Draw, namespaces: tuple[str, ...], names: list[str], depth: int) -> Any:
    kinds = ["primitive", "logical", "reference"]
    if depth > 0:
        kinds += ["array", "map", "union", "named"]
    kind = draw(st.sampled_from(kinds))
    if kind == "reference" and names:
        return draw(st.sampled_from(names))
    if kind == "logical":
        return {"type": "long", "logicalType": "timestamp-millis"}
    if kind == "array":
        return {"type": "array", "items": _build_type(draw, namespaces, names, depth - 1)}
    if kind == "map":
        return {"type": "map", "values": _build_type(draw, namespaces, names, depth - 1), "connect.name": "m"}
    if kind == "union":
        branches = [
            "null",
            "string",
            {"type": "array", "items": _build_type(draw, namespaces, names, depth - 1)},
        ]
        return draw(st.permutations(branches))
    if kind == "named":
        return _build_named(draw, ["record", "enum", "fixed"], namespaces, names, depth)
    return draw(st.sampled_from(PRIMITIVES))


def write_avro(draw: Draw, schema: Any, *, wraps_names: bool = True) -> str:
    """Write a normalized schema in a notation that is drawn. wraps_names: as in ``{"type": "string"}``."""
    written = _write_type(draw, schema, "", wraps_names)
    return json.dumps(written, indent=draw(st.sampled_from([None, 0, 3])), ensure_ascii=draw(st.booleans()))


def _write_type(draw: Draw, schema: Any, namespace: str, wraps_names: bool) -> Any:
    if isinstance(schema, list):
        return [_write_type(draw, branch, namespace, wraps_names) for branch in schema]
    if isinstance(schema, str):
        name = schema if schema in PRIMITIVES else _write_name(draw, schema, namespace)
        return {"type": name} if wraps_names and draw(st.booleans()) else name
    result = dict(schema)
    if "name" in schema:
        own_namespace, _, name = schema["name"].rpartition(".")
        if not own_namespace or draw(st.booleans()):
            result["name"] = name
            if own_namespace != namespace or draw(st.booleans()):
                result["namespace"] = own_namespace
        if "aliases" in schema and own_namespace == "other":
            result["aliases"] = ["Alias"]
        namespace = own_namespace
    for key in ("items", "values"):
        if key in schema:
            result[key] = _write_type(draw, schema[key], namespace, wraps_names)
    if "fields" in schema:
        result["fields"] = [
            _shuffle(draw, {**field, "type": _write_type(draw, field["type"], namespace, wraps_names)})
            for field in schema["fields"]
        ]
    return _shuffle(draw, result)


def _write_name(draw: Draw, name: str, namespace: str) -> str:
    own_namespace, _, short = name.rpartition(".")
    return short if own_namespace == namespace and draw(st.booleans()) else name


def _shuffle(draw: Draw, value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in draw(st.permutations(sorted(value)))}


def edit_avro(draw: Draw, schema: Any) -> Any:
    """Return a copy of a normalized schema with one change of its meaning, or of its documentation."""
    result = deepcopy(schema)
    nodes = list(_list_nodes(result))
    node = draw(st.sampled_from(nodes))
    edits = [_edit_attribute]
    if node.get("type") in ("record", "enum", "fixed"):
        edits += [_edit_documentation, _edit_aliases]
    if "fields" in node:
        edits.append(_add_field)
        if node["fields"]:
            edits.append(_remove_or_rename_field)
    if "symbols" in node:
        edits += [_edit_symbols]
    if "size" in node:
        edits.append(_edit_size)
    if "order" in node or node.get("name", "").startswith("f"):
        edits += [_edit_documentation, _edit_aliases, _edit_order, _edit_type]
    draw(st.sampled_from(edits))(draw, node)
    return result


def _list_nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for key in ("items", "values", "type"):
            if not isinstance(value.get(key), str):
                yield from _list_nodes(value.get(key))
        for field in value.get("fields", []):
            yield from _list_nodes(field)
    elif isinstance(value, list):
        for item in value:
            yield from _list_nodes(item)


def _edit_attribute(draw: Draw, node: dict[str, Any]) -> None:
    node["my.attribute"] = draw(st.sampled_from([1, True, None, "1", {"a": [1]}]))


def _edit_documentation(draw: Draw, node: dict[str, Any]) -> None:
    node["doc"] = f"{node.get('doc', '')} More."


def _edit_aliases(draw: Draw, node: dict[str, Any]) -> None:
    if "aliases" in node and draw(st.booleans()):
        del node["aliases"]
    else:
        node["aliases"] = [*node.get("aliases", []), "another"]


def _add_field(draw: Draw, node: dict[str, Any]) -> None:
    node["fields"].append({"name": "extra", "type": "int", "default": 1})


def _remove_or_rename_field(draw: Draw, node: dict[str, Any]) -> None:
    field = node["fields"][-1]
    if isinstance(field["type"], str) and draw(st.booleans()):
        node["fields"].pop()
    else:
        field["name"] = "renamed"


def _edit_symbols(draw: Draw, node: dict[str, Any]) -> None:
    if len(node["symbols"]) > 1 and draw(st.booleans()):
        node["symbols"].reverse()
    else:
        node["symbols"].append("Z")


def _edit_size(draw: Draw, node: dict[str, Any]) -> None:
    node["size"] += 1


def _edit_order(draw: Draw, node: dict[str, Any]) -> None:
    if "order" in node:
        del node["order"]
    else:
        node["order"] = "ascending"


def _edit_type(draw: Draw, node: dict[str, Any]) -> None:
    node.pop("default", None)
    node["type"] = [node["type"]] if not isinstance(node["type"], list) else [*node["type"], "double"]
