"""Two texts side by side on a page, and as a diff in a comment."""

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.line_diff import DiffLine, DiffRow, LineChange, LineDiff
from kdeclare.core.provider.provider import TextComparison
from kdeclare.report.plan.text_comparison import (
    MAX_LINE_LENGTH,
    ComparisonWriter,
    render_comparison_markdown,
)
from tests.unit.report.golden_files import check_golden
from tests.unit.report.page_reader import ElementReader
from tests.unit.report.test_markdown import PARSER


def compare(before: list[str], after: list[str], title: str = "Thing/a") -> TextComparison:
    """Compare two texts. Lines at the same place of a block that differs are in one row."""
    rows: list[DiffRow] = []
    for tag, start, end, other_start, other_end in SequenceMatcher(None, before, after).get_opcodes():
        for i in range(max(end - start, other_end - other_start)):
            old = DiffLine(start + i + 1, before[start + i]) if start + i < end else None
            new = (
                DiffLine(other_start + i + 1, after[other_start + i]) if other_start + i < other_end else None
            )
            change = LineChange.CHANGED if old and new else LineChange.REMOVED if old else LineChange.ADDED
            rows.append(DiffRow(LineChange.EQUAL if tag == "equal" else change, old, new))
    return TextComparison(title, lambda: LineDiff(tuple(rows)))


def read_cells(html: str) -> list[str]:
    return [text for _, text in ElementReader("td", html).found]


BEFORE = [f"line {n}" for n in range(1, 31)]
AFTER = ["line zero", *BEFORE[:14], "line <fifteen>", *BEFORE[15:29]]


def test_page_shows_changed_added_and_removed_lines_side_by_side() -> None:
    html = ComparisonWriter().render_all([compare(BEFORE, AFTER, "Thing/<a>")])
    check_golden("text-comparison", html, "html")
    assert "<summary>Thing/&lt;a&gt;: 3 lines (1 changed, 1 added, 1 removed)</summary>" in html
    rows = dict(enumerate(name for name, _ in ElementReader("tr", html).found if name))
    assert [name for name in rows.values() if name != "equal"] == ["added", "changed", "removed"]
    assert read_cells(html)[:4] == ["", "", "1", "+line zero"]
    assert "<i>-</i>line <del>15</del></td>" in html
    assert "<i>+</i>line <ins>&lt;fifteen&gt;</ins></td>" in html


def test_page_collapses_equal_lines_and_counts_long_stretches() -> None:
    html = ComparisonWriter().render_all([compare([*BEFORE, "x"], [*BEFORE, "y"])])
    assert '<details class="far"><summary>27 equal lines</summary><table' in html
    assert "line 1" in html
    long = [f"line {n}" for n in range(5000)]
    html = ComparisonWriter().render_all([compare([*long, "x"], [*long, "y"])])
    assert '<p class="far">4,997 equal lines</p>' in html
    assert "line 17<" not in html
    assert len(html) < 2_000


def test_page_cuts_long_lines_around_the_difference() -> None:
    before, after = "a" * 500_000, f"{'a' * 300_000}b{'a' * 199_999}"
    html = ComparisonWriter().render_all([compare([before], [after])])
    assert "<del>a</del>" in html
    assert "<ins>b</ins>" in html
    assert html.count("… 299,750 characters …") == 2
    assert html.count("… 199,250 characters …") == 2
    assert len(html) < 3 * MAX_LINE_LENGTH


@pytest.mark.parametrize(
    ("before", "after", "marked"),
    [
        ('"type": "string"', '"type": "long"', ("string", "long")),
        ("int32 count = 2;", "int64 count = 2;", ("int32", "int64")),
        ("a b", "a c b", ("", "c ")),
        ("a" * 100, "a" * 99, ("a", "")),
        ("", "x", ("", "x")),
    ],
)
def test_page_marks_whole_words_that_differ(before: str, after: str, marked: tuple[str, str]) -> None:
    html = ComparisonWriter().render_all([compare([before], [after])])
    read = tuple("".join(text for _, text in ElementReader(tag, html).found) for tag in ("del", "ins"))
    assert read == marked


def test_page_counts_lines_and_comparisons_that_do_not_fit() -> None:
    def fail() -> LineDiff:
        raise AssertionError("a comparison that is not shown must not be computed")

    long = compare([f"old {n}" for n in range(1000)], [f"new {n}" for n in range(1000)])
    hidden = TextComparison("Thing/b", fail)
    html = ComparisonWriter(max_length=7_000).render_all([long, hidden, hidden])
    shown = len(ElementReader("tr", html).found)
    assert 30 < shown < 100
    assert f"{1000 - shown} more lines ({1000 - shown} of them different) not shown" in html
    assert html.endswith(
        '<p class="dim">2 more comparisons not shown, to limit the size of the page. '
        "The JSON output of the plan contains all texts in full.</p>\n"
    )


def test_page_has_space_for_comparisons_after_a_long_one() -> None:
    long = compare([f"old {n}" for n in range(20_000)], ["new"])
    html = ComparisonWriter().render_all([long, long, compare(["a"], ["b"])])
    assert "<del>a</del>" in html
    assert html.count("not shown") == 2


def test_page_opens_only_the_first_comparisons() -> None:
    html = ComparisonWriter().render_all([compare(["a"], ["b"], f"Thing/{n}") for n in range(5)])
    assert html.count('<details class="texts" open>') == 3
    assert html.count('<details class="texts">') == 2
    assert html.rindex(" open>") < html.index('"texts">')


def test_comment_shows_a_collapsed_diff() -> None:
    text = render_comparison_markdown(compare(BEFORE, AFTER), 10_000)
    check_golden("text-comparison", text, "md")
    assert text.startswith("<details><summary>Thing/a: before and after</summary>\n\n```diff\n+ line zero\n")
    assert "@@ 8 equal lines @@\n" in text
    assert "- line 15\n+ line <fifteen>\n" in text


def test_comment_counts_lines_that_do_not_fit() -> None:
    comparison = compare([f"old {n}" for n in range(1000)], [f"new {n}" for n in range(1000)])
    text = render_comparison_markdown(comparison, 2_000)
    assert len(text) <= 2_000
    assert "characters" not in text
    shown = text.count("\n- old") + text.count("\n+ new")
    assert shown > 100
    assert f"… and {2000 - shown:,} more lines (omitted)." in text
    assert render_comparison_markdown(comparison, 100) == ""


@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), max_size=20)
        | st.sampled_from(["```", "````", "</details>", "\r", "- "])
    )
)
def test_comment_contains_any_text_as_one_block_of_code(lines: list[str]) -> None:
    text = render_comparison_markdown(compare([], lines), 50_000)
    fences = [token for token in PARSER.parse(text) if token.type == "fence"]
    assert [token.info for token in fences] == ["diff"]
    assert fences[0].content.count("\n") == len(lines)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a\x1b[31mb", "&amp;", "$data"])
def test_page_shows_markup_and_control_characters_as_text(text: str) -> None:
    html = ComparisonWriter().render_all([compare([text], [f"{text}!"], text)])
    (before, after) = (cell for cell in read_cells(html) if not cell.isdigit())
    shown = text.replace("\x1b", "\\x1b")
    assert (before, after) == (f"-{shown}", f"+{shown}!")


def test_comment_counts_the_characters_of_long_lines() -> None:
    text = render_comparison_markdown(compare(["a" * 1_000_000], ["b"]), 10_000)
    assert f"\n- {'a' * 300} … (999,700 more characters)\n+ b\n" in text
