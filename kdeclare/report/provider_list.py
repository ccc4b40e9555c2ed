"""The installed providers, for people and for scripts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.installed_providers import InstalledProvider
from kdeclare.engine.planning.planfile_schema import CLOSED
from kdeclare.report.schemas import schemas_of
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.table import Column, Cut, table
from kdeclare.report.values import clean

_COLUMNS = (*map(Column, ("PROVIDER", "VERSION")), Column("KINDS", cut=Cut.END), Column("FROM", cut=Cut.END))


class Listed(Protocol):
    """An installed provider with its kinds, or with the reason why it cannot be loaded."""

    @property
    def installed(self) -> InstalledProvider:
        """Where it comes from."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of kinds."""

    @property
    def problem(self) -> str | None:
        """Why it cannot be loaded."""


@with_config(CLOSED)
class ProviderDocument(TypedDict):
    """One installed provider."""

    name: str
    version: Annotated[str, Field(description="Of its distribution.")]
    distribution: Annotated[str, Field(description="The package that brings it; may be empty.")]
    entry_point: Annotated[str, Field(description="module:attribute")]
    kinds: list[str]
    problem: Annotated[str | None, Field(description="Why it cannot be loaded.")]


@with_config(CLOSED)
class ProvidersDocument(TypedDict):
    """All installed providers, by name."""

    format_version: Literal["1.0"]
    providers: list[ProviderDocument]


def providers_text(providers: Sequence[Listed], style: Style = PLAIN, width: int | None = None) -> str:
    """Render a table; below it, why some cannot be loaded."""
    rows = [
        (
            clean(item.installed.name),
            clean(item.installed.version),
            clean(", ".join(item.kinds)),
            clean(f"{item.installed.distribution} ({item.installed.reference})"),
        )
        for item in providers
    ]
    problems = [f"\nerror: {clean(item.problem)}" for item in providers if item.problem]
    return "\n".join([*table(_COLUMNS, rows, width, style), *problems]) + "\n"


def providers_document(providers: Sequence[Listed]) -> dict[str, Any]:
    """The document of ``--format json``."""
    return {
        "format_version": "1.0",
        "providers": [
            {
                "name": item.installed.name,
                "version": item.installed.version,
                "distribution": item.installed.distribution,
                "entry_point": item.installed.reference,
                "kinds": list(item.kinds),
                "problem": item.problem,
            }
            for item in providers
        ],
    }


def providers_schemas() -> Mapping[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of({"providers": ProvidersDocument})
