"""Spec fields that contain the path of a text file, which the manifest loader replaces with the content."""

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FileText:
    """The content of a text file that a manifest names.

    A manifest contains only the path, which is relative to the folder of the manifest. The manifest loader
    reads the file, so that kinds need no access to files. The loader supports fields of the type `FileText`
    or `FileText | None` at the top level of a spec. Annotate these fields with `RawText` as well, so that a
    path such as ``1.0`` is a string.

    path: the location of the file, as diagnostics show it. text: the content, with all line breaks.
    """

    path: str
    text: str

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a pydantic schema that accepts only `FileText` values. Pydantic itself cannot read files."""
        return core_schema.no_info_plain_validator_function(_require_instance)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON Schema of the path, for editors."""
        return {"type": "string"}


def _require_instance(value: object) -> FileText:
    if isinstance(value, FileText):
        return value
    if isinstance(value, str):
        raise PydanticCustomError("file_text", "The path of a file can be set only in a manifest.")
    raise PydanticCustomError("string_type", "Input should be a valid string")


def list_file_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of the top-level fields of a spec that contain the path of a file."""
    return tuple(
        field.alias or name for name, field in model.model_fields.items() if _accepts_file(field.annotation)
    )


def _accepts_file(annotation: object) -> bool:
    return annotation is FileText or FileText in getattr(annotation, "__args__", ())
