"""A resource as it is planned, for scripts (docs/schemas/show-manifest.schema.json)."""

from typing import Annotated, Any, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.diagnostics import Place
from kdeclare.engine.planning.planfile_schema import CLOSED, PlaceDocument, ResourceText
from kdeclare.manifests.provenance import EffectiveManifest, Origins, Said
from kdeclare.report.schemas import schemas_of


@with_config(CLOSED)
class SaidDocument(TypedDict):
    """A place where something is said of a field."""

    origin: Literal["manifest", "overlay", "defaults"]
    defaults: Annotated[str | None, Field(description="The name of the Defaults manifest.")]
    place: PlaceDocument


@with_config(CLOSED)
class ReferenceDocument(TypedDict):
    """A reference in a value."""

    name: Annotated[str, Field(description="var.NAME, env.NAME or file.PATH")]
    place: Annotated[PlaceDocument | None, Field(description="Where a variable is defined.")]


@with_config(CLOSED)
class FieldDocument(TypedDict):
    """One field: its value and who says so."""

    path: Annotated[list[str], Field(description="Keys from the document down.")]
    value: Annotated[Any, Field(description="Null where it is secret.")]
    secret: bool
    by_reference: Annotated[
        bool, Field(description="The value is the text as written; what it stands for is not shown.")
    ]
    by: SaidDocument
    over: Annotated[list[SaidDocument], Field(description="Who says something else, in order.")]
    references: list[ReferenceDocument]


@with_config(CLOSED)
class ManifestDocument(TypedDict):
    """A resource as it is planned in an environment."""

    format_version: Literal["1.0"]
    project: str
    env: str
    resource: ResourceText
    place: PlaceDocument
    fields: list[FieldDocument]


def manifest_schemas() -> dict[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of({"show-manifest": ManifestDocument})


def manifest_document(manifest: EffectiveManifest) -> dict[str, Any]:
    """As plain data."""
    return {
        "format_version": "1.0",
        "project": manifest.project,
        "env": manifest.env,
        "resource": str(manifest.resource),
        "place": _place(manifest.place),
        "fields": [_field(item) for item in manifest.fields],
    }


def _field(item: Origins) -> dict[str, Any]:
    return {
        "path": [str(step) for step in item.path],
        "value": item.value,
        "secret": item.secret,
        "by_reference": item.by_reference,
        "by": _said(item.by),
        "over": [_said(said) for said in item.over],
        "references": [
            {"name": reference.name, "place": reference.place and _place(reference.place)}
            for reference in item.references
        ],
    }


def _said(said: Said) -> dict[str, Any]:
    return {"origin": said.origin.value, "defaults": said.name, "place": _place(said.place)}


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}
