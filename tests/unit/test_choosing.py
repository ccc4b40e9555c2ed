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


def test_name_with_dot_is_not_pattern() -> None:
    assert select_named_topics(["payments.eu"], THERE).found == ("payments.eu",)
    assert not any(map(is_topic_pattern, THERE))
    assert all(map(is_topic_pattern, ("payments.*", "a|b", "orders ", "ordérs", "/orders/")))


def test_pattern_matches_whole_names_in_sorted_order() -> None:
    assert select_named_topics([r"payments\..*"], THERE).found == ("payments.eu", "payments.us")
    assert select_named_topics(["payments.[e]u"], THERE).found == ("payments.eu", "paymentsxeu")
    assert select_named_topics(["(order)"], THERE).found == ()


def test_selected_topics_keep_order_of_names_without_repeats() -> None:
    both = select_named_topics(["payments.us", "orders", "(orders|payments.us)", "orders"], THERE)
    assert both.found == ("payments.us", "orders")


def test_no_names_select_all_topics() -> None:
    assert select_named_topics([], THERE).found == tuple(sorted(THERE))
    assert select_named_topics([], ()) == select_named_topics((), [])


def test_names_without_match_are_listed_once() -> None:
    assert select_named_topics(["order", "x.*", "orders", "order"], THERE).missing == ("order", "x.*")


def test_unknown_topic_is_reported_with_suggestion() -> None:
    assert report_unknown_topic("ordrs", THERE).hint == "Did you mean 'orders'?"
    assert "--topic" in report_unknown_topic("orders,payments.eu", THERE).hint
    assert report_unknown_topic("x.*", THERE).detail == "No topic name matches 'x.*'."


@pytest.mark.parametrize("name", ["*", "a(", "[a", "a{2,1}"])
def test_malformed_pattern_is_rejected(name: str) -> None:
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
def test_pattern_selects_exactly_matching_topics(there: set[str], prefix: str) -> None:
    found = select_named_topics([f"{prefix}.*"], there).found
    assert list(found) == sorted(name for name in there if name.startswith(prefix))


@given(st.text(max_size=20), st.sets(NAMES))
def test_any_text_selects_topics_or_is_rejected(name: str, there: set[str]) -> None:
    try:
        both = select_named_topics([name], there)
    except KdeclareError:
        with pytest.raises(PatternError):
            compile_pattern(name)
    else:
        assert set(both.found) <= there
        assert both.missing == (() if both.found else (name,))
        assert report_unknown_topic(name, there).is_error
