"""The pages of a plan and a run in a real browser: realistic ones, 5,000 changes, and hostile names."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.synthetic.plans import big_plan
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.plan_origin import PlanOrigin
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.report.elements.values import sanitize_for_terminal
from kdeclare.report.plan.plan_graph import build_graph_layout, find_critical_path, list_levels
from kdeclare.report.plan.plan_page import build_waterfall, render_plan_page, render_run_page
from kdeclare.report.run.views import RunDetail
from tests.browser.pictures import Picture, take_picture
from tests.browser.sample_audits import HOSTILE
from tests.browser.sample_runs import BUSY, build_real_plan, build_real_run
from tests.browser.watched import WatchedPage, find_truncated_texts, find_weak_texts
from tests.thoroughness import mark_rest
from tests.unit.report.sample_plans import SAMPLES
from tests.unit.report.test_plan_html import make_hostile_plan, make_run
from tests.unit.report.test_text_comparison import compare

pytestmark = pytest.mark.browser

MANY = 5_000
CHUNK = 100
LONG = 320  # more changes than a printed page shows with all fields


@pytest.fixture(scope="module")
def plan() -> Plan:
    return build_real_plan()


@pytest.fixture(scope="module")
def run() -> RunDetail:
    return build_real_run()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def write_page(folder: Path, name: str, text: str) -> Path:
    file = folder / f"{name}.html"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def plan_file(plan: Plan, folder: Path) -> Path:
    return write_page(folder, "plan", render_plan_page(plan))


@pytest.fixture(scope="module")
def run_file(run: RunDetail, folder: Path) -> Path:
    return write_page(folder, "run", render_run_page(run))


@pytest.fixture(scope="module")
def big_sample() -> Plan:
    return big_plan(MANY)


@pytest.fixture(scope="module")
def big_file(big_sample: Plan, folder: Path) -> Path:
    return write_page(folder, "big", render_plan_page(big_sample))


@pytest.fixture(params=["light", "dark"])
def themed_page(request: pytest.FixtureRequest, desktop: WatchedPage) -> Page:
    desktop.page.emulate_media(color_scheme=request.param)
    return desktop.page


def list_resources(page: Page) -> list[str]:
    """Return the listed resources, in order."""
    names: list[str] = page.locator("#list .toggle .clip").evaluate_all("all => all.map(one => one.title)")
    return names


def test_plan_page_lists_risks_first_and_links_to_changes(desktop: WatchedPage, plan_file: Path) -> None:
    page = desktop.open(plan_file)
    assert page.locator("h1").inner_text().startswith("Plan for shop/production on eu-1: 3 to create")
    tags = page.locator("#risky .tag").all_inner_texts()
    assert tags[:3] == ["destructive", "denied", "irreversible"], "a deletion comes first"
    assert set(tags[3:]) <= {"destructive", "disruptive"}
    assert list_resources(page)[:3] == ["Topic/legacy.events", "Topic/search.clicks", "Topic/checkout.orders"]
    page.locator("#risky button", has_text="Topic/checkout.orders").click()
    assert list_resources(page) == ["Topic/checkout.orders"]
    detail = page.locator("#list .detail")
    assert "12" in detail.inner_text()
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


def test_plan_change_opens_by_keyboard_and_marks_differences(desktop: WatchedPage, plan_file: Path) -> None:
    page = desktop.open(plan_file, "#q=checkout.orders")
    toggle = page.locator("#list .toggle").first
    toggle.focus()
    page.keyboard.press("Enter")
    expect(toggle).to_have_attribute("aria-expanded", "true")
    row = page.locator(".detail tr", has_text="cleanup.policy")
    cells = row.locator("td").all_inner_texts()
    cells[0], risk = cells[0].split("\n")
    assert risk == "destructive Compaction removes all records of a key except the latest."
    assert cells == ["cleanup.policy", "APPEND", "[delete]", "[delete, compact] (+compact)"]
    assert row.locator("ins").all_inner_texts() == [", compact"]
    page.keyboard.press("Space")
    expect(page.locator(".detail")).to_have_count(0)


def test_plan_tiles_have_the_counts_of_the_headline(
    desktop: WatchedPage, plan_file: Path, plan: Plan
) -> None:
    """Blocked changes are counted only as blocked."""
    page = desktop.open(plan_file)
    assert plan.summary.blocked == 1
    headline = page.locator("h1").inner_text()
    for value, word, count in (
        ("create", "create", plan.summary.create),
        ("change", "change", plan.summary.update),
        ("delete", "delete", plan.summary.delete),
        ("blocked", "blocked", plan.summary.blocked),
    ):
        tile = page.locator(f'.tile[data-value="{value}"]')
        assert tile.locator(".tile-count").inner_text() == str(count)
        assert not count or re.search(rf"\b{count} (to )?{word}", headline)
        tile.click()
        assert desktop.read_count() == f"{count} of 14 changes"
        tile.click()


def test_plan_page_shows_sections_with_signs(
    desktop: WatchedPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        SectionLine("ann gains <b>keys</b>", sign="+"),
        SectionLine("ben loses keys", sign="-"),
        SectionLine("cat keeps keys", sign="="),
    )
    section = PlanSection("Access", lines, is_for_reviews=True)
    monkeypatch.setattr("kdeclare.report.plan.plan_sections.describe_plan", lambda _: iter([section]))
    page = desktop.open(write_page(folder, "sections", render_plan_page(SAMPLES["create"])))
    panel = page.locator("#sections section")
    expect(panel.locator("h2")).to_have_text("Access")
    expect(panel.locator("li")).to_have_text(
        ["+ ann gains <b>keys</b>", "- ben loses keys", "= cat keeps keys"]
    )
    expect(panel.locator("li.gained")).to_have_count(1)
    expect(panel.locator("li.lost")).to_have_text("- ben loses keys")
    assert find_weak_texts(page) == []
    assert desktop.messages == []


@pytest.fixture
def text_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with long texts side by side."""
    before = [f'"line {n}": "{"text " * (n % 30)}",' for n in range(60)]
    after = [*before[:20], f'"name": "{"x" * 3000}",', *before[20:40], '"line 40": "other",', *before[42:]]
    lines = (SectionLine("Thing/a", is_secondary=True), SectionLine("line 41 removed", sign="-"))
    comparisons = tuple(compare(before, after, f"Thing/{name}") for name in "abcde")
    section = PlanSection("Text changes", lines, is_for_reviews=True, comparisons=comparisons)
    monkeypatch.setattr("kdeclare.report.plan.plan_sections.describe_plan", lambda _: iter([section]))
    return write_page(folder, "texts", render_plan_page(SAMPLES["create"]))


