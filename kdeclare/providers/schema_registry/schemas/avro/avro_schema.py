"""Parse Avro schemas into a normalized form that is the same for all notations of a schema.

The normalized form uses full names only, and the shortest notation of each type. It keeps everything else:
defaults, documentation, aliases, logical types, the sort order, and attributes that Avro does not define.
Avro's own Parsing Canonical Form drops these, so it cannot show whether a schema has changed.

fastavro parses Avro schemas too, but it stops at the first error, does not report the position of the error,
and rejects some valid schemas, such as a default of 1 for ``{"type": "double"}``.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.suggestions import format_suggestion
from kdeclare.providers.schema_registry.schemas.avro.avro_defaults import find_default_problem
from kdeclare.providers.schema_registry.schemas.json_text import (
    JsonPath,
    as_mapping,
    as_sequence,
    build_json_problem,
    format_value,
    parse_json_text,
)
from kdeclare.providers.schema_registry.schemas.problems import MAX_PROBLEMS, SchemaError, SchemaProblem

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
RECORDS: Final = frozenset({"record", "error"})
NAMED: Final = RECORDS | {"enum", "fixed"}
_COMPLEX: Final = NAMED | {"array", "map"}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_RULE = "A name starts with a letter or _ and contains only letters, digits and _."
_ORDERS = ("ascending", "descending", "ignore")


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A valid Avro schema in normalized form.

    root: the type that the schema defines, as a name, an object with ``type``, or a list (for a union). The
        first occurrence of a named type contains its definition, as in the text.
    definitions: the named types that the text defines, by full name.
    """

    root: JsonValue
    definitions: Mapping[str, JsonObject]


def parse_avro(text: str, external_names: Collection[str] = (), *, is_open: bool = False) -> AvroSchema:
    """Parse an Avro schema.

    external_names: the full names of types that references of the schema define.
    is_open: whether references can define further types, so that any unknown name is accepted.

    Raises SchemaError with the first `MAX_PROBLEMS` problems.
    """
    reader = _Reader(text, frozenset(external_names), is_open)
    root = reader.read_type(parse_json_text(text), (), "")
    problems = tuple(reader.problems) or tuple(islice(reader.check_defaults(), MAX_PROBLEMS))
    if problems:
        raise SchemaError(*problems)
    return AvroSchema(root, reader.definitions)


