"""Render the catalog as an HTML page. A script is needed only to search the catalog."""

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.report.catalog.catalog import (
    NO_OWNER,
    Catalog,
    CatalogEntry,
    format_catalog_headline,
    format_clusters,
    format_place,
    group_by_owner,
)
from kdeclare.report.elements.html_page import render_html_page
from kdeclare.report.elements.values import format_count, sanitize_for_terminal
from kdeclare.version import VERSION


def render_catalog_page(catalog: Catalog, folder: Path) -> str:
    """Render the page (about 0.4 kB per resource).

    folder: the folder of the page. The links to manifests are relative to this folder.
    """
    groups = [
        _render_owner(number, owner, entries, catalog, folder)
        for number, (owner, entries) in enumerate(group_by_owner(catalog))
    ]
    return render_html_page(
        "catalog",
        ("catalog.js",),
        f"{catalog.target}: catalog",
        format_catalog_headline(catalog),
        {"version": VERSION},
        {
            "target": escape(f"{catalog.target}: catalog"),
            "owners": _render_owner_links(catalog),
            "groups": "".join(groups),
            "version": escape(VERSION),
        },
    )


def _render_owner_links(catalog: Catalog) -> str:
    links = (
        f'<li><a href="#owner-{number}">{_escape_owner(owner)}</a> '
        f'<span class="dim">{len(entries):,}</span></li>\n'
        for number, (owner, entries) in enumerate(group_by_owner(catalog))
    )
    return "".join(links)


def _escape_owner(owner: str | None) -> str:
    return NO_OWNER if owner is None else _escape(owner)


def _escape(text: str) -> str:
    return escape(sanitize_for_terminal(text))


def _render_owner(
    number: int, owner: str | None, entries: Sequence[CatalogEntry], catalog: Catalog, folder: Path
) -> str:
    has_clusters = any(format_clusters(entry, catalog) for entry in entries)
    titles = ["Kind", "Name", "Description", *(["Clusters"] if has_clusters else []), "Manifest"]
    head = "".join(f'<th scope="col" class="c-{title.lower()}">{title}</th>' for title in titles)
    rows = "".join(_render_row(entry, catalog, folder, has_clusters=has_clusters) for entry in entries)
    id_ = f"owner-{number}"
    return (
        f'<section class="panel owner" id="{id_}" aria-labelledby="{id_}-title">\n'
        f'<div class="panel-head"><h2 id="{id_}-title">{_escape_owner(owner)}</h2>'
        f'<p class="note">{format_count(len(entries), "resource")}</p></div>\n'
        f'<table aria-labelledby="{id_}-title"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody></table>\n</section>\n"
    )


def _render_row(entry: CatalogEntry, catalog: Catalog, folder: Path, *, has_clusters: bool) -> str:
    labels = "".join(
        f'<span class="label">{_escape(key)}={_escape(value)}</span> '
        for key, value in sorted(entry.labels.items())
    )
    description = "<br>".join(filter(None, (_escape(entry.description), labels)))
    clusters = f'<td class="c-clusters">{escape(format_clusters(entry, catalog) or "all")}</td>'
    return (
        f'<tr><td class="c-kind">{_escape(entry.kind)}</td><th scope="row" class="c-name">'
        f'{_escape(entry.name)}</th><td class="c-description">{description}</td>'
        f"{clusters if has_clusters else ''}"
        f'<td class="c-manifest">{_render_link(entry.place, format_place(entry), folder)}</td></tr>\n'
    )


def _render_link(place: SourcePosition | None, text: str, folder: Path) -> str:
    if place is None:
        return ""
    path = Path(os.path.relpath(place.file, folder)).as_posix()
    return f'<a href="{escape(quote(path))}">{escape(text)}</a>'
