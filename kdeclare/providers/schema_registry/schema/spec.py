"""The ``spec`` of a Schema manifest."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_int_or_none,
    as_list,
    as_object,
    as_text,
    as_text_or_none,
    as_texts,
)
from kdeclare.core.resources.declared_absence import (
    CONTRADICTING_LIFECYCLE,
    ResourceState,
    is_declared_absent,
)
from kdeclare.core.resources.file_text import FileText
from kdeclare.core.resources.ignored_changes import IgnoredPaths, check_ignored_paths
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.resources.raw_text import RawText
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaType
from kdeclare.providers.schema_registry.names import LevelName, SchemaTypeName
from kdeclare.providers.schema_registry.schema.content import find_problems
from kdeclare.providers.schema_registry.schemas.problems import SchemaProblem

SCHEMA = "Schema"
"""The name of the kind, and the type of its objects in footprints and snapshots."""

TEXT, LEVEL = "schema", "compatibility"
"""The paths of the schema and of the compatibility level in plans."""

_CLOSED = ConfigDict(extra="forbid", frozen=True, defer_build=True)
OnDelete = Literal["keep", "soft", "hard"]


class ReferenceSpec(BaseModel):
    """A reference to a schema of another subject in the same registry."""

    model_config = _CLOSED
    name: Annotated[
        str,
        Field(
            min_length=1,
            description="The name that the schema uses: a full name in Avro, an import path in Protobuf, a "
            "URI in JSON Schema.",
        ),
    ]
    subject: Annotated[str, Field(min_length=1, description="The referenced subject.")]
    version: Annotated[
        StrictInt | Literal["latest"],
        Field(
            description="The version of the subject: a number, or latest (the default). If the latest "
            "version changes, the schema is registered again with a reference to the new version."
        ),
    ] = "latest"


class SchemaLifecycle(BaseModel):
    """The lifecycle options of a subject."""

    model_config = _CLOSED
    preventDestroy: Annotated[  # noqa: N815
        bool, Field(description="Whether to refuse to delete the subject.")
    ] = False
    adopt: Annotated[
        bool,
        Field(
            description="Whether to adopt and change a subject that differs from the manifest and was never "
            "applied."
        ),
    ] = False
    ignoreChanges: IgnoredPaths = ()  # noqa: N815
    state: ResourceState = "present"


class SchemaSpec(BaseModel):
    """The ``spec`` of a Schema manifest."""

    model_config = _CLOSED
    registry: Annotated[
        str | None,
        Field(
            description="The name of the schema registry in the environment. It can be omitted if the "
            "environment has only one."
        ),
    ] = None
    subject: Annotated[
        str | None, Field(min_length=1, description="The subject. By default, it is metadata.name.")
    ] = None
    type: Annotated[SchemaTypeName, Field(description="The language of the schema; AVRO by default.")] = (
        "AVRO"
    )
    file: Annotated[
        FileText | None,
        RawText(),
        Field(description="A file with the schema, relative to the folder of this manifest."),
    ] = None
    schema_: Annotated[
        str | dict[str, Any] | list[Any] | None,
        Field(
            alias="schema",
            description="The schema itself, instead of 'file': a string or, for Avro and JSON Schema, a "
            "YAML mapping or list.",
        ),
    ] = None
    references: Annotated[
        list[ReferenceSpec], Field(description="The schemas of other subjects that this schema uses.")
    ] = []
    compatibility: Annotated[
        LevelName | None,
        Field(
            description="The compatibility level of the subject. Null declares that the subject has no level "
            "of its own. If the field is missing, kdeclare does not manage the level."
        ),
    ] = None
    onDelete: Annotated[  # noqa: N815
        OnDelete,
        Field(
            description="What to do with the subject if this manifest is deleted, or if lifecycle.state is "
            "absent: keep it, delete it softly (the default; its schemas can still be read by their ids), or "
            "delete it for good (hard)."
        ),
    ] = "soft"
    lifecycle: Annotated[
        SchemaLifecycle,
        Field(
            description="Protection from deletion, adoption of an existing subject, or deletion of the "
            "subject."
        ),
    ] = SchemaLifecycle()


@dataclass(frozen=True, slots=True)
class DeclaredReference:
    """A declared reference. version: the version of the subject; None for the latest version."""

    name: str
    subject: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class DeclaredLevel:
    """A declared compatibility level. None declares that the subject has no level of its own."""

    level: CompatibilityLevel | None


@dataclass(frozen=True, slots=True)
class SchemaBody:
    """The declared latest version of a subject.

    registry: the name of the registry; None for the only registry of the environment.
    text: the text of the schema, as it is registered.
    compatibility: None if the manifest does not declare a level.
    file: the file that contains the text; None if the manifest contains the text.
    ignored: the paths of fields that kdeclare leaves alone once the subject exists. If the schema is ignored,
        so are its type and its references.
    is_absent: whether the manifest declares that the subject must not exist. Such a manifest need not contain
        a schema.
    """

    registry: str | None
    subject: str
    type: SchemaType
    text: str
    references: tuple[DeclaredReference, ...] = ()
    compatibility: DeclaredLevel | None = None
    on_delete: OnDelete = "soft"
    prevent_destroy: bool = False
    adopt: bool = False
    file: str | None = None
    ignored: tuple[str, ...] = ()
    is_absent: bool = False


def parse_schema_spec(name: str, spec: SchemaSpec) -> tuple[SchemaBody, tuple[SpecProblem, ...]]:
    """Return the body of a spec, and the problems of the schema that can be found without the registry."""
    resource = f"{SCHEMA}/{name}"
    type_ = SchemaType(spec.type)
    references = tuple(
        DeclaredReference(item.name, item.subject, None if item.version == "latest" else item.version)
        for item in spec.references
    )
    text = _get_text(spec)
    is_level_declared = "compatibility" in spec.model_fields_set
    level = CompatibilityLevel(spec.compatibility) if spec.compatibility is not None else None
    body = SchemaBody(
        spec.registry,
        spec.subject if spec.subject is not None else name,
        type_,
        text or "",
        references,
        DeclaredLevel(level) if is_level_declared else None,
        spec.onDelete,
        spec.lifecycle.preventDestroy,
        spec.lifecycle.adopt,
        spec.file.path if spec.file is not None else None,
        tuple(spec.lifecycle.ignoreChanges),
        is_declared_absent(spec),
    )
    problems = (
        *_check_source(resource, spec, text),
        *_check_references(resource, body),
        *check_ignored_paths(resource, body.ignored, (TEXT, LEVEL)),
    )
    return body, problems


def dump_schema_body(body: SchemaBody) -> JsonObject:
    """Return the body as plain data, without default values."""
    references: list[JsonValue] = [
        {"name": item.name, "subject": item.subject, "version": item.version} for item in body.references
    ]
    optional_values: dict[str, JsonValue] = {
        "registry": body.registry,
        "references": references or None,
        "compatibility": None if body.compatibility is None else {"level": body.compatibility.level},
        "onDelete": None if body.on_delete == "soft" else body.on_delete,
        "preventDestroy": body.prevent_destroy or None,
        "adopt": body.adopt or None,
        "file": body.file,
        "ignoreChanges": list(body.ignored) or None,
    }
    document: dict[str, JsonValue] = {"subject": body.subject, "type": body.type.value, "text": body.text}
    return document | {key: value for key, value in optional_values.items() if value is not None}


def bind_schema_body(json_object: JsonObject) -> SchemaBody:
    """Convert the result of `dump_schema_body` back to a body."""
    references = tuple(
        DeclaredReference(as_text(item["name"]), as_text(item["subject"]), as_int_or_none(item["version"]))
        for item in map(as_object, as_list(json_object.get("references", ())))
    )
    compatibility = json_object.get("compatibility")
    level = as_text_or_none(as_object(compatibility)["level"]) if compatibility is not None else None
    return SchemaBody(
        as_text_or_none(json_object.get("registry")),
        as_text(json_object["subject"]),
        SchemaType(as_text(json_object["type"])),
        as_text(json_object["text"]),
        references,
        None
        if compatibility is None
        else DeclaredLevel(None if level is None else CompatibilityLevel(level)),
        parse_on_delete(as_text(json_object.get("onDelete", "soft"))),
        as_bool(json_object.get("preventDestroy", False)),
        as_bool(json_object.get("adopt", False)),
        as_text_or_none(json_object.get("file")),
        as_texts(json_object.get("ignoreChanges", ())),
    )


def parse_on_delete(text: str) -> OnDelete:
    """Check that a string is a value of ``onDelete``, and return it. Raises ValueError if it is not."""
    if text == "keep":
        return "keep"
    if text == "hard":
        return "hard"
    if text == "soft":
        return "soft"
    raise ValueError(f"'{text}' is not a value of onDelete")


def _get_text(spec: SchemaSpec) -> str | None:
    """Return the text of the schema. A YAML mapping or list becomes JSON with the keys in the same order."""
    if spec.file is not None:
        return spec.file.text
    if spec.schema_ is None or isinstance(spec.schema_, str):
        return None if spec.schema_ is None else str(spec.schema_)
    return json.dumps(spec.schema_, ensure_ascii=False)


def _check_source(resource: str, spec: SchemaSpec, text: str | None) -> Iterator[SpecProblem]:
    if is_declared_absent(spec):
        if spec.onDelete == "keep":
            yield _build_problem(
                ("onDelete",),
                resource,
                CONTRADICTING_LIFECYCLE,
                "Deletion is both declared and prevented",
                f"{resource} has 'lifecycle.state: absent' and 'onDelete: keep'.",
                "Remove 'onDelete' to delete the subject, or remove 'lifecycle.state' to keep the subject.",
            )
        if spec.file is None and spec.schema_ is None:
            return
    if (spec.file is None) is (spec.schema_ is None):
        yield _build_problem(
            ("schema",) if spec.schema_ is not None else (),
            resource,
            "schema-source",
            "Schema is declared twice" if spec.schema_ is not None else "No schema declared",
            f"{resource} declares both 'file' and 'schema'."
            if spec.schema_ is not None
            else f"{resource} declares neither 'file' nor 'schema'.",
            "Declare 'file' with the path of the schema, or 'schema' with the schema itself.",
        )
        return
    if spec.type == "PROTOBUF" and not isinstance(spec.schema_, str | None):
        yield _build_problem(
            ("schema",),
            resource,
            "schema-source",
            "Schema is not a string",
            "A Protobuf schema must be a string, not a mapping or a list.",
            "Write the schema as a block, after 'schema: |'.",
        )
        return
    names = [item.name for item in spec.references]
    for problem in find_problems(SchemaType(spec.type), text or "", names):
        yield _locate_problem(resource, spec, text or "", problem)


def _locate_problem(resource: str, spec: SchemaSpec, text: str, problem: SchemaProblem) -> SpecProblem:
    """Return a problem of the schema with a position in the file or, without a file, in the manifest."""
    where = f" (at {problem.path})" if problem.path else ""
    diagnostic = _build_diagnostic(
        resource,
        "invalid-schema",
        "Schema is not valid",
        f"{problem.message.rstrip('.')}{where}.",
        "Correct the schema. The registry would refuse it.",
    )
    line, column = problem.line, problem.column or 1
    if spec.file is not None:
        place = SourcePosition(spec.file.path, line or 1, column if line else 1)
        return SpecProblem(("file",), replace(diagnostic, place=place))
    if not isinstance(spec.schema_, str):
        return SpecProblem(("schema", *_split_path(problem.path)), diagnostic)
    offset = sum(len(item) for item in text.splitlines(keepends=True)[: line - 1]) + column - 1 if line else 0
    return SpecProblem(("schema",), diagnostic, offset)


def _split_path(path: str) -> SpecPath:
    """Return the steps of a path such as ``fields[2].type``.

    The result ends before the first step that is neither a key nor an index.
    """
    steps: list[str | int] = []
    for part in path.replace("[", ".[").split("."):
        if part.startswith("[") and part[1:-1].isdecimal():
            steps.append(int(part[1:-1]))
        elif part and not part.startswith("["):
            steps.append(part)
        elif part:
            break
    return tuple(steps)


def _check_references(resource: str, body: SchemaBody) -> Iterator[SpecProblem]:
    names: set[str] = set()
    for index, item in enumerate(body.references):
        if item.name in names:
            yield _build_problem(
                ("references", index, "name"),
                resource,
                "duplicate-reference",
                "Reference declared twice",
                f"{resource} declares two references with the name '{item.name}'.",
                "Remove one of the two references.",
            )
        names.add(item.name)
        if item.subject == body.subject:
            yield _build_problem(
                ("references", index, "subject"),
                resource,
                "reference-to-itself",
                "Schema refers to its own subject",
                f"The reference '{item.name}' of {resource} refers to its own subject '{item.subject}'.",
                "Register the referenced schema under another subject.",
            )
        if item.version is not None and item.version < 1:
            yield _build_problem(
                ("references", index, "version"),
                resource,
                "bad-value",
                "Value not allowed",
                f"'version' is {item.version}, but versions are numbered from 1.",
                "Write the number of a version, or latest.",
            )


def _build_problem(
    path: SpecPath, resource: str, code: str, summary: str, detail: str, hint: str
) -> SpecProblem:
    return SpecProblem(path, _build_diagnostic(resource, code, summary, detail, hint))


def _build_diagnostic(resource: str, code: str, summary: str, detail: str, hint: str) -> Diagnostic:
    return error(code, summary, detail, hint=hint, resource=resource)
