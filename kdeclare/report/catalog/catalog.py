"""The catalog of a project or a fleet: what the manifests declare, who owns it, and what it is for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.documents import ResourceText, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.report.elements.markdown_escape import escape_code, escape_prose
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, sanitize_for_terminal

NO_OWNER = "No owner"
"""The heading of resources that have no owner."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A declared resource.

    clusters: the clusters of the fleet that have the resource, in the order of the fleet file. Empty in the
        catalog of a project.
    place: the position of the name in the manifest; null if the position is not known.
    """

    resource: ResourceText
    kind: str
    name: str
    owner: Annotated[str | None, Field(description="The value of the label 'team'; null if there is none.")]
    description: Annotated[str, Field(description="What the resource is for; empty if not stated.")]
    labels: Mapping[str, str]
    clusters: tuple[str, ...]
    place: SourcePosition | None


@dataclass(frozen=True, slots=True)
class Catalog:
    """The resources that the manifests of a project or a fleet declare.

    entries: sorted by owner, kind and name. Resources without an owner come last.
    """

    name: Annotated[str, Field(description="The name of the project or the fleet.")]
    env: Annotated[str | None, Field(description="The environment of the project; null for a fleet.")]
    clusters: Annotated[tuple[str, ...], Field(description="The clusters of the fleet; empty for a project.")]
    entries: tuple[CatalogEntry, ...]

    @property
    def target(self) -> str:
        """The name of the project and its environment, or of the fleet. The text is safe to print."""
        return sanitize_for_terminal(f"{self.name}/{self.env}" if self.env is not None else self.name)


def build_catalog_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of ``kdeclare catalog``, by document name; see `publish_schemas`."""
    return publish_schemas({"catalog": Catalog})


def sort_entries(entries: Iterable[CatalogEntry]) -> tuple[CatalogEntry, ...]:
    """Sort entries by owner, kind and name. Entries without an owner come last."""
    return tuple(sorted(entries, key=lambda e: (e.owner is None, e.owner or "", e.kind, e.name, e.clusters)))


def group_by_owner(catalog: Catalog) -> Iterator[tuple[str | None, list[CatalogEntry]]]:
    """Yield each owner with the entries for the owner's resources. None means that there is no owner."""
    for owner, entries in groupby(catalog.entries, key=lambda entry: entry.owner):
        yield owner, list(entries)


def format_catalog_headline(catalog: Catalog) -> str:
    """Return the number of resources and owners, as a phrase."""
    owners = {entry.owner for entry in catalog.entries if entry.owner is not None}
    without_owner = sum(entry.owner is None for entry in catalog.entries)
    parts = [format_count(len(catalog.entries), "resource")]
    if owners:
        parts.append(format_count(len(owners), "owner"))
    if without_owner:
        parts.append(f"{without_owner:,} without an owner")
    return ", ".join(parts)


def format_clusters(entry: CatalogEntry, catalog: Catalog) -> str:
    """Return the names of the clusters that have a resource; empty if all clusters of the fleet have it."""
    if len(entry.clusters) == len(catalog.clusters):
        return ""
    return sanitize_for_terminal(", ".join(entry.clusters))


def format_place(entry: CatalogEntry) -> str:
    """Return the file and the line of the manifest."""
    return sanitize_for_terminal(f"{entry.place.file}:{entry.place.line}") if entry.place else ""


def render_catalog_text(catalog: Catalog, style: Style = PLAIN) -> str:
    """Render the catalog as text: a block for each owner, with a line for each resource."""
    blocks = [style.bold(f"Catalog of {catalog.target}: {format_catalog_headline(catalog)}.") + "\n"]
    for owner, entries in group_by_owner(catalog):
        title = NO_OWNER if owner is None else sanitize_for_terminal(owner)
        width = max(len(sanitize_for_terminal(entry.resource)) for entry in entries)
        lines = [style.bold(title), *(_render_line(entry, catalog, width, style) for entry in entries)]
        blocks.append("".join(f"{line}\n" for line in lines))
    return "\n".join(blocks)


def _render_line(entry: CatalogEntry, catalog: Catalog, width: int, style: Style) -> str:
    parts = [f"  {sanitize_for_terminal(entry.resource):<{width}}"]
    if entry.description:
        parts.append(sanitize_for_terminal(entry.description))
    if clusters := format_clusters(entry, catalog):
        parts.append(style.dim(f"on {clusters}"))
    if place := format_place(entry):
        parts.append(style.dim(f"({place})"))
    return "  ".join(parts).rstrip()


def render_catalog_markdown(catalog: Catalog) -> str:
    """Render the catalog in Markdown: a table for each owner."""
    blocks = [f"# Catalog of {escape_prose(catalog.target)}\n\n{format_catalog_headline(catalog)}.\n"]
    for owner, entries in group_by_owner(catalog):
        title = NO_OWNER if owner is None else escape_prose(owner)
        blocks.append(f"## {title}\n\n{_render_table(entries, catalog)}")
    return "\n".join(blocks)


def _render_table(entries: Sequence[CatalogEntry], catalog: Catalog) -> str:
    has_clusters = any(format_clusters(entry, catalog) for entry in entries)
    titles = ["Kind", "Name", "Description", *(["Clusters"] if has_clusters else []), "Manifest"]
    rows = [titles, ["---"] * len(titles)]
    for entry in entries:
        clusters = format_clusters(entry, catalog) or "all"
        cells = [escape_prose(entry.kind), escape_code(entry.name), escape_prose(entry.description)]
        cells += [escape_prose(clusters)] if has_clusters else []
        rows.append([*cells, escape_code(format_place(entry)) if entry.place else ""])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
