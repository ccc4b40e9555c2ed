"""The installed providers, for people and for scripts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import publish_schemas
from kdeclare.core.frozen import dataclass
from kdeclare.report.elements.terminal import PLAIN, Column, Cut, Style, table
from kdeclare.report.elements.values import clean

_COLUMNS = (
    *map(Column, ("PROVIDER", "VERSION", "APIVERSION")),
    *(Column(title, cut=Cut.END) for title in ("KINDS", "FROM")),
)


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """One installed provider.

    api_version, kinds: None and empty where it cannot be loaded.
    """

    schema_name = "ProviderDocument"

    name: str
    version: Annotated[str, Field(description="Of its distribution.")]
    distribution: Annotated[str, Field(description="The package that brings it; may be empty.")]
    reference: Annotated[str, Field(description="module:attribute", serialization_alias="entry_point")]
    api_version: Annotated[
        str | None, Field(description="'apiVersion' of its manifests; null where it cannot be loaded.")
    ] = None
    kinds: tuple[str, ...] = ()
    problem: Annotated[str | None, Field(description="Why it cannot be used.")] = None


@dataclass(frozen=True, slots=True)
class ProviderList:
    """All installed providers, by name."""

    providers: tuple[ProviderStatus, ...]


def providers_text(
    providers: Sequence[ProviderStatus], style: Style = PLAIN, width: int | None = None
) -> str:
    """Render a table; below it, why some cannot be used."""
    rows = [
        (
            clean(item.name),
            clean(item.version),
            clean(item.api_version or ""),
            clean(", ".join(item.kinds)),
            clean(f"{item.distribution} ({item.reference})"),
        )
        for item in providers
    ]
    reasons = dict.fromkeys(item.problem for item in providers if item.problem)
    problems = [f"\nerror: {clean(reason)}" for reason in reasons]
    return "\n".join([*table(_COLUMNS, rows, width, style), *problems]) + "\n"


def providers_schemas() -> Mapping[str, dict[str, Any]]:
    """By name; see `publish_schemas`."""
    return publish_schemas({"providers": ProviderList})
