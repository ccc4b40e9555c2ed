"""What providers say about a plan as a whole, in text, Markdown and HTML."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.installed_providers import InstalledProvider, find_providers, use_providers
from kdeclare.core.provider.provider import PlanSection, Provider, SectionLine
from kdeclare.report.plan.plan_markdown import MAX_COMMENT_LENGTH, plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_sections import MAX_PAGE_LINES
from kdeclare.report.plan.plan_text import plan_text
from tests.unit.report.page_reader import ElementReader
from tests.unit.report.sample_plans import make_plan
from tests.unit.report.test_markdown import check_comment
from tests.unit.report.test_text_comparison import compare

SECTIONS: list[PlanSection] = []


def describe(operations: Sequence[Operation]) -> Sequence[PlanSection]:
    return SECTIONS


PROVIDER = Provider("describing", (), (), describe_plan=describe)


@pytest.fixture(autouse=True)
def _describing_provider() -> Iterator[None]:
    installed = InstalledProvider("describing", "", "", f"{__name__}:PROVIDER")
    use_providers((*find_providers(), installed))
    yield
    SECTIONS.clear()
    use_providers(None)


ACCESS = PlanSection(
    "Access",
    (
        SectionLine("ann gains keys", sign="+"),
        SectionLine("ben loses keys", sign="-"),
        SectionLine("cat keeps keys", sign="="),
    ),
    is_for_reviews=True,
)
MOVES = PlanSection("Moves", (SectionLine("  broker  gains", is_secondary=True), SectionLine("  1     +2")))


def test_every_report_shows_sections_for_reviews() -> None:
    SECTIONS[:] = [ACCESS, MOVES]
    plan = make_plan()
    assert plan_text(plan).endswith(
        "Access:\n  + ann gains keys\n  - ben loses keys\n  = cat keeps keys\n\n"
        "Moves:\n    broker  gains\n    1     +2\n"
    )
    text = plan_markdown(plan)
    check_comment(text)
    assert "### Access\n\n- **+** ann gains keys\n- **-** ben loses keys\n- **=** cat keeps keys\n" in text
    assert "Moves" not in text
    page = render_plan_page(plan)
    assert ("", "Access") in ElementReader("h2", page).found
    assert ElementReader("li", page).found == [
        ("gained", "+ ann gains keys"),
        ("lost", "- ben loses keys"),
        ("", "= cat keeps keys"),
    ]


def test_comments_and_pages_show_texts_below_the_lines() -> None:
    texts = (compare(["a ~~~ @x", "b"], ["a", "b"], "Thing/<a> @x"), compare(["c"], ["```"], "Thing/b"))
    SECTIONS[:] = [replace(ACCESS, comparisons=texts)]
    text = plan_markdown(make_plan())
    check_comment(text, diffs=2)
    assert text.index("cat keeps keys") < text.index("```diff\n- a ~~~ @x\n+ a\n  b\n```")
    assert "````diff\n- c\n+ ```\n````\n" in text
    page = render_plan_page(make_plan())
    assert page.count('<details class="texts" open>') == 2
    assert "Thing/" not in plan_text(make_plan())


@pytest.mark.slow
def test_comparisons_in_comments_share_the_space() -> None:
    long = [f"line {n} {'x' * 50}" for n in range(2000)]
    texts = tuple(compare(long, ["x"], f"Thing/{n}") for n in range(200))
    SECTIONS[:] = [replace(ACCESS, comparisons=texts[:3])]
    text = plan_markdown(make_plan())
    check_comment(text, diffs=3)
    assert text.count("more lines (omitted). The JSON output of the plan contains all texts in full.") == 3
    SECTIONS[:] = [replace(ACCESS, comparisons=texts)]
    text = plan_markdown(make_plan())
    shown = text.count("```diff")
    assert 10 < shown < 200
    check_comment(text, diffs=shown)
    assert f"… and {200 - shown} more comparisons (omitted). The HTML page of the plan shows them." in text


def test_long_sections_are_cut_and_counted() -> None:
    lines = tuple(SectionLine(f"user-{n} gains {'x' * 90}", sign="+") for n in range(2000))
    SECTIONS[:] = [PlanSection("Access", lines, is_for_reviews=True)]
    text = plan_markdown(make_plan())
    check_comment(text)
    shown = text.count("- **+**")
    assert 100 < shown < 2000
    assert f"… and {2000 - shown:,} more lines (omitted)" in text
    assert len(text) < MAX_COMMENT_LENGTH
    items = ElementReader("li", render_plan_page(make_plan())).found
    assert len(items) == MAX_PAGE_LINES + 1
    assert items[-1] == ("dim", f"and {2000 - MAX_PAGE_LINES:,} more lines (see the text output of the plan)")
    assert plan_text(make_plan()).count("  + user-") == 2000


def test_markup_in_sections_is_escaped() -> None:
    line = "@ops <b>*x*</b> ~~~ `y` | #1 https://x.example"
    SECTIONS[:] = [
        PlanSection("Access", (SectionLine(line, sign="-"), SectionLine(line)), is_for_reviews=True)
    ]
    check_comment(plan_markdown(make_plan()))
    page = render_plan_page(make_plan())
    assert ElementReader("li", page).found == [("lost", f"- {line}"), ("", f"  {line}")]
    assert "<b>" not in page[page.index('id="sections"') : page.index('id="times-panel"')]
