"""Matching the lines of two texts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.line_diff import LineChange
from kdeclare.providers.schema_registry.schemas.line_matching import match_lines
from kdeclare.providers.schema_registry.schemas.text_diff import diff_schema_texts
from tests.unit.schemas.contents import build_avro

_LINES = st.lists(st.sampled_from([*"abcdef", "unique 1", "unique 2"]), max_size=40)


@given(_LINES, _LINES)
def test_matches_are_equal_lines_in_ascending_order(first: list[str], second: list[str]) -> None:
    for repeat in (1, 30):  # long texts are matched in a different way than short ones
        texts = [f"{line} {n % 7}" for n in range(repeat) for line in first], second * repeat
        for one, other in (texts, (texts[0], texts[0])):
            pairs = match_lines(one, other)
            assert all(one[i] == other[j] for i, j in pairs)
            assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
        assert len(match_lines(texts[0], texts[0])) == len(texts[0])


def test_unique_lines_of_long_texts_match_despite_repeated_lines() -> None:
    first = [line for n in range(1000) for line in ("{", f"name {n}", "}")]
    second = [line for n in range(1000) if n % 10 for line in ("{", f"name {n}", "new", "}")]
    pairs = match_lines(first, second)
    matched = [first[i] for i, _ in pairs]
    assert [line for line in matched if line.startswith("name")] == [
        f"name {n}" for n in range(1000) if n % 10
    ]
    assert matched.count("{") == matched.count("}") == 900


def test_long_texts_of_repeated_lines_match_at_the_same_distance() -> None:
    first, second = ["x", *"ab" * 2000, "x"], ["y", *"ab" * 1999, "y"]
    pairs = match_lines(["1", *first], ["2", *second])
    assert len(pairs) == 2 * 1999
    assert all(i == j for i, j in pairs)


@pytest.mark.slow
def test_schema_of_a_megabyte_is_compared_line_by_line() -> None:
    """difflib needs minutes for this schema."""

    def build(changed: str) -> object:
        field = {"doc": "d" * 120, "default": None}
        types = (["null", changed if n % 3 == 0 else "string"] for n in range(6000))
        return [{"name": f"f{n}", "type": type_, **field} for n, type_ in enumerate(types)]

    before, after = (
        build_avro({"type": "record", "name": "Big", "fields": build(changed)})
        for changed in ("string", "long")
    )
    size = len(before.text)
    assert size > 1_000_000
    rows = diff_schema_texts(before, after).rows
    changed = [row for row in rows if row.change is not LineChange.EQUAL]
    assert {row.change for row in changed} == {LineChange.CHANGED}
    assert len(changed) == 2000


def test_very_long_lines_are_paired_by_their_start() -> None:
    before, after = (
        build_avro({"type": "enum", "name": "E", "symbols": ["A"], "doc": f"text {'ab' * 300_000} {end}"})
        for end in ("x", "y")
    )
    (row,) = [r for r in diff_schema_texts(before, after).rows if r.change is not LineChange.EQUAL]
    assert row.change is LineChange.CHANGED
