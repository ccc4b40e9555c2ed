"""The installed providers as text, and as JSON with a schema."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.report.elements.terminal import PLAIN, Column, Elision, Style, render_table
from kdeclare.report.elements.values import sanitize_for_terminal

_COLUMNS = (
    *map(Column, ("PROVIDER", "VERSION", "APIVERSION")),
    *(Column(title, elision=Elision.END) for title in ("KINDS", "FROM")),
)


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """One installed provider.

    If the provider cannot be loaded, ``api_version`` is None and ``kinds`` is empty.
    """

    schema_name = "ProviderDocument"

    name: str
    version: Annotated[str, Field(description="The version of the provider's package.")]
    distribution: Annotated[
        str, Field(description="The Python package that contains the provider; may be empty.")
    ]
    reference: Annotated[str, Field(description="module:attribute", serialization_alias="entry_point")]
    api_version: Annotated[
        str | None,
        Field(description="apiVersion of the provider's manifests; null if the provider cannot be loaded."),
    ] = None
    kinds: tuple[str, ...] = ()
    problem: Annotated[str | None, Field(description="Why the provider cannot be used.")] = None


@dataclass(frozen=True, slots=True)
class ProviderList:
    """All installed providers, sorted by name."""

    providers: tuple[ProviderStatus, ...]


def render_providers_text(
    providers: Sequence[ProviderStatus], style: Style = PLAIN, width: int | None = None
) -> str:
    """Render a table of providers, and the errors of providers that cannot be used."""
    rows = [
        (
            sanitize_for_terminal(item.name),
            sanitize_for_terminal(item.version),
            sanitize_for_terminal(item.api_version or ""),
            sanitize_for_terminal(", ".join(item.kinds)),
            sanitize_for_terminal(f"{item.distribution} ({item.reference})"),
        )
        for item in providers
    ]
    reasons = dict.fromkeys(item.problem for item in providers if item.problem)
    problems = [f"\nerror: {sanitize_for_terminal(reason)}" for reason in reasons]
    return "\n".join([*render_table(_COLUMNS, rows, width, style), *problems]) + "\n"


def build_providers_schemas() -> Mapping[str, dict[str, Any]]:
    """Return the JSON Schema of ``kdeclare providers``, by document name; see `publish_schemas`."""
    return publish_schemas({"providers": ProviderList})
