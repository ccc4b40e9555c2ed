"""Check the default of an Avro field against the field's type."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.providers.schema_registry.schemas.json_text import as_mapping, as_sequence, format_value

_INTEGER_BITS = {"int": 32, "long": 64}


def find_default_problem(
    type_: JsonValue, default: JsonValue, definitions: Mapping[str, JsonObject]
) -> str | None:
    """Return why a value cannot be the default of a field, as a sentence; None if the value is valid.

    type_: the type of the field in normalized form. definitions: the named types of the schema. A type that
    is defined elsewhere accepts any default.

    As in Avro 1.12, the default of a union can have the type of any of its branches. Earlier versions of the
    specification required the first branch, but most implementations did not.
    """
    if isinstance(type_, list):
        if not type_ or all(find_default_problem(branch, default, definitions) for branch in type_):
            return f"The default {format_value(default)} has none of the types of the union."
        return None
    definition = _resolve(type_, definitions)
    if definition is None:
        return None
    name = definition["type"]
    if name in ("record", "error"):
        return _find_record_problem(definition, default, definitions)
    if name == "array":
        return _find_element_problem(definition["items"], default, list, definitions)
    if name == "map":
        return _find_element_problem(definition["values"], default, Mapping, definitions)
    if name == "enum":
        is_valid = default in as_sequence(definition.get("symbols"))
    else:
        is_valid = _is_scalar_default(name, default)
    if is_valid:
        return None
    label = definition["name"] if "name" in definition and name in ("enum", "fixed") else name
    return f"The default {format_value(default)} is not a value of the type {label}."


def _resolve(type_: JsonValue, definitions: Mapping[str, JsonObject]) -> JsonObject | None:
    """Return a type as an object with its attributes; None if the type is defined elsewhere."""
    if isinstance(type_, Mapping):
        name = type_.get("type")
        if isinstance(name, str) and name in definitions:
            return definitions[name]
        return type_
    if isinstance(type_, str):
        return definitions.get(type_, {"type": type_} if "." not in type_ else None)
    return None


def _find_record_problem(
    record: JsonObject, default: JsonValue, definitions: Mapping[str, JsonObject]
) -> str | None:
    if not isinstance(default, Mapping):
        return (
            f"The default {format_value(default)} is not an object, but record {record['name']} requires one."
        )
    for field in map(as_mapping, as_sequence(record.get("fields"))):
        name = str(field["name"])
        if name in default:
            if problem := find_default_problem(field["type"], default[name], definitions):
                return f"Field '{name}' of the default: {problem}"
        elif "default" not in field:
            return f"The default has no value for field '{name}' of record {record['name']}."
    return None


def _find_element_problem(
    type_: JsonValue, default: JsonValue, container: type, definitions: Mapping[str, JsonObject]
) -> str | None:
    if not isinstance(default, container):
        expected = "an array" if container is list else "an object"
        return f"The default {format_value(default)} is not {expected}."
    values = default.values() if isinstance(default, Mapping) else as_sequence(default)
    problems = (find_default_problem(type_, value, definitions) for value in values)
    return next((problem for problem in problems if problem), None)


def _is_scalar_default(name: JsonValue, default: JsonValue) -> bool:
    if name == "null":
        return default is None
    if name == "boolean":
        return isinstance(default, bool)
    if name in ("string", "bytes", "fixed"):
        return isinstance(default, str)
    if isinstance(default, bool) or not isinstance(default, int | float):
        return name not in ("int", "long", "float", "double")  # an unknown name: any default
    if name in ("int", "long"):
        limit = 2 ** (_INTEGER_BITS[str(name)] - 1)
        return isinstance(default, int) and -limit <= default < limit
    return True
