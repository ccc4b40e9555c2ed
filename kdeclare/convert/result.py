"""The result of a conversion: the resources, and what could not be converted, with position and reason."""

from collections.abc import Mapping
from dataclasses import field

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue

SpecPath = tuple[str | int, ...]
"""A path in a spec: keys of mappings and indexes of lists."""


class Reference(str):
    """A value that kdeclare resolves at run time, such as ``${env.NAME}``. Manifests contain it unescaped."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ConvertedResource:
    """A resource that was found in the source, as the content of a manifest.

    place: where the source declares the resource.
    places: where the source declares the fields of the spec, by path in the spec.
    """

    kind: str
    name: str
    spec: Mapping[str, JsonValue]
    place: SourcePosition
    labels: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[SpecPath, SourcePosition] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id of the resource, such as ``Topic/orders``."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of the source that the manifests do not contain, or contain in a different form.

    subject: the object and the field in the source.
    reason: why the part was not converted, or was changed, in full sentences.
    """

    place: SourcePosition
    subject: str
    reason: str
