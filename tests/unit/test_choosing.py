"""Which topics a selection means: exact names, regular expressions, and selections that match nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.patterns import PatternError, compile_pattern
from kdeclare.providers.kafka.commands.topic_selection import (
    is_topic_pattern,
    report_unknown_topic,
    select_named_topics,
)

THERE = ("orders", "payments.eu", "payments.us", "paymentsxeu", "_internal-1")
NAMES = st.text("ab.", min_size=1, max_size=4)


def test_a_dot_makes_no_pattern() -> None:
    assert select_named_topics(["payments.eu"], THERE).found == ("payments.eu",)
    assert not any(map(is_topic_pattern, THERE))
    assert all(map(is_topic_pattern, ("payments.*", "a|b", "orders ", "ordérs", "/orders/")))


def test_a_pattern_matches_whole_names_and_what_it_matches_is_sorted() -> None:
    assert select_named_topics([r"payments\..*"], THERE).found == ("payments.eu", "payments.us")
    assert select_named_topics(["payments.[e]u"], THERE).found == ("payments.eu", "paymentsxeu")
    assert select_named_topics(["(order)"], THERE).found == ()


def test_the_order_is_that_of_the_names_and_each_comes_once() -> None:
    both = select_named_topics(["payments.us", "orders", "(orders|payments.us)", "orders"], THERE)
    assert both.found == ("payments.us", "orders")


def test_without_names_all_are_meant() -> None:
    assert select_named_topics([], THERE).found == tuple(sorted(THERE))
    assert select_named_topics([], ()) == select_named_topics((), [])


def test_what_stands_for_none_is_named_once() -> None:
    assert select_named_topics(["order", "x.*", "orders", "order"], THERE).missing == ("order", "x.*")


def test_a_name_is_guessed_at() -> None:
    assert report_unknown_topic("ordrs", THERE).hint == "Did you mean 'orders'?"
    assert "--topic" in report_unknown_topic("orders,payments.eu", THERE).hint
    assert report_unknown_topic("x.*", THERE).detail == "No topic name matches 'x.*'."


@pytest.mark.parametrize("name", ["*", "a(", "[a", "a{2,1}"])
def test_a_malformed_pattern(name: str) -> None:
    with pytest.raises(KdeclareError) as refused:
        select_named_topics([name], THERE)
    assert [d.code for d in refused.value.diagnostics] == ["bad-pattern"]
    assert f"'{name}'" in refused.value.diagnostics[0].detail


@given(st.lists(NAMES), st.sets(NAMES))
def test_exact_names_are_found_or_missing(names: list[str], there: set[str]) -> None:
    if not names:
        assert set(select_named_topics(names, there).found) == there
        return
    both = select_named_topics(names, there)
    assert set(both.found) == set(names) & there
    assert set(both.missing) == set(names) - there
    assert len(set(both.found)) == len(both.found)


@given(st.sets(NAMES), st.text("ab", min_size=1, max_size=3))
def test_patterns_mean_all_that_match_and_nothing_else(there: set[str], prefix: str) -> None:
    found = select_named_topics([f"{prefix}.*"], there).found
    assert list(found) == sorted(name for name in there if name.startswith(prefix))


@given(st.text(max_size=20), st.sets(NAMES))
def test_nothing_but_a_problem_for_people_comes_of_any_text(name: str, there: set[str]) -> None:
    try:
        both = select_named_topics([name], there)
    except KdeclareError:
        with pytest.raises(PatternError):
            compile_pattern(name)
    else:
        assert set(both.found) <= there
        assert both.missing == (() if both.found else (name,))
        assert report_unknown_topic(name, there).is_error