def test_plan_page_shows_texts_side_by_side(desktop: WatchedPage, text_file: Path) -> None:
    page = desktop.open(text_file)
    texts = page.locator("details.texts").first
    expect(texts.locator("> summary")).to_have_text("Thing/a: 3 lines (1 changed, 1 added, 1 removed)")
    row = texts.locator("tr.changed")
    old, new = row.locator("td.old").bounding_box(), row.locator("td.new").bounding_box()
    assert old is not None
    assert new is not None
    assert old["y"] == new["y"]
    assert old["x"] + old["width"] <= new["x"]
    assert row.locator("td.old i").inner_text() == "-"
    assert row.locator("td.new i").inner_text() == "+"
    far = texts.locator("details.far").first
    expect(far.locator("> summary")).to_have_text("17 equal lines")
    expect(far.locator("table")).to_be_hidden()
    far.locator("> summary").press("Enter")
    expect(far.locator("table")).to_be_visible()
    assert page.locator("details.texts[open]").count() == 3


def test_plan_page_shows_texts_without_scripts(scriptless_window: Page, text_file: Path) -> None:
    page = scriptless_window
    page.goto(text_file.as_uri())
    expect(page.locator("#sections h2")).to_have_text("Text changes")
    expect(page.locator("#sections li.lost")).to_have_text("- line 41 removed")
    expect(page.locator("details.texts").first.locator("td.old").first).to_be_visible()


