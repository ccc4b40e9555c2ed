"""What providers say about a plan as a whole, in text, Markdown and HTML."""

from collections.abc import Iterator, Sequence

import pytest

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.installed_providers import InstalledProvider, find_providers, use_providers
from kdeclare.core.provider.provider import PlanSection, Provider, SectionLine
from kdeclare.report.plan.plan_markdown import MAX_COMMENT_LENGTH, plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_sections import MAX_PAGE_LINES
from kdeclare.report.plan.plan_text import plan_text
from tests.unit.report.page_reader import Reader
from tests.unit.report.sample_plans import make_plan
from tests.unit.report.test_markdown import check_comment

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
    assert Reader(render_plan_page(plan)).data["sections"] == [
        {
            "title": "Access",
            "lines": [["+", "ann gains keys"], ["-", "ben loses keys"], ["=", "cat keeps keys"]],
            "left": 0,
        },
    ]


def test_long_sections_are_cut_and_counted() -> None:
    lines = tuple(SectionLine(f"user-{n} gains {'x' * 90}", sign="+") for n in range(2000))
    SECTIONS[:] = [PlanSection("Access", lines, is_for_reviews=True)]
    text = plan_markdown(make_plan())
    check_comment(text)
    shown = text.count("- **+**")
    assert 100 < shown < 2000
    assert f"… and {2000 - shown:,} more lines (omitted)" in text
    assert len(text) < MAX_COMMENT_LENGTH
    (section,) = Reader(render_plan_page(make_plan())).data["sections"]
    assert (len(section["lines"]), section["left"]) == (MAX_PAGE_LINES, 2000 - MAX_PAGE_LINES)
    assert plan_text(make_plan()).count("  + user-") == 2000


def test_markup_in_sections_is_escaped() -> None:
    line = "@ops <b>*x*</b> ~~~ `y` | #1 https://x.example"
    SECTIONS[:] = [
        PlanSection("Access", (SectionLine(line, sign="-"), SectionLine(line)), is_for_reviews=True)
    ]
    check_comment(plan_markdown(make_plan()))
