"""Normalize, fingerprint and compare schemas without the contents of their references.

Every command imports this module, but only commands on schemas need the parsers of the three languages, whose
import takes 10 ms. Therefore, the parsers are imported inside the functions.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache

from kdeclare.core.jsontypes import hash_json
from kdeclare.providers.schema_registry.client.port import SchemaContent, SchemaReference, SchemaType
from kdeclare.providers.schema_registry.schemas.differences import SchemaDifference
from kdeclare.providers.schema_registry.schemas.problems import SchemaError, SchemaProblem

_FINGERPRINT_LENGTH = 16
_ANY_REFERENCE = (SchemaReference("", "", 0),)
"""Placeholder references. If a schema has these references, the parser accepts any unknown type."""


def find_problems(type_: SchemaType, text: str, references: Collection[str]) -> tuple[SchemaProblem, ...]:
    """Return the problems in a schema's text. references: the names of the schema's references."""
    from kdeclare.providers.schema_registry.schemas.comparison import parse_schema

    content = SchemaContent(type_, text, tuple(SchemaReference(name, "", 0) for name in references))
    try:
        parse_schema(content)
    except SchemaError as e:
        return e.problems
    return ()


# A plan normalizes the same texts several times. A cache that is smaller than the plan would have no effect.
@lru_cache(maxsize=1 << 16)
def normalize_text(type_: SchemaType, text: str) -> str:
    """Return the text in the common layout, so that equal schemas have equal texts.

    If the text is not a valid schema, return it unchanged.
    """
    from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
    from kdeclare.providers.schema_registry.schemas.layout import format_layout

    try:
        return "\n".join(format_layout(parse_schema(build_open_content(type_, text))))
    except SchemaError:
        return text


def compute_fingerprint(type_: SchemaType, text: str, references: Iterable[str]) -> str:
    """Return a hash that is equal for equal schemas with equal references.

    references: the references in the form of `format_reference`.
    """
    return hash_json([type_.value, normalize_text(type_, text), sorted(references)])[:_FINGERPRINT_LENGTH]


def format_reference(name: str, subject: str, fingerprint: str) -> str:
    """Return a reference and the hash of its content as one string, which views and changes show."""
    return f"{name} = {subject} @{fingerprint}"


def list_differences(type_: SchemaType, before: str, after: str) -> tuple[SchemaDifference, ...]:
    """Return the differences between two schemas of the same language."""
    from kdeclare.providers.schema_registry.schemas.comparison import describe_differences

    return describe_differences(build_open_content(type_, before), build_open_content(type_, after))


def list_undocumented(type_: SchemaType, text: str) -> list[str]:
    """Return the paths of all undocumented parts of a schema; empty if the schema is not valid."""
    from kdeclare.providers.schema_registry.schemas.documentation import find_undocumented_parts

    try:
        return [part.path for part in find_undocumented_parts(build_open_content(type_, text))]
    except SchemaError:
        return []


def build_open_content(type_: SchemaType, text: str) -> SchemaContent:
    """Return a schema with placeholder references, so that its unknown types count as defined elsewhere."""
    return SchemaContent(type_, text, _ANY_REFERENCE)


def summarize_schema(type_: SchemaType, text: str) -> str:
    """Return a few words that describe a schema: its name and its size."""
    from kdeclare.providers.schema_registry.schemas.summary import summarize_content

    return summarize_content(build_open_content(type_, text))