@pytest.mark.parametrize("width", [320, 390, 760])
def test_plan_page_stacks_texts_in_narrow_windows(phone: WatchedPage, text_file: Path, width: int) -> None:
    phone.resize(width, 844)
    page = phone.open(text_file)
    row = page.locator("tr.changed").first
    old, new = row.locator("td.old").bounding_box(), row.locator("td.new").bounding_box()
    assert old is not None
    assert new is not None
    assert old["y"] + old["height"] <= new["y"] + 1
    equal = page.locator("details.texts").first.locator("tr.equal").first
    assert equal.locator("td").evaluate_all("all => all.filter(one => one.offsetWidth).length") == 2
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_plan_page_prints_all_texts(desktop: WatchedPage, text_file: Path) -> None:
    desktop.resize(1000, 800)
    page = desktop.open(text_file)
    page.emulate_media(media="print")
    assert page.locator("details.texts:not([open])").count() == 2
    for box in page.locator(".texts-box").all():
        expect(box).to_be_visible()
        assert box.evaluate("one => one.scrollHeight <= one.clientHeight + 1")
    marked = page.locator("tr.changed del").first.evaluate("one => getComputedStyle(one).textDecorationLine")
    assert marked == "line-through"


def test_plan_page_texts_have_enough_contrast(themed_page: Page, text_file: Path) -> None:
    themed_page.goto(text_file.as_uri())
    for summary in themed_page.locator("details.far > summary").all()[:3]:
        summary.click()
    assert find_weak_texts(themed_page) == []


def test_plan_filters_combine_tiles_choices_and_words(
    desktop: WatchedPage, plan_file: Path, plan: Plan
) -> None:
    page = desktop.open(plan_file)
    page.locator('.tile[data-value="create"]').click()
    assert desktop.read_count() == "3 of 14 changes"
    page.locator('.tile[data-value="create"]').click()
    page.locator("#f-verb").select_option(index=1)
    verb = page.locator("#f-verb option").nth(1).inner_text().split(" · ")[0]
    resources = {str(o.resource) for o in plan.operations if o.verb == verb}
    assert set(list_resources(page)) == resources & {str(change.id) for change in plan.changes}
    page.locator("#clear").click()
    page.locator("#f-kind").select_option(label="BrokerConfig · 1")
    assert list_resources(page) == ["BrokerConfig/cluster-default"]
    page.locator("#clear").click()
    page.locator("#f-risk").select_option(label="blocked · 1")
    assert list_resources(page) == ["Topic/search.clicks"]
    page.locator("#q").fill("RETENTION nowhere")
    expect(page.locator("#list .nothing")).to_have_text("No change matches these filters.")
    page.locator(".chip").first.click()
    page.locator("#q").fill("zstd fees")
    assert list_resources(page) == ["Topic/payments.fees"]


def test_plan_link_restores_filters_and_open_changes(desktop: WatchedPage, plan_file: Path) -> None:
    page = desktop.open(plan_file)
    page.locator('.tile[data-value="destructive"]').click()
    page.locator("#q").fill("payments")
    page.locator("#list .toggle").first.click()
    shown, link = list_resources(page), page.evaluate("location.hash")
    page.goto("about:blank")
    page = desktop.open(plan_file, link)
    assert list_resources(page) == shown
    assert page.locator(".detail").count() == 1
    assert page.locator(".tile[aria-pressed=true]").get_attribute("data-value") == "destructive"
    page.evaluate("location.hash = 'kind=BrokerConfig'")
    expect(page.locator("#chips")).to_contain_text("BrokerConfig")


@pytest.mark.parametrize("link", ["#open=x,999999999&risk=none", "#kind=%00&q=%F0", "#verb="])
def test_plan_page_ignores_invalid_link(desktop: WatchedPage, plan_file: Path, link: str) -> None:
    page = desktop.open(plan_file, link)
    assert page.locator("#list > *").count() >= 1


def test_plan_graph_shows_steps_and_critical_path(desktop: WatchedPage, plan_file: Path, plan: Plan) -> None:
    page = desktop.open(plan_file)
    drawn = build_graph_layout(plan.operations)
    joined = {at for edge in drawn.edges for at in (edge.source, edge.target)}
    apart = [node for at, node in enumerate(drawn.nodes) if at not in joined and not node.critical]
    assert page.locator("#graph .node").count() == len(drawn.nodes) - len(apart)
    assert page.locator("#apart .node").count() == len(apart) == 5
    assert page.locator("#graph .node.critical").count() == sum(node.critical for node in drawn.nodes)
    assert page.locator("#graph .edge").count() == len(drawn.edges)
    steps = len(list_levels(plan.operations))
    assert page.locator("#graph-note").inner_text() == f"{len(plan.operations)} operations in {steps} steps"
    page.locator("#critical").click()
    by_id = {o.id: f"{o.verb} {o.resource}" for o in plan.operations}
    path = [by_id[id_] for id_ in find_critical_path(plan.operations)]
    assert page.locator("#path li").all_inner_texts() == path
    assert page.locator("#drawer li .plain").all_inner_texts() == path


