"""Parse JSON Schemas, and check them against the meta-schema of their draft."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeAlias
from urllib.parse import unquote

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.schema_registry.schemas.json_text import (
    JsonPath,
    build_json_problem,
    format_value,
    parse_json_text,
)
from kdeclare.providers.schema_registry.schemas.problems import MAX_PROBLEMS, SchemaError, SchemaProblem

_Keyed: TypeAlias = Iterator[tuple[JsonPath, JsonValue]]


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A valid JSON Schema: an object, or true or false.

    Whole numbers such as ``1.0`` are stored as integers.
    """

    root: JsonValue


_DEFAULT_DRAFT = "http://json-schema.org/draft-07/schema"


def parse_json_schema(text: str) -> JsonSchema:
    """Parse a JSON Schema. A schema without ``$schema`` is checked as draft 7, as registries do.

    Raises SchemaError with the first problems. A schema of an unknown draft is not checked.
    """
    root = parse_json_text(text)
    if not isinstance(root, Mapping | bool):
        message = f"A JSON Schema must be an object, true or false, not {format_value(root)}."
        raise SchemaError(build_json_problem(text, (), message))
    try:
        meta_schema_problems = tuple(islice(_check_meta_schema(text, root), MAX_PROBLEMS))
    # the library makes many nested calls per level; the registry checks such schemas, too
    except RecursionError:
        meta_schema_problems = ()
    problems = (*meta_schema_problems, *islice(_check_local_references(text, root), MAX_PROBLEMS))
    if problems:
        raise SchemaError(*problems)
    return JsonSchema(root)


def _check_meta_schema(text: str, root: JsonValue) -> Iterator[SchemaProblem]:
    import jsonschema  # imported here because only JSON Schemas need it

    uri = root.get("$schema", _DEFAULT_DRAFT) if isinstance(root, Mapping) else _DEFAULT_DRAFT
    if not isinstance(uri, str):
        yield build_json_problem(text, ("$schema",), "The value of '$schema' must be a string.")
        return
    validators = {
        "http://json-schema.org/draft-04/schema": jsonschema.Draft4Validator,
        "http://json-schema.org/draft-06/schema": jsonschema.Draft6Validator,
        _DEFAULT_DRAFT: jsonschema.Draft7Validator,
        "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
        "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
    }
    validator = validators.get(uri.rstrip("#"))
    if validator is None:
        return
    for error in validator(validator.META_SCHEMA).iter_errors(root):
        # If no alternative fits, the error itself names none of them.
        message = "; ".join(alternative.message for alternative in error.context or (error,))
        if len(message) > _MAX_MESSAGE:
            message = f"{message[:_MAX_MESSAGE]}…"
        yield build_json_problem(text, tuple(error.absolute_path), f"{message}.")


_MAX_MESSAGE = 200


def _check_local_references(text: str, root: JsonValue) -> Iterator[SchemaProblem]:
    """Yield a problem for each reference to a missing part of the same schema.

    A schema with nested ``$id`` keywords is not checked, because they change the meaning of references.
    """
    values = list(_walk(root, ()))
    if any("$id" in value for path, value in values if path and isinstance(value, Mapping)):
        return
    for path, value in values:
        reference = value.get("$ref") if isinstance(value, Mapping) else None
        if (
            isinstance(reference, str)
            and (reference == "#" or reference.startswith("#/"))
            and not _is_resolvable(root, reference)
        ):
            message = f"The reference '{reference}' does not refer to a part of this schema."
            yield build_json_problem(text, (*path, "$ref"), message)


_DATA_KEYWORDS = frozenset({"const", "default", "enum", "examples"})


def _walk(value: JsonValue, path: JsonPath) -> _Keyed:
    """Yield all values that can be schemas, with their paths."""
    yield path, value
    if isinstance(value, Mapping):
        is_schema = not path or path[-1] not in ("properties", "patternProperties", "$defs", "definitions")
        for key, child in value.items():
            if not (is_schema and key in _DATA_KEYWORDS):
                yield from _walk(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _walk(child, (*path, index))


def _is_resolvable(root: JsonValue, reference: str) -> bool:
    value = root
    for token in reference.split("/")[1:]:
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        index = parse_whole_number(key) if isinstance(value, list) else None
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and index is not None and index < len(value):
            value = value[index]
        else:
            return False
    return True
