"""The page of the catalog in a real browser: search, links, hostile names, and no scripts."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.report.catalog.catalog import Catalog, CatalogEntry, sort_entries
from kdeclare.report.catalog.catalog_page import render_catalog_page
from tests.browser.pictures import Picture, take_picture
from tests.browser.sample_audits import HOSTILE
from tests.browser.watched import WatchedPage, find_weak_texts

pytestmark = pytest.mark.browser

_PURPOSE = "One record per change, keyed by the id of the order; read by the search and the data platform."


def make_entry(kind: str, name: str, owner: str | None, description: str = "") -> CatalogEntry:
    place = SourcePosition(f"/shop/manifests/{name}.yaml", 4, 9)
    return CatalogEntry(f"{kind}/{name}", kind, name, owner, description, {"tier": "gold"}, (), place)


CATALOG = Catalog(
    "shop",
    "production",
    (),
    sort_entries(
        [
            *(make_entry("Topic", name, "checkout", _PURPOSE) for name in ("carts", "orders", "orders.dlq")),
            make_entry("Acl", "checkout", "checkout", "What the checkout service may read and write."),
            *(make_entry("Topic", name, "billing", _PURPOSE) for name in ("invoices", "payments", "refunds")),
            make_entry("Schema", "payments-value", "billing"),
            make_entry("Topic", "legacy.events.of.2017.with.a.long.name.that.has.no.spaces.at.all", None),
        ]
    ),
)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("catalog") / "catalog.html"
    file.write_text(render_catalog_page(CATALOG, Path("/shop/site")), encoding="utf-8")
    return file


def test_catalog_page_lists_resources_by_owner_with_links(desktop: WatchedPage, page_file: Path) -> None:
    page = desktop.open(page_file)
    assert page.locator("h1").inner_text() == "9 resources, 2 owners, 1 without an owner"
    assert page.locator("h2").all_inner_texts() == ["billing", "checkout", "No owner"]
    assert page.locator(".owner tbody tr").count() == 9
    link = page.locator("tr", has_text="refunds").locator("a")
    assert link.get_attribute("href") == "../manifests/refunds.yaml"


def test_search_hides_rows_and_owners(desktop: WatchedPage, page_file: Path) -> None:
    page = desktop.open(page_file)
    page.keyboard.press("/")
    page.keyboard.type("Orders topic")
    assert page.locator(".owner tbody tr:visible .c-name").all_inner_texts() == ["orders", "orders.dlq"]
    assert page.locator("h2:visible").all_inner_texts() == ["checkout"]
    expect(page.locator("#count")).to_have_text("2 resources of 9")
    page.locator("#q").fill("billing")
    assert page.locator(".owner tbody tr:visible").count() == 4
    page.locator("#q").fill("")
    assert page.locator(".owner tbody tr:visible").count() == 9


def test_catalog_is_complete_without_scripts(scriptless_window: Page, page_file: Path) -> None:
    page = scriptless_window
    page.goto(page_file.as_uri())
    assert page.locator(".owner tbody tr").count() == 9
    assert page.locator(".owner tbody tr").first.is_visible()
    assert not page.locator("#q").is_visible()


def test_hostile_texts_are_shown_as_text(desktop: WatchedPage, tmp_path: Path) -> None:
    entries = [
        CatalogEntry(
            f"Topic/{text}", "Topic", text, text, text, {text: text}, (), SourcePosition(f"{text}.yaml", 1, 1)
        )
        for text in HOSTILE
    ]
    file = tmp_path / "hostile.html"
    catalog = Catalog(HOSTILE[0], HOSTILE[1], (), sort_entries(entries))
    file.write_text(render_catalog_page(catalog, tmp_path), encoding="utf-8")
    page = desktop.open(file)
    assert page.locator(".owner tbody tr").count() == len(HOSTILE)
    assert page.locator("img, iframe, .owner script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_enough_contrast(
    desktop: WatchedPage, page_file: Path, scheme: Literal["light", "dark"]
) -> None:
    desktop.page.emulate_media(color_scheme=scheme)
    assert find_weak_texts(desktop.open(page_file)) == []


@pytest.mark.parametrize(
    "picture",
    [
        Picture("catalog", 1280, 900),
        Picture("catalog-dark", 1280, 900, "dark"),
        Picture("catalog-phone", 390, 844),
    ],
    ids=lambda picture: picture.name,
)
def test_catalog_fits_each_window(desktop: WatchedPage, page_file: Path, picture: Picture) -> None:
    take_picture(desktop, page_file, picture)


def test_nothing_is_cut_off_in_print(desktop: WatchedPage, page_file: Path) -> None:
    desktop.resize(794, 1123)
    page = desktop.open(page_file)
    page.emulate_media(media="print")
    assert not page.locator("#q").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 794
    cut = page.locator(".owner th, .owner td").evaluate_all(
        "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)"
    )
    assert cut == []