def test_plan_graph_nodes_do_not_overlap(desktop: WatchedPage, plan_file: Path) -> None:
    page = desktop.open(plan_file)
    boxes = page.locator("#graph rect.box").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
    )
    for n, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[n + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_plan_graph_follows_arrow_keys_and_opens_with_enter(desktop: WatchedPage, plan_file: Path) -> None:
    page = desktop.open(plan_file)
    assert page.locator("#graph .node[tabindex='0']").count() == 1
    page.locator("#graph .node[tabindex='0']").focus()
    for _ in page.locator("#graph .step").all():
        page.keyboard.press("ArrowDown")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#graph .node[tabindex='0']").count() == 1
    node = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")
    expect(page.locator("#drawer")).to_be_visible()
    assert node.split(",")[0] in page.locator("#drawer-title").inner_text()
    page.locator("#drawer li .plain").first.press("Enter")
    assert "Runs after" in page.locator("#drawer").inner_text()
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).to_be_hidden()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == node


def test_plan_operation_shows_predecessors_with_reasons(desktop: WatchedPage, plan_file: Path) -> None:
    page = desktop.open(plan_file, "#q=checkout.carts")
    page.locator("#list .toggle").first.click()
    page.locator(".detail .plain", has_text="partitions.reassign").first.click()
    # the lists of the drawer are laid out after their texts exist, so wait for what is shown
    shown = "Runs after throttle.set Moves/topics throttles before a move"
    expect(page.locator("#drawer")).to_contain_text(shown, use_inner_text=True)
    page.locator("#drawer .plain", has_text="Show the change").click()
    expect(page.locator("#drawer")).to_be_hidden()
    assert list_resources(page) == ["Topic/checkout.carts"]