def build_full_name(name: str, namespace: str) -> str:
    """Return the full name of a type. A name with a dot is a full name, whatever the namespace."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def get_namespace(full_name: str) -> str:
    """Return the namespace of a full name; empty if it has none."""
    return full_name.rpartition(".")[0]


class _Reader:
    """Reads one schema, and collects its problems instead of stopping at the first."""

    def __init__(self, text: str, external_names: frozenset[str], is_open: bool) -> None:
        self.problems: list[SchemaProblem] = []
        self.definitions: dict[str, JsonObject] = {}
        self._text = text
        self._external_names = external_names
        self._is_open = is_open
        self._names: set[str] = set()  # includes types whose definitions are still being read
        self._defaults: list[tuple[JsonValue, JsonValue, JsonPath]] = []

    def check_defaults(self) -> Iterator[SchemaProblem]:
        """Yield the defaults that do not fit the types of their fields. All types must have been read."""
        for type_, default, path in self._defaults:
            if problem := find_default_problem(type_, default, self.definitions):
                yield build_json_problem(self._text, path, problem)

    def read_type(self, value: JsonValue, path: JsonPath, namespace: str) -> JsonValue:
        """Return a type in normalized form.

        If the type has a problem, the form of the result is undefined.
        """
        if isinstance(value, str):
            return self._read_name(value, path, namespace)
        if isinstance(value, list):
            return self._read_union(value, path, namespace)
        if not isinstance(value, Mapping):
            self._report(path, f"{format_value(value)} is not a type.")
            return "null"
        if "type" not in value:
            self._report(path, "The object has no attribute 'type'.")
            return "null"
        type_name = value["type"]
        if not isinstance(type_name, str):
            if len(value) == 1:
                return self.read_type(type_name, (*path, "type"), namespace)
            self._report((*path, "type"), "The attribute 'type' of an object must be the name of a type.")
            return "null"
        if type_name in NAMED:
            return self._read_named(value, type_name, path, namespace)
        if type_name == "array":
            return self._read_container(value, "items", path, namespace)
        if type_name == "map":
            return self._read_container(value, "values", path, namespace)
        name = self._read_name(type_name, (*path, "type"), namespace)
        return name if len(value) == 1 else {**value, "type": name}

    def _report(self, path: JsonPath, message: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(build_json_problem(self._text, path, message))

    def _read_name(self, name: str, path: JsonPath, namespace: str) -> str:
        if name in PRIMITIVES:
            return name
        full_name = build_full_name(name, namespace)
        if full_name in self._names or full_name in self._external_names:
            return full_name
        if name in self._names:
            return name  # as in Java, types without a namespace can be used everywhere
        if self._is_open and name not in _COMPLEX:
            return full_name
        if name in _COMPLEX:
            self._report(path, f"The type '{name}' must be an object with its other attributes, not a name.")
            return name
        candidates = PRIMITIVES | self._names | self._external_names
        suggestion = format_suggestion(name, candidates) or format_suggestion(full_name, candidates)
        self._report(path, f"The type '{full_name}' is not defined before it is used. {suggestion}".rstrip())
        return full_name

    def _read_union(self, branches: list[JsonValue], path: JsonPath, namespace: str) -> JsonValue:
        types: list[JsonValue] = []
        labels: set[str] = set()
        for index, branch in enumerate(branches):
            type_ = self.read_type(branch, (*path, index), namespace)
            if isinstance(type_, list):
                self._report((*path, index), "A union cannot directly contain another union.")
                continue
            label = get_type_label(type_)
            if label in labels:
                self._report((*path, index), f"The union contains the type '{label}' twice.")
            labels.add(label)
            types.append(type_)
        return types

    def _read_container(self, value: JsonObject, content: str, path: JsonPath, namespace: str) -> JsonValue:
        if content not in value:
            self._report(path, f"The type '{value['type']}' has no attribute '{content}'.")
            return "null"
        return {**value, content: self.read_type(value[content], (*path, content), namespace)}

    def _read_named(self, value: JsonObject, kind: str, path: JsonPath, namespace: str) -> JsonValue:
        full_name = self._read_definition_name(value, kind, path, namespace)
        own_namespace = get_namespace(full_name)
        self._names.add(full_name)
        definition = {key: item for key, item in value.items() if key != "namespace"}
        definition["name"] = full_name
        self._check_documentation(value, path)
        if "aliases" in value:
            aliases = self._read_aliases(value["aliases"], (*path, "aliases"))
            definition["aliases"] = [build_full_name(alias, own_namespace) for alias in aliases]
        if kind in RECORDS:
            definition["fields"] = self._read_fields(value, path, own_namespace)
        elif kind == "enum":
            self._check_enum(value, path)
        else:
            size = value.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                self._report((*path, "size"), "The type 'fixed' needs a 'size' in bytes.")
        self.definitions[full_name] = definition
        return definition

    def _read_definition_name(self, value: JsonObject, kind: str, path: JsonPath, namespace: str) -> str:
        name, own_namespace = value.get("name"), value.get("namespace", namespace)
        if not isinstance(name, str):
            self._report(path, f"The type '{kind}' needs a 'name', which must be a string.")
            return f"{kind} at {path}"  # a name that no other type has
        if not isinstance(own_namespace, str):
            self._report((*path, "namespace"), "The namespace must be a string.")
            own_namespace = namespace
        full_name = build_full_name(name, own_namespace)
        if not all(_NAME.fullmatch(part) for part in full_name.split(".")):
            self._report((*path, "name"), f"'{full_name}' is not a valid name. {_NAME_RULE}")
        elif full_name in PRIMITIVES:
            self._report((*path, "name"), f"'{full_name}' is the name of a primitive type.")
        elif full_name in self._names:
            self._report((*path, "name"), f"The type '{full_name}' is defined twice.")
        elif full_name in self._external_names:
            self._report((*path, "name"), f"The type '{full_name}' is also defined by a reference.")
        return full_name

    def _check_documentation(self, value: JsonObject, path: JsonPath) -> None:
        if not isinstance(value.get("doc", ""), str):
            self._report((*path, "doc"), "The documentation must be a string.")

    def _read_aliases(self, value: JsonValue, path: JsonPath) -> list[str]:
        aliases = [alias for alias in as_sequence(value) if isinstance(alias, str)]
        if not isinstance(value, list) or len(aliases) < len(value):
            self._report(path, "Aliases must be a list of names.")
        for alias in aliases:
            if not all(_NAME.fullmatch(part) for part in alias.split(".")):
                self._report(path, f"The alias '{alias}' is not a valid name. {_NAME_RULE}")
        return aliases

    def _read_fields(self, value: JsonObject, path: JsonPath, namespace: str) -> JsonValue:
        if not isinstance(value.get("fields"), list):
            self._report(path, f"The record '{value.get('name')}' needs a list of 'fields'.")
        names: set[str] = set()
        return [
            self._read_field(field, (*path, "fields", index), namespace, names)
            for index, field in enumerate(as_sequence(value.get("fields")))
        ]

    def _read_field(self, value: JsonValue, path: JsonPath, namespace: str, names: set[str]) -> JsonValue:
        field = as_mapping(value)
        name = field.get("name")
        if not isinstance(value, Mapping):
            self._report(path, "A field must be an object.")
        elif not isinstance(name, str):
            self._report(path, "The field needs a 'name', which must be a string.")
        elif not _NAME.fullmatch(name):
            self._report((*path, "name"), f"'{name}' is not a valid name of a field. {_NAME_RULE}")
        elif name in names:
            self._report((*path, "name"), f"The record contains the field '{name}' twice.")
        else:
            names.add(name)
            self._check_documentation(field, path)
            if field.get("order", _ORDERS[0]) not in _ORDERS:
                self._report((*path, "order"), f"The order must be one of {', '.join(_ORDERS)}.")
            if "aliases" in field:
                self._read_aliases(field["aliases"], (*path, "aliases"))
        if "type" not in field:
            if isinstance(value, Mapping):
                self._report(path, "The field has no attribute 'type'.")
            return {}
        type_ = self.read_type(field["type"], (*path, "type"), namespace)
        if "default" in field:
            self._defaults.append((type_, field["default"], (*path, "default")))
        return {**field, "type": type_}

    def _check_enum(self, value: JsonObject, path: JsonPath) -> None:
        symbols = value.get("symbols")
        if not isinstance(symbols, list):
            self._report(path, f"The enum '{value.get('name')}' needs a list of 'symbols'.")
            return
        known_symbols: set[str] = set()
        for index, symbol in enumerate(symbols):
            if not isinstance(symbol, str) or not _NAME.fullmatch(symbol):
                message = f"{format_value(symbol)} is not a valid symbol. {_NAME_RULE}"
                self._report((*path, "symbols", index), message)
            elif symbol in known_symbols:
                self._report((*path, "symbols", index), f"The enum contains the symbol '{symbol}' twice.")
            else:
                known_symbols.add(symbol)
        if "default" in value and value["default"] not in symbols:
            message = f"The default {format_value(value['default'])} is not one of the symbols."
            self._report((*path, "default"), message)


def get_type_label(type_: JsonValue) -> str:
    """Return what identifies a type within a union: the name of the type, ``array`` or ``map``."""
    if isinstance(type_, Mapping):
        return str(type_["name"] if type_.get("type") in NAMED else type_.get("type"))
    return type_ if isinstance(type_, str) else "union"


def write_namespaces(type_: JsonValue, namespace: str = "") -> JsonValue:
    """Convert a normalized type to valid Avro that can be used inside a namespace.

    Inside a namespace, a type without a namespace needs an empty ``namespace`` attribute, because it would
    otherwise inherit the enclosing namespace.
    """
    if isinstance(type_, list):
        return [write_namespaces(branch, namespace) for branch in type_]
    if not isinstance(type_, Mapping):
        return type_
    written = dict(type_)
    if type_["type"] in NAMED:
        own_namespace = get_namespace(str(type_["name"]))
        if namespace and not own_namespace:
            written["namespace"] = ""
        namespace = own_namespace
    for key in ("items", "values"):
        if key in type_ and type_["type"] in ("array", "map"):
            written[key] = write_namespaces(type_[key], namespace)
    if type_["type"] in RECORDS:
        fields = map(as_mapping, as_sequence(type_["fields"]))
        written["fields"] = [
            {**field, "type": write_namespaces(field["type"], namespace)} for field in fields
        ]
    return written
