"""Drift: how the live state differs from what was applied last."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.documents import ResourceText
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue


class DriftKind(StrEnum):
    """What happened to an applied resource outside kdeclare."""

    CHANGED = "changed"
    MISSING = "missing"
    RECREATED = "recreated"


@dataclass(frozen=True, slots=True)
class DriftedField:
    """A field whose live value differs from the value that was applied last."""

    path: str
    applied: Annotated[
        JsonValue,
        Field(
            description="The value that was applied last. Null if the field was not set, or if the state "
            "does not contain the value."
        ),
    ]
    live: Annotated[JsonValue, Field(description="The current value. Null if the field is not set.")]


@dataclass(frozen=True, slots=True)
class ResourceDrift:
    """A resource that was changed, deleted, or deleted and created again after kdeclare last applied it."""

    schema_name = "ResourceDriftDocument"

    id: ResourceText
    drift: DriftKind
    fields: tuple[DriftedField, ...]
    source: Annotated[
        str | None, Field(description="The position of the manifest; null if no manifest declares it.")
    ] = None


@dataclass(frozen=True, slots=True)
class DriftResult:
    """The drift of all owned resources in scope.

    compared: the number of owned resources that were compared.
    diagnostics: errors about invalid options, and the reasons why resources could not be compared.
    """

    resources: tuple[ResourceDrift, ...]
    compared: int
    diagnostics: tuple[Diagnostic, ...] = ()