def test_plan_heat_map_counts_replicas_by_broker_and_rack(desktop: WatchedPage, plan_file: Path) -> None:
    page = desktop.open(plan_file)
    heads = page.locator("#heat thead th.rack").all_inner_texts()
    assert heads == ["", "eu-1a", "eu-1b", "eu-1c"]
    assert page.locator("#heat thead th.broker").all_inner_texts() == ["1", "4", "2", "5", "3", "6"]
    name = re.compile(r"^checkout\.prices, broker 2: 3 → 1 replicas, leads 1 → 1$")
    expect(page.get_by_role("button", name=name)).to_have_text("-2")
    totals = {}
    for side in ("before", "after"):
        page.locator(".switch button", has_text=re.compile(f"^{side}$")).click()
        row = page.locator("#heat tr.all td").all_inner_texts()
        totals[side] = sum(int(text.replace(",", "")) for text in row if text)
    page.locator(".switch button", has_text="rack").click()
    assert page.locator("#heat thead th.broker").all_inner_texts() == ["eu-1a", "eu-1b", "eu-1c"]
    page.locator(".switch button", has_text="difference").click()
    changes = page.locator("#heat tr.all td").all_inner_texts()
    assert sum(int(text) for text in changes if text) == totals["after"] - totals["before"]
    page.locator("#heat button[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert desktop.read_count() == "1 of 14 changes"


def test_run_page_shows_times_and_outcomes_of_operations(
    desktop: WatchedPage, run_file: Path, run: RunDetail
) -> None:
    page = desktop.open(run_file)
    assert page.locator(".tile[data-value=failed] .tile-count").inner_text() == "1"
    assert BUSY in page.locator("#risky").inner_text()
    bars = build_waterfall(run).bars
    assert page.locator(".time").count() == len(bars)
    assert page.locator(".time .track i").evaluate_all("all => all.every(one => one.offsetWidth >= 3)")
    inside = "all => all.every(one => one.offsetLeft + one.offsetWidth <= one.parentElement.offsetWidth + 3)"
    assert page.locator(".time .track i").evaluate_all(inside)
    bar = page.locator(".time", has_text="partitions.increase Topic/checkout.orders")
    assert "failed, started after" in (bar.get_attribute("aria-label") or "")
    bar.press("Enter")
    assert BUSY in page.locator("#drawer").inner_text()
    page.keyboard.press("Escape")
    expect(bar).to_be_focused()
    page.locator("#f-status").select_option(label="failed · 1")
    assert list_resources(page) == ["Topic/checkout.orders"]
    expect(page.locator("#graph-panel .node.k-failed")).to_have_count(1)


def test_plan_page_filters_five_thousand_changes_without_requests(
    desktop: WatchedPage, big_file: Path, big_sample: Plan
) -> None:
    assert len(big_sample.changes) == MANY
    assert big_file.stat().st_size < 5_000_000
    page = desktop.open(big_file)
    assert desktop.read_count() == "5,000 of 5,000 changes"
    assert page.locator("#graph-panel .node").count() < 20
    page.locator("#q").fill("ledger refunds zstd v01")
    page.locator("#q").fill("ledger refunds v01")
    expected = [
        c for c in big_sample.changes if re.search(r"ledger\.refunds\.v01|ledger.*refunds.*v01", c.id.name)
    ]
    assert desktop.read_count() == f"{len(expected)} of 5,000 changes"
    assert desktop.requests == [big_file.as_uri()]


@pytest.mark.thorough
def test_plan_rows_are_rendered_on_scroll(desktop: WatchedPage, big_file: Path) -> None:
    page = desktop.open(big_file)
    rows = page.locator("#list .row")
    assert rows.count() <= 3 * CHUNK
    seen = rows.count()
    for _ in range(1000):
        page.locator("#list").evaluate("one => one.scrollTo(0, one.scrollHeight)")
        page.wait_for_timeout(20)  # rows can turn out higher than estimated, so keep scrolling
        now = rows.count()
        assert now - seen <= 5 * CHUNK
        seen = now
        if seen == MANY:
            break
    assert seen == MANY
    assert len(set(list_resources(page))) == MANY
    assert page.locator(".sentinel").count() == 0


@pytest.mark.thorough
def test_plan_graph_node_lists_thousands_of_operations(
    desktop: WatchedPage, big_file: Path, big_sample: Plan
) -> None:
    page = desktop.open(big_file)
    creations = sum(o.verb == "topic.create" for o in big_sample.operations)
    page.locator("#apart summary").click()
    page.get_by_role("button", name=f"topic.create, {creations:,} operations on Topic").click()
    assert page.locator("#drawer-title").inner_text() == f"topic.create × {creations:,}"
    first = page.locator("#drawer li .plain").count()
    assert first <= 3 * CHUNK
    for _ in range(100):
        page.locator("#drawer").evaluate("one => one.scrollTo(0, one.scrollHeight)")
        page.wait_for_timeout(20)  # rows can turn out higher than estimated, so keep scrolling
        if page.locator("#drawer li .plain").count() == creations:
            break
    assert page.locator("#drawer li .plain").count() == creations
    assert page.locator("#drawer .sentinel").count() == 0


@pytest.mark.parametrize("name", mark_rest(HOSTILE, 3))
def test_plan_page_shows_hostile_names_as_text(desktop: WatchedPage, folder: Path, name: str) -> None:
    made = make_hostile_plan(name)
    for text in (render_plan_page(made), render_run_page(make_run(made, None))):
        page = desktop.open(write_page(folder, "hostile", text))
        assert list_resources(page) == [f"Topic/{sanitize_for_terminal(name)}"]
        page.locator("#list .toggle").click()
        page.locator("#graph-panel .node").first.press("Enter")
        assert sanitize_for_terminal(name) in (page.locator("#drawer-title").text_content() or "")
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2


@pytest.mark.parametrize("name", mark_rest(SAMPLES, 4))
def test_plan_page_opens_every_sample_plan(desktop: WatchedPage, folder: Path, name: str) -> None:
    for text in (render_plan_page(SAMPLES[name]), render_run_page(make_run(SAMPLES[name]))):
        page = desktop.open(write_page(folder, "sample", text))
        for toggle in page.locator("#list .toggle").all():
            toggle.click()
        for node in page.locator("#graph-panel .node:visible").all():
            node.press("Enter")
            page.keyboard.press("Escape")
        said = page.locator("body").inner_text()
        assert "undefined" not in said
        assert "null" not in said


@pytest.mark.parametrize("page_of", mark_rest(["plan", "run", "big"], 2))
@pytest.mark.parametrize(
    ("window", "width"), [("phone", 320), ("phone", 390), ("desktop", 760), ("desktop", 1024)]
)
def test_plan_page_fits_narrow_windows(
    request: pytest.FixtureRequest, window: str, width: int, page_of: str
) -> None:
    watched: WatchedPage = request.getfixturevalue(window)
    watched.resize(width, 844)
    page = watched.open(request.getfixturevalue(f"{page_of}_file"))
    page.locator("#list .toggle").first.click()
    page.locator("#list .toggle").nth(2).click()
    page.locator("#graph-panel .node").first.press("Enter")
    box = page.locator("#drawer").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_plan_page_text_has_enough_contrast(themed_page: Page, plan_file: Path, run_file: Path) -> None:
    for file, link in ((plan_file, "#open=0,1,2,3"), (run_file, "#open=0,1")):
        themed_page.goto(f"{file.as_uri()}{link}")
        themed_page.locator("#graph-panel .node").first.press("Enter")
        assert find_weak_texts(themed_page) == []


def test_plan_page_without_changes_hides_panels(desktop: WatchedPage, folder: Path) -> None:
    page = desktop.open(write_page(folder, "quiet", render_plan_page(SAMPLES["no-changes"])))
    assert page.locator("h1").inner_text().startswith("No changes.")
    expect(page.locator("#list .nothing")).to_have_text("There are no changes.")
    for panel in ("#graph-panel", "#moves-panel", "#times-panel", "#risky", "#notes"):
        expect(page.locator(panel)).to_be_hidden()


def test_plan_heat_map_without_racks_shows_only_brokers(
    desktop: WatchedPage, folder: Path, plan: Plan
) -> None:
    page = desktop.open(write_page(folder, "rackless", render_plan_page(replace(plan, racks={}))))
    assert page.locator("#heat thead th.broker").all_inner_texts() == ["1", "2", "3", "4", "5", "6"]
    assert page.locator("#by button").count() == 0


@pytest.mark.parametrize("window", ["phone", "desktop"])
def test_plan_page_shows_all_risks_without_scrollbar(
    request: pytest.FixtureRequest, folder: Path, window: str
) -> None:
    """The list of risks used to have its own scrollbar, which hid the last rows: on phones, the deletion."""
    stay = FieldChange("partitions", FieldOp.CHANGE, 1, 2, None, Risk.IRREVERSIBLE, "They stay.")
    go = FieldChange("configs.retention.ms", FieldOp.SET, "9", "1", None, Risk.DESTRUCTIVE, "They go.")
    ids = [ResourceId("Topic", f"t{n:03}") for n in range(250)]
    grown = [Change(id_, Action.UPDATE, Reason.CHANGED, Risk.IRREVERSIBLE, (stay, go)) for id_ in ids]
    gone = Change(ResourceId("Topic", "zz-gone"), Action.DELETE, Reason.ORPHANED, Risk.DESTRUCTIVE)
    sample = replace(SAMPLES["no-changes"], changes=(*grown, gone))
    watched: WatchedPage = request.getfixturevalue(window)
    page = watched.open(write_page(folder, f"risks-{window}", render_plan_page(sample)))
    items = page.locator("#risky-list > li")
    assert items.count() == 251
    assert "Topic/zz-gone" in items.first.inner_text()
    assert items.nth(1).locator(".tag").all_inner_texts() == ["irreversible", "destructive"]
    assert "destructive: They go.\nretention.ms 9 → 1" in items.nth(1).inner_text()
    clipped = "one => one.scrollHeight > one.clientHeight + 1 || getComputedStyle(one).maxHeight !== 'none'"
    assert not page.locator("#risky-list").evaluate(clipped)
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not page.evaluate(wide)
    assert list_resources(page)[0] == "Topic/zz-gone"
    tags = page.locator("#list .row").nth(1).locator(".risks .tag").all_text_contents()
    assert tags == ["irreversible", "destructive"]


def test_plan_page_has_risks_changes_replicas_and_order_in_this_order(
    desktop: WatchedPage, plan_file: Path, run_file: Path
) -> None:
    ids = "all => all.filter(one => !one.hidden).map(one => one.id)"
    page = desktop.open(plan_file)
    expected = ["tiles", "risky", "changes", "moves-panel", "graph-panel", "notes"]
    assert page.locator("main > section").evaluate_all(ids) == expected
    page = desktop.open(run_file)
    expected = ["tiles", "risky", "changes", "moves-panel", "times-panel", "graph-panel"]
    assert page.locator("main > section").evaluate_all(ids) == expected
    page.locator("#jumps button", has_text="Order of execution").click()
    expect(page.locator("#graph-title")).to_be_in_viewport()


def test_plan_page_copies_the_whole_id(chromium: Browser, plan: Plan, folder: Path) -> None:
    id_ = "0123456789abcdef" * 4
    origin = PlanOrigin("2026-01-31T12:00:00Z", "Ann <b>", "a" * 40, has_local_changes=True)
    file = write_page(folder, "origin", render_plan_page(plan, id_, origin))
    for permissions in (["clipboard-read", "clipboard-write"], []):
        context = chromium.new_context(permissions=permissions)
        page = context.new_page()
        if not permissions:
            page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.goto(file.as_uri())
        facts = page.locator("#facts").inner_text()
        assert id_[:12] in facts
        assert id_ not in facts
        assert "2026-01-31 12:00:00Z" in facts
        assert f"{'a' * 12}, with local changes" in facts
        assert "Ann <b>" in facts
        page.get_by_role("button", name="Copy the id of the plan").click()
        if permissions:
            expect(page.locator("#facts .plain")).to_have_text("Copied")
            assert page.evaluate("navigator.clipboard.readText()") == id_
        else:
            expect(page.locator("#facts .whole")).to_be_visible()
            assert page.evaluate("String(getSelection())") == id_
        context.close()


def test_plan_page_shows_changes_without_scripts(
    scriptless_window: Page, plan_file: Path, run_file: Path, plan: Plan
) -> None:
    page = scriptless_window
    for file in (plan_file, run_file):
        page.goto(file.as_uri())
        rows = page.locator(".static tbody tr")
        assert rows.count() == len(plan.changes)
        expect(rows.first).to_contain_text("Topic/legacy.events")
        expect(page.locator("tr", has_text="Topic/checkout.orders")).to_contain_text("partitions 5 → 12")
        clipped = "one => one.scrollHeight > one.clientHeight + 1"
        assert not page.locator("#static-risks").evaluate(clipped)


@pytest.mark.parametrize("page_of", ["plan", "run"])
def test_plan_page_truncates_nothing_at_794_pixels(
    desktop: WatchedPage, plan_file: Path, run_file: Path, page_of: str
) -> None:
    desktop.resize(794, 1123)
    page = desktop.open({"plan": plan_file, "run": run_file}[page_of])
    assert find_truncated_texts(page) == []
    assert not [text for text in page.locator("svg text").all_text_contents() if "…" in text]


@pytest.mark.parametrize("page_of", ["plan", "run", "long"])
def test_plan_page_prints_all_rows(
    desktop: WatchedPage, plan_file: Path, run_file: Path, folder: Path, page_of: str
) -> None:
    long_file = write_page(folder, "long", render_plan_page(big_plan(LONG)))
    desktop.resize(794, 1123)
    page = desktop.open({"plan": plan_file, "run": run_file, "long": long_file}[page_of])
    before = page.locator("#list .row").count()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    is_long = page_of == "long"
    assert page.locator("#list .row").count() == (LONG if is_long else 14)
    assert page.locator("#list .detail").count() == (0 if is_long else 14)
    assert find_truncated_texts(page) == []
    for selector in ("#jumps", ".switches", ".toolbar", "#facts .brief", "#facts .plain"):
        expect(page.locator(selector).first).to_be_hidden()
    expect(page.locator("#facts .whole")).to_be_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#list .row").count() == before
    assert page.locator("#list .detail").count() == 0


def test_plan_page_picture_of_five_thousand_changes(desktop: WatchedPage, big_file: Path) -> None:
    take_picture(desktop, big_file, Picture("plan-5000", 1440, 1120))
