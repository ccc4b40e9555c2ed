"""Compare the contents of schemas, whatever their language.

Two schemas are the same if they have the same meaning and the same documentation. The layout of the text
makes no difference: white space, the order of keys, longer notations of the same type, comments in Protobuf.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from kdeclare.core.jsontypes import hash_json
from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaReference, SchemaType
from kdeclare.providers.schema_registry.schemas.avro.avro_differences import describe_avro_differences
from kdeclare.providers.schema_registry.schemas.avro.avro_schema import AvroSchema, parse_avro
from kdeclare.providers.schema_registry.schemas.differences import DifferenceKind, SchemaDifference
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema import JsonSchema, parse_json_schema
from kdeclare.providers.schema_registry.schemas.json_schema.json_schema_differences import (
    describe_json_schema_differences,
)
from kdeclare.providers.schema_registry.schemas.json_text import is_equal_json
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.problems import SchemaError
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_differences import (
    describe_protobuf_differences,
)
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_file import ProtobufFile
from kdeclare.providers.schema_registry.schemas.protobuf.protobuf_parse import parse_protobuf

ParsedSchema: TypeAlias = AvroSchema | JsonSchema | ProtobufFile


def parse_schema(
    content: SchemaContent, dependencies: Mapping[str, SchemaContent] | None = None
) -> ParsedSchema:
    """Parse a schema, and check everything that can be checked without a registry.

    dependencies: the contents that the references of the schema refer to, by the names of the references. If
        the content of a reference is missing, unknown Avro types are assumed to be defined there.

    Raises SchemaError with the problems of this schema. Problems of its dependencies are ignored.
    """
    if not dependencies or content.type is not SchemaType.AVRO:
        return _parse(content)
    external_names = {reference.name for reference in content.references}
    for dependency in dependencies.values():
        try:
            parsed = _parse(dependency)
        except SchemaError:
            continue
        if isinstance(parsed, AvroSchema):
            external_names.update(parsed.definitions)
    # A dependency with references of its own makes their types available, too.
    is_open = any(reference.name not in dependencies for reference in content.references) or any(
        dependency.references for dependency in dependencies.values()
    )
    return parse_avro(content.text, external_names, is_open=is_open)


@lru_cache(maxsize=1_000)
def _parse(content: SchemaContent) -> ParsedSchema:
    """Parse a schema without knowing the contents of its references."""
    if content.type is SchemaType.AVRO:
        names = frozenset(reference.name for reference in content.references)
        return parse_avro(content.text, names, is_open=bool(names))
    if content.type is SchemaType.JSON:
        return parse_json_schema(content.text)
    return parse_protobuf(content.text)


def is_same_schema(first: SchemaContent, second: SchemaContent) -> bool:
    """Return whether two schema contents are the same. The order of references makes no difference.

    A text that is not a valid schema is the same only as an identical text.
    """
    if first.type is not second.type or set(first.references) != set(second.references):
        return False
    return first.text == second.text or _is_same_text(first, second)


def _is_same_text(first: SchemaContent, second: SchemaContent) -> bool:
    try:
        return _is_equal(_parse(first), _parse(second))
    except SchemaError:
        return first.text == second.text


def _is_equal(first: ParsedSchema, second: ParsedSchema) -> bool:
    if isinstance(first, ProtobufFile) or isinstance(second, ProtobufFile):
        return first == second
    return is_equal_json(first.root, second.root)


def compute_schema_fingerprint(content: SchemaContent) -> str:
    """Return a hash that two schema contents share if and only if they are the same (`is_same_schema`)."""
    try:
        parsed = _parse(content)
    except SchemaError:
        text = content.text
    else:
        text = "\n".join(format_layout(parsed))
    return hash_json([content.type.value, text, _index_targets(content.references)])


def describe_differences(before: SchemaContent, after: SchemaContent) -> tuple[SchemaDifference, ...]:
    """Return the differences between two schema contents; empty if and only if they are the same."""
    if before.type is not after.type:
        message = f"schema: language changed from {before.type} to {after.type}"
        return (
            SchemaDifference(
                DifferenceKind.LANGUAGE_CHANGED, "", message, before.type.value, after.type.value
            ),
        )
    differences = tuple(_compare_references(before.references, after.references))
    if before.text != after.text and not _is_same_text(before, after):
        texts = _describe_texts(before, after) or (_describe_unknown_difference(before, after),)
        differences = (*differences, *texts)
    return differences


def _describe_texts(before: SchemaContent, after: SchemaContent) -> tuple[SchemaDifference, ...]:
    try:
        first, second = _parse(before), _parse(after)
    except SchemaError:
        return ()
    if isinstance(first, AvroSchema) and isinstance(second, AvroSchema):
        return describe_avro_differences(first, second)
    if isinstance(first, JsonSchema) and isinstance(second, JsonSchema):
        return describe_json_schema_differences(first, second)
    assert isinstance(first, ProtobufFile)
    assert isinstance(second, ProtobufFile)
    return describe_protobuf_differences(first, second)


def _describe_unknown_difference(before: SchemaContent, after: SchemaContent) -> SchemaDifference:
    invalid = [name for name, content in (("old", before), ("new", after)) if not _is_valid(content)]
    note = f"; the {' and the '.join(invalid)} text is not a valid schema" if invalid else ""
    return SchemaDifference(DifferenceKind.TEXT_CHANGED, "", f"schema: text changed{note}")


def _is_valid(content: SchemaContent) -> bool:
    try:
        _parse(content)
    except SchemaError:
        return False
    return True


def _compare_references(
    before: tuple[SchemaReference, ...], after: tuple[SchemaReference, ...]
) -> Iterator[SchemaDifference]:
    first, second = _index_targets(before), _index_targets(after)
    for name in sorted(first.keys() | second.keys()):
        old, new = first.get(name), second.get(name)
        if old == new:
            continue
        if old is None:
            kind, message = DifferenceKind.REFERENCE_ADDED, f"reference {name} added ({new})"
        elif new is None:
            kind, message = DifferenceKind.REFERENCE_REMOVED, f"reference {name} removed ({old})"
        else:
            kind, message = DifferenceKind.REFERENCE_CHANGED, f"reference {name}: changed from {old} to {new}"
        yield SchemaDifference(kind, name, message, old, new)


def _index_targets(references: tuple[SchemaReference, ...]) -> dict[str, str]:
    """For each reference name, return text that names the subject and version that the reference refers to.

    If several references have the same name, the text lists all of them.
    """
    targets: dict[str, str] = {}
    for reference in sorted(set(references), key=lambda item: (item.name, item.subject, item.version)):
        target = f"subject {reference.subject}, version {reference.version}"
        name = reference.name
        targets[name] = f"{targets[name]}; {target}" if name in targets else target
    return targets
