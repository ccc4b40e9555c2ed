"""The result of ``kdeclare convert``: the JSON document, and the text about inexact conversions."""

from collections.abc import Iterator, Mapping
from typing import Any

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.documents import PathText, ResourceText, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ConvertedManifest:
    """A manifest that ``kdeclare convert`` created from a file of another tool.

    file: the path of the manifest below the output folder.
    source: where the file of the other tool declares the resource.
    text: the YAML of the manifest.
    """

    resource: ResourceText
    file: PathText
    source: SourcePosition
    text: str


@dataclass(frozen=True, slots=True)
class ConversionGap:
    """An object or field of the source file that could not be converted exactly.

    place: the position in the source file.
    subject: the name of the object and the field.
    reason: why it could not be converted exactly.
    """

    place: SourcePosition
    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConversionView:
    """The result of a conversion. variables: the environment variables that the manifests refer to."""

    source_format: str
    manifests: tuple[ConvertedManifest, ...]
    gaps: tuple[ConversionGap, ...]
    variables: tuple[str, ...]


def build_conversion_schemas() -> Mapping[str, dict[str, Any]]:
    """Return the JSON Schema of ``kdeclare convert``, by document name; see `publish_schemas`."""
    return publish_schemas({"conversion": ConversionView})


def render_gaps(view: ConversionView) -> Iterator[str]:
    """Yield a line for each item that could not be converted exactly, in the order of the files."""
    for gap in view.gaps:
        yield f"{gap.place}: {gap.subject}: {gap.reason}"
