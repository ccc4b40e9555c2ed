"""Tables fit the terminal, mark everything that they leave out, and lose nothing otherwise."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.report.elements.terminal import (
    PLAIN,
    Cell,
    Column,
    Elision,
    Style,
    StyledCell,
    elide,
    measure_width,
    render_table,
)

NAME = Column("NAME", elision=Elision.MIDDLE)
COUNT = Column("COUNT", right=True)
STATE = Column("STATE", elision=Elision.END)
TEXTS = st.text(st.characters(categories=("L", "N", "P", "S", "Mn")), max_size=30)
COLUMNS = st.builds(
    Column, st.sampled_from(["A", "LONG TITLE"]), st.booleans(), st.sampled_from(Elision), st.integers(1, 20)
)


@st.composite
def draw_tables(draw: st.DrawFn) -> tuple[list[Column], list[list[str]]]:
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=6))
    rows = st.lists(TEXTS, min_size=len(columns), max_size=len(columns))
    return columns, draw(st.lists(rows, max_size=5))


def test_table_aligns_columns() -> None:
    rows = [("orders", "12", "ok"), ("p", "3", "")]
    assert list(render_table([NAME, COUNT, STATE], rows)) == [
        "NAME    COUNT  STATE",
        "orders     12  ok",
        "p           3",
    ]


def test_table_omits_empty_column() -> None:
    assert list(render_table([NAME, STATE, COUNT], [("a", "", "1")], indent="  ")) == [
        "  NAME  COUNT",
        "  a         1",
    ]


def test_table_elides_middle_of_names_and_end_of_texts() -> None:
    rows = [("payments.captured.europe.v1", "3", "under-replicated, moving")]
    lines = list(render_table([NAME, COUNT, STATE], rows, 40))
    assert lines[1] == "payment…rope.v1      3  under-replicate…"
    assert max(map(len, lines)) == 40


def test_table_shortens_widest_column_first() -> None:
    columns = [Column("NAME", elision=Elision.MIDDLE, least=20), STATE]
    row = ("n" * 40, "s" * 30)
    assert [len(cell) for cell in list(render_table(columns, [row], 62))[1].split()] == [30, 30]
    assert [len(cell) for cell in list(render_table(columns, [row], 32))[1].split()] == [20, 10]
    assert [len(cell) for cell in list(render_table(columns, [row], 20))[1].split()] == [10, 8]


def test_table_colors_take_no_width() -> None:
    rows: list[tuple[Cell, ...]] = [(StyledCell("abc", Style(on=True).red), "1"), ("abcd", "2")]
    lines = list(render_table([NAME, COUNT], rows, style=Style(on=True)))
    plain = [re.sub(r"\x1b\[\d+m", "", line) for line in lines]
    assert lines[1].startswith("\x1b[31mabc\x1b[0m ")
    assert plain == list(render_table([NAME, COUNT], [("abc", "1"), ("abcd", "2")]))


@pytest.mark.parametrize(
    ("text", "room", "cut", "shown"),
    [
        ("abcdefg", 7, Elision.MIDDLE, "abcdefg"),
        ("abcdefg", 6, Elision.MIDDLE, "abc…fg"),
        ("abcdefg", 5, Elision.END, "abcd…"),
        ("abcdefg", 1, Elision.MIDDLE, "…"),
        ("日本語", 5, Elision.END, "日本…"),
        ("日本語", 4, Elision.END, "日…"),
        ("e\u0301e\u0301e\u0301", 2, Elision.END, "e\u0301…"),
    ],
)
def test_elide_shortens_text(text: str, room: int, cut: Elision, shown: str) -> None:
    assert elide(text, room, cut) == shown


@given(draw_tables(), st.integers(18, 120))
def test_table_fits_terminal_width(drawn: tuple[list[Column], list[list[str]]], width: int) -> None:
    columns, rows = drawn
    lines = list(render_table(columns, rows, width, PLAIN))
    assert len(lines) == len(rows) + 1
    assert all(measure_width(line) <= width for line in lines)


@given(draw_tables())
def test_table_keeps_all_text_when_it_fits(drawn: tuple[list[Column], list[list[str]]]) -> None:
    columns, rows = drawn
    lines = list(render_table(columns, rows))
    assert all(cell.strip() in line for line, row in zip(lines[1:], rows, strict=True) for cell in row)
    assert lines == list(render_table(columns, rows, 1000))
