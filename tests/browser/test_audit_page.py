"""The page of an audit with 10,000 findings in a real browser."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from kdeclare.fleet.audit_summary import Audit
from kdeclare.fleet.findings import FindingKind
from kdeclare.report.fleet.audit_page import render_audit_page
from kdeclare.report.fleet.audit_wording import sort_worst_first
from tests.browser.sample_audits import (
    HOSTILE,
    NOON,
    NOT_TOLD,
    build_audit_of_every_shape,
    build_big_audit,
    build_quiet_audit,
    build_small_audit,
    build_unused_audit,
)
from tests.browser.watched import WatchedPage, find_truncated_texts, find_weak_texts

pytestmark = pytest.mark.browser

PAGE = 100


@pytest.fixture(scope="module")
def audit() -> Audit:
    return build_big_audit()


@pytest.fixture(scope="module")
def file(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("audit") / "report.html"
    made.write_text(render_audit_page(audit), encoding="utf-8")
    return made


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    made = tmp_path / "report.html"
    made.write_text(render_audit_page(build_small_audit()), encoding="utf-8")
    return made


def test_audit_page_filters_ten_thousand_findings_without_requests(
    desktop: WatchedPage, file: Path, audit: Audit
) -> None:
    assert len(audit.rows) == 10_000
    assert len(audit.summary.clusters) == 200
    assert file.stat().st_size < 5_000_000
    page = desktop.open(file)
    assert desktop.read_count() == "10,000 of 10,000 findings"
    assert len(desktop.list_labels()) == PAGE
    page.locator("#q").fill("retention v17")
    page.locator('[data-sort="resource"]').click()
    assert desktop.requests == [file.as_uri()]


def test_audit_page_shows_hostile_names_as_text(desktop: WatchedPage, file: Path, audit: Audit) -> None:
    page = desktop.open(file)
    for name in HOSTILE:
        page.locator("#q").fill(name.split("\n")[0])
        assert any(row.name == name for row in audit.rows)
        names = page.eval_on_selector_all(
            "tr.finding .c-resource .clip, tr.finding .c-cluster .clip", "all => all.map(one => one.title)"
        )
        assert any(shown in (f"Topic/{name}", name) for shown in names)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


def test_audit_tile_filters_by_kind_of_finding(desktop: WatchedPage, file: Path, audit: Audit) -> None:
    page = desktop.open(file)
    page.locator('[data-kind="missing"]').click()
    expected = audit.summary.found[FindingKind.MISSING]
    assert desktop.read_count() == f"{expected} of 10,000 findings"
    assert {label.split(":")[0] for label in desktop.list_labels()} == {"missing"}
    page.locator('[data-kind="policy"]').click()
    both = expected + audit.summary.found[FindingKind.POLICY]
    assert desktop.read_count() == f"{both} of 10,000 findings"
    assert page.locator(".tile[aria-pressed=true]").count() == 2
    page.locator("#clear").click()
    assert desktop.read_count() == "10,000 of 10,000 findings"


def test_audit_filters_combine_words_and_choices(desktop: WatchedPage, file: Path, audit: Audit) -> None:
    page = desktop.open(file)
    page.locator("#f-team").select_option(label=find_label(page, "team", "payments"))
    page.locator("#f-status").select_option(label=find_label(page, "status", "new"))
    page.locator("#q").fill("RETENTION.MS changed")
    expected = [
        row
        for row in audit.rows
        if row.labels.get("team") == "payments"
        and row.status == "new"
        and row.path == "configs.retention.ms"
        and row.finding is FindingKind.CHANGED
    ]
    assert expected
    assert desktop.read_count() == f"{len(expected)} of 10,000 findings"
    page.locator("#q").fill("no such topic anywhere")
    expect(page.locator(".nothing")).to_have_text("No finding matches these filters.")


def find_label(page: Page, filter_: str, name: str) -> str:
    options = page.locator(f"#f-{filter_} option").all_text_contents()
    return next(option for option in options if re.fullmatch(rf"{re.escape(name)} · [\d,]+", option))


def test_audit_columns_sort_both_ways_by_keyboard(desktop: WatchedPage, file: Path) -> None:
    page = desktop.open(file)
    columns = page.eval_on_selector_all("[data-sort]", "all => all.map(one => one.dataset.sort)")
    assert columns == ["finding", "cluster", "resource", "field", "before", "after", "op", "team", "seen"]
    for column in columns:
        page.locator(f'[data-sort="{column}"]').press("Enter")
        head = page.locator(f"th.c-{column}")
        expect(head).to_have_attribute("aria-sort", "ascending")
        up = desktop.list_labels()
        page.locator(f'[data-sort="{column}"]').press("Enter")
        expect(head).to_have_attribute("aria-sort", "descending")
        assert desktop.list_labels() != up
        assert page.locator("th[aria-sort]:not([aria-sort=none])").locator("visible=true").count() >= 1


def test_audit_columns_sort_times_and_numbers_by_value(
    desktop: WatchedPage, file: Path, audit: Audit
) -> None:
    page = desktop.open(file)
    page.locator('[data-sort="seen"]').click()
    times = page.eval_on_selector_all("tr.finding time", "all => all.map(one => one.dateTime)")
    oldest = sorted(row.first_seen for row in audit.rows)[:PAGE]
    assert times == [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in oldest]
    page.locator('[data-kind="changed"]').click()
    page.locator("#f-key").select_option(label=find_label(page, "key", "retention.bytes"))
    page.locator('[data-sort="before"]').click()
    values = [int(text.split()[0]) for text in desktop.read_cells("before")]
    assert values == sorted(values)
    assert len(set(values)) > 1


def test_audit_pager_moves_between_pages_of_findings(desktop: WatchedPage, file: Path, audit: Audit) -> None:
    page = desktop.open(file)
    first = desktop.list_labels()
    page.get_by_role("button", name="Next").click()
    assert "101–200 of 10,000" in page.locator("#pager").inner_text()
    row = sort_worst_first(audit.rows)[PAGE]
    assert desktop.list_labels()[0].startswith(f"{row.finding.value}: {row.kind}/{row.name} in {row.cluster}")
    page.get_by_role("button", name="Last").click()
    assert page.get_by_role("button", name="Next").is_disabled()
    page.get_by_role("button", name="First").click()
    assert desktop.list_labels() == first


def test_audit_row_opens_by_keyboard_and_marks_differences(desktop: WatchedPage, small_file: Path) -> None:
    page = desktop.open(small_file)
    toggle = page.get_by_role("button", name="changed: Topic/payments in eu-2, cleanup.policy")
    toggle.focus()
    page.keyboard.press("Enter")
    expect(toggle).to_have_attribute("aria-expanded", "true")
    detail = page.locator("tr.detail")
    assert detail.locator("pre").all_inner_texts() == ["delete", "compact,delete"]
    assert detail.locator("del").count() == 0
    assert detail.locator("ins").all_inner_texts() == ["compact,"]
    assert "APPEND" in detail.inner_text()
    assert "team=payments" in detail.inner_text()
    assert "2026-01-19 12:00Z (12 d), known" in detail.inner_text()
    page.keyboard.press("Space")
    expect(detail).to_have_count(0)


def test_audit_row_of_missing_resource_shows_its_body(desktop: WatchedPage, small_file: Path) -> None:
    page = desktop.open(small_file)
    page.locator("tr.finding", has_text="Topic/orders").click()
    detail = page.locator("tr.detail")
    assert "does not exist" in detail.inner_text()
    assert json.loads(detail.locator("pre").inner_text())["partitions"] == 6


def test_audit_heat_map_filters_and_follows_arrow_keys(
    desktop: WatchedPage, file: Path, audit: Audit
) -> None:
    page = desktop.open(file)
    cell = max(audit.summary.heat, key=lambda c: (c.path is not None, c.count))
    name = f"{cell.cluster}, {(cell.path or '').removeprefix('configs.')}: {cell.count} findings"
    page.get_by_role("button", name=name, exact=True).click()
    assert desktop.read_count() == f"{cell.count} of 10,000 findings"
    assert all(cell.cluster in label for label in desktop.list_labels())
    page.locator("#clear").click()
    assert page.locator("#heat tbody button[tabindex='0']").count() == 1
    page.locator("#heat tbody button[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert "(whole resource)" in focused
    page.keyboard.press("Enter")
    assert {text.strip() for text in desktop.read_cells("field")} == {"whole"}
    assert page.locator("#heat td button[aria-pressed=true]").count() == 1


def test_audit_heat_map_sorts_by_column(desktop: WatchedPage, file: Path, audit: Audit) -> None:
    page = desktop.open(file)
    sums = [int(text.replace(",", "")) for text in page.locator("#heat td.sum").all_inner_texts()]
    totals = (sum(c.found.values()) for c in audit.summary.clusters)
    assert sums == sorted(filter(None, totals), reverse=True)
    page.locator("#heat thead button", has_text="min.insync.replicas").press("Enter")
    best = max(
        (c for c in audit.summary.heat if c.path == "configs.min.insync.replicas"), key=lambda c: c.count
    )
    first = page.locator("#heat tbody tr").first
    assert first.get_attribute("data-cluster") == best.cluster


def test_audit_link_restores_filters_and_open_rows(desktop: WatchedPage, file: Path) -> None:
    page = desktop.open(file)
    page.locator('[data-kind="changed"]').click()
    page.locator("#q").fill("payments")
    page.locator('[data-sort="cluster"]').click()
    page.locator('[data-sort="cluster"]').click()
    page.get_by_role("button", name="Next").click()
    page.locator(".toggle").nth(3).press("Enter")
    shown, count, link = desktop.list_labels(), desktop.read_count(), page.evaluate("location.hash")
    page.goto("about:blank")
    page = desktop.open(file, link)
    assert desktop.list_labels() == shown
    assert desktop.read_count() == count
    assert page.locator(".tile[aria-pressed=true]").get_attribute("data-kind") == "changed"
    assert page.locator("#q").input_value() == "payments"
    assert page.locator("tr.detail").count() == 1
    page.evaluate("location.hash = 'kind=missing'")
    expect(page.locator("#chips")).to_have_text(re.compile("^missing"))
    assert {label.split(":")[0] for label in desktop.list_labels()} == {"missing"}


def test_audit_row_opens_for_every_shape_of_finding(desktop: WatchedPage, tmp_path: Path) -> None:
    audit = build_audit_of_every_shape()
    made = tmp_path / "report.html"
    made.write_text(render_audit_page(audit), encoding="utf-8")
    page = desktop.open(made, f"#open={','.join(map(str, range(len(audit.rows))))}")
    left = {item.name: item for item in audit.rows}
    while True:
        details = page.locator("tr.detail").all_inner_texts()
        names = page.locator("tr.finding .c-resource .clip").evaluate_all("all => all.map(one => one.title)")
        for name, detail in zip(names, details, strict=True):
            item = left.pop(name.removeprefix("Topic/"))
            nothing = "does not exist" if item.path is None else "not set"
            one_side = (item.before is None) != (item.after is None)
            assert (nothing in detail) == one_side
            assert ("Live" in detail.splitlines()) == ((item.before, item.after) != (None, None))
            for side in filter(None, (item.before, item.after)):
                assert _format_json(side) in " ".join(detail.split())
            assert "undefined" not in detail
            assert "null" not in detail
        following = page.get_by_role("button", name="Next")
        if following.is_disabled():
            break
        following.click()
    assert not left


def _format_json(value: str) -> str:
    """Format JSON as the page does, on one line."""
    data = json.loads(value)
    return data if isinstance(data, str) else " ".join(json.dumps(data, indent=2).split())


@pytest.mark.parametrize(
    "link", ["#sort=nothing&page=-3&open=x,999999999", "#cluster=gone&kind=%00", "#page=1e9"]
)
def test_audit_page_ignores_invalid_link(desktop: WatchedPage, file: Path, link: str) -> None:
    page = desktop.open(file, link)
    assert page.locator("#rows tbody tr").count() >= 1


def test_audit_page_filters_by_severity_and_shows_manifest(desktop: WatchedPage, small_file: Path) -> None:
    page = desktop.open(small_file)
    expect(page.locator("tr.finding").first.locator(".severity")).to_have_text("high")
    page.locator("#f-severity").select_option(label="high · 3")
    assert desktop.read_count() == "3 of 11 findings"
    page.locator("tr.finding", has_text="Topic/payments").click()
    facts = page.locator("tr.detail dl")
    link = facts.get_by_role("link", name="manifests/payments.yaml:9:7")
    expect(link).to_have_attribute("href", "https://git.example/kafka/blob/main/manifests/payments.yaml#L9")
    expect(facts).to_contain_text(next(row.id for row in build_small_audit().rows if row.source))
    page.get_by_role("button", name="Remove filter severity high").click()
    page.locator("#f-severity").select_option(label="low · 6")
    expect(page.locator("tr.finding .severity")).to_have_count(0)


def test_audit_page_lists_unread_clusters_and_fixed_findings(desktop: WatchedPage, small_file: Path) -> None:
    page = desktop.open(small_file)
    assert page.locator("#unread").inner_text().split("\n")[0] == "1 cluster not read, or only partially read"
    assert "No broker of eu-3:9092 answered in 10 s." in page.locator("#unread").inner_text()
    untold = page.locator("#untold").inner_text().split("\n")
    assert (untold[0], untold[-1]) == ("Checks that could not be completed for 1 cluster", NOT_TOLD)
    changed = page.locator(".tile[data-kind=changed] .tile-meaning").inner_text()
    assert changed == "changed outside kdeclare; 3 of them not checked again"
    assert "Topic/invoices" in page.locator("#fixed").inner_text()
    assert "2 new 7 known 1 fixed 3 earlier findings not checked again" in page.locator("#since").inner_text()
    page.get_by_role("button", name="2 new").click()
    assert desktop.read_count() == "2 of 11 findings"


def test_audit_trend_shows_values_with_arrow_keys(desktop: WatchedPage, small_file: Path) -> None:
    page = desktop.open(small_file)
    page.locator("svg.trend").press("ArrowLeft")
    assert page.locator(".reading time").inner_text() == "2026-01-30 12:00Z"
    assert "unmanaged 2" in page.locator(".reading").inner_text()


@pytest.mark.parametrize(
    ("apart", "ends"),
    [
        (timedelta(days=1), ["2026-01-30", "2026-01-31"]),
        (timedelta(hours=1), ["2026-01-31 11:00Z", "2026-01-31 12:00Z"]),
    ],
)
def test_audit_trend_within_one_day_shows_times(
    desktop: WatchedPage, tmp_path: Path, apart: timedelta, ends: list[str]
) -> None:
    audit = build_small_audit()
    earlier = replace(audit.summary.trend[0], taken_at=NOON - apart)
    file = tmp_path / "report.html"
    file.write_text(
        render_audit_page(replace(audit, summary=replace(audit.summary, trend=(earlier,)))), "utf-8"
    )
    page = desktop.open(file)
    assert page.locator("svg.trend > text").all_text_contents() == ends


def test_audit_page_without_findings_says_so(desktop: WatchedPage, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_audit_page(build_quiet_audit()), encoding="utf-8")
    page = desktop.open(file)
    assert page.locator("h1").inner_text().startswith("No drift in ")
    expect(page.locator(".nothing")).to_have_text("There are no findings.")


@pytest.mark.parametrize(
    ("window", "width"), [("phone", 320), ("phone", 390), ("desktop", 760), ("desktop", 1024)]
)
def test_audit_page_fits_narrow_windows(
    request: pytest.FixtureRequest, file: Path, window: str, width: int
) -> None:
    watched: WatchedPage = request.getfixturevalue(window)
    watched.resize(width, 844)
    page = watched.open(file)
    page.locator("tr.finding").first.click()
    page.locator("tr.finding", has_text="assignments").or_(page.locator("tr.finding").nth(40)).first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    if window == "phone":
        page.locator("#f-sort").select_option("cluster desc")
        assert "sort=cluster&dir=desc" in page.evaluate("location.hash")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_audit_page_text_has_enough_contrast(
    desktop: WatchedPage, small_file: Path, scheme: Literal["light", "dark"]
) -> None:
    """Every text has the contrast that WCAG AA requires, 4.5 to 1."""
    desktop.page.emulate_media(color_scheme=scheme)
    page = desktop.open(small_file, "#kind=changed&open=2")
    assert find_weak_texts(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_audit_page_prints_whole_charts_in_light_colors(
    desktop: WatchedPage, file: Path, scheme: Literal["light", "dark"]
) -> None:
    desktop.resize(1000, 800)
    desktop.page.emulate_media(color_scheme=scheme)
    page = desktop.open(file)
    heat = page.locator("#heat")
    assert heat.evaluate("one => one.scrollHeight > one.clientHeight")
    page.emulate_media(media="print", color_scheme=scheme)
    assert heat.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    for hidden in (".toolbar", ".pager", "#heat-note .screen-only"):
        expect(page.locator(hidden)).to_be_hidden()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"
    assert find_weak_texts(page) == []


def test_audit_page_has_counts_severe_findings_and_findings_in_this_order(
    desktop: WatchedPage, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_audit_page(build_unused_audit()), encoding="utf-8")
    page = desktop.open(file)
    ids = page.locator("main > *").evaluate_all("all => all.filter(one => !one.hidden).map(one => one.id)")
    first = ["tiles", "unread", "severe", "findings", "unused", "fixed-panel", "overview"]
    assert ids[: len(first)] == first
    page.locator("#jumps button", has_text="Clusters and fields").click()
    expect(page.locator("#heat-title")).to_be_in_viewport()


def test_audit_page_lists_severe_findings_with_values(desktop: WatchedPage, small_file: Path) -> None:
    page = desktop.open(small_file)
    expect(page.locator("#severe h2")).to_have_text("2 severe findings")
    missing, changed = page.locator("#severe-list li").all()
    expect(missing).to_contain_text("It was applied before, but is missing from the cluster.")
    expect(changed).to_contain_text("retention.ms 1000 (1 s) → 604800000 (7 d)")
    changed.get_by_role("button", name="Topic/payments in eu-1").click()
    assert desktop.list_labels() == ["changed: Topic/payments in eu-1, retention.ms"]
    expect(page.locator("tr.detail")).to_contain_text("manifests/payments.yaml:9:7")


def test_audit_page_counts_severe_findings_that_are_not_listed(
    desktop: WatchedPage, file: Path, audit: Audit
) -> None:
    page = desktop.open(file)
    high = [row for row in audit.rows if row.severity.value == "high" and row.kind != "Cluster"]
    expect(page.locator("#severe h2")).to_have_text(f"{len(high):,} severe findings")
    page.locator("#severe-list li").last.get_by_role("button").click()
    assert desktop.read_count().startswith(f"{len(high) + 3:,} of ")  # and three clusters


def test_audit_page_has_a_table_of_unused_topics(
    desktop: WatchedPage, scriptless_window: Page, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_audit_page(build_unused_audit()), encoding="utf-8")
    for page in (desktop.page, scriptless_window):
        page.goto(file.as_uri())
        rows = page.locator("#unused tbody tr").all_inner_texts()
        assert [row.split("\t") for row in rows] == [
            ["eu-2", "Topic/old.3", "3,000", "3 MiB", "2024-12-27", "0"],
            ["eu-1", "Topic/old.2", "2,000", "2 MiB", "2024-12-27", "2"],
            ["eu-2", "Topic/old.1", "1,000", "1 MiB", "2024-12-27", "1"],
            ["eu-1", "Topic/empty", "0", "0 B", "never written, first found 2026-01-19", "0"],
        ]
        expect(page.locator("#unused .note")).to_have_text("4 resources, 6 MiB")


def test_audit_page_copies_the_id(chromium: Browser, small_file: Path) -> None:
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(small_file.as_uri())
    page.get_by_role("button", name="Copy the id of the audit").click()
    expect(page.locator("#facts .plain")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "20260131-120000-a1b2"
    expect(page.locator("#facts")).to_contain_text("2026-01-31 12:00:00Z")
    context.close()


def test_audit_page_shows_findings_without_scripts(scriptless_window: Page, small_file: Path) -> None:
    page = scriptless_window
    page.goto(small_file.as_uri())
    rows = page.locator("#static-findings tbody tr")
    assert rows.count() == len(build_small_audit().rows)
    expect(rows.nth(2)).to_contain_text("1000 (1 s) → 604800000 (7 d)")
    expect(page.locator("#static-severe")).to_contain_text("retention.ms 1000 (1 s) → 604800000 (7 d)")
    assert page.locator("main section:visible").count() == 0  # no empty boxes


def test_audit_page_truncates_nothing_at_794_pixels(
    desktop: WatchedPage, small_file: Path, file: Path
) -> None:
    desktop.resize(794, 1123)
    for made in (small_file, file):
        page = desktop.open(made)
        assert find_truncated_texts(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 794


def test_audit_page_prints_rows_of_all_pages_with_messages(desktop: WatchedPage, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    audit = build_big_audit(700, 40)
    file.write_text(render_audit_page(audit), encoding="utf-8")
    desktop.resize(794, 1123)
    page = desktop.open(file)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tr.finding").count() == 500
    expect(page.locator("tr.nothing")).to_have_text("and 200 more findings")
    printed = sort_worst_first(audit.rows)[:500]
    assert page.locator("tr.said").count() == sum(bool(row.message) for row in printed)
    assert find_truncated_texts(page) == []
    assert page.locator(".tile").evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)")
    expect(page.locator("#facts .plain")).to_be_hidden()
    assert page.locator("#heat").evaluate("one => one.scrollWidth <= one.clientWidth + 1")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("tr.finding").count() == PAGE


def test_audit_page_of_unused_topics_fits_phones(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_audit_page(build_unused_audit()), encoding="utf-8")
    for enabled in (True, False):
        context = chromium.new_context(
            viewport={"width": 390, "height": 844}, is_mobile=True, java_script_enabled=enabled
        )
        page = context.new_page()
        page.goto(file.as_uri())
        expect(page.locator("#unused")).to_contain_text("never written, first found 2026-01-19")
        box = page.locator("#unused").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        context.close()
