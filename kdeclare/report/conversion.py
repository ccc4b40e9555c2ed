"""The document of ``kdeclare convert``, and its text."""

from collections.abc import Iterator, Mapping
from typing import Any

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.documents import PathText, ResourceText, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ConvertedManifest:
    """A manifest, and where the other tool's file declares the resource.

    file: the path below the output folder. text: the YAML of the manifest.
    """

    resource: ResourceText
    file: PathText
    source: SourcePosition
    text: str


@dataclass(frozen=True, slots=True)
class ConversionGap:
    """Something that the manifests do not contain, or contain differently. subject: the object and field."""

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
    """Return the schema of the document."""
    return publish_schemas({"conversion": ConversionView})


def render_gaps(view: ConversionView) -> Iterator[str]:
    """Yield a line for each item that could not be converted exactly, in the order of the files."""
    for gap in view.gaps:
        yield f"{gap.place}: {gap.subject}: {gap.reason}"
