"""The topics that a policy selects, and regular expressions that cannot hang."""

import pickle
import re
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.patterns import Pattern, explain_invalid_pattern
from kdeclare.core.policies.policy_request import PolicyRequest
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.policy.configured_policy import EVERYTHING, Selector, find_bad_patterns
from tests.unit.policy.doubles import State, make_creation


def make_request(topic: str, labels: Mapping[str, str] | None = None) -> PolicyRequest:
    return make_creation(State(), topic=topic, labels=labels or {})


@pytest.mark.parametrize(
    ("topics", "topic", "covered"),
    [
        ((), "orders", True),
        (("orders",), "orders", True),
        (("orders",), "orders.eu", False),
        (("payments", "/orders(-.*)?/"), "orders-eu", True),
        (("payments", "/orders(-.*)?/"), "orders", True),
        (("/orders/",), "my-orders", False),
        (("/orders|payments/",), "payments-eu", False),
        (("/a/", "/b/"), "b", True),
    ],
)
def test_selector_covers_matching_topics(topics: tuple[str, ...], topic: str, covered: bool) -> None:
    assert Selector(topics).covers(make_request(topic)) is covered


@pytest.mark.parametrize(
    ("labels", "covered"),
    [
        ({}, True),
        ({"tier": "gold"}, True),
        ({"tier": "gold", "team": "a"}, True),
        ({"tier": "silver"}, False),
        ({"tier": "gold", "team": "b"}, False),
        ({"nothing": ""}, False),
    ],
)
def test_selector_covers_matching_labels(labels: Mapping[str, str], covered: bool) -> None:
    there = {"tier": Referenced("gold", "${env.TIER}"), "team": "a"}
    assert Selector(labels=labels).covers(make_request("orders", there)) is covered
    assert Selector(("orders",), labels).covers(make_request("orders", there)) is covered
    assert not Selector(("payments",), labels).covers(make_request("orders", there))


class _RequestWithoutLabels:
    name = "orders"

    @property
    def labels(self) -> Mapping[str, str]:
        raise AssertionError("nobody asked for them")


def test_selector_without_labels_does_not_read_labels() -> None:
    silent: PolicyRequest = _RequestWithoutLabels()  # type: ignore[assignment]
    assert EVERYTHING.covers(silent)
    assert Selector(("orders",)).covers(silent)
    assert not Selector(("payments",), {"tier": "gold"}).covers(silent)


def test_selector_can_be_pickled_and_compared() -> None:
    selector = Selector(("a", "/b+/", "/(c|d)/"), {"tier": "gold"})
    again = pickle.loads(pickle.dumps(selector))
    assert again == selector
    assert again.covers(make_request("d", {"tier": "gold"}))
    assert selector != Selector(("a",), {"tier": "gold"})


def test_find_bad_patterns_reports_invalid_topics() -> None:
    topics = ("a", "/(/", "/a/", "/a)|(b/", r"/(a)\1/", "payments.*", "", "/x", "//", "a.b_C-1")
    no_name = "no topic can have this name, and regular expressions need slashes"
    assert list(find_bad_patterns(topics)) == [
        (1, "missing ) in '('"),
        (3, "unexpected ) in 'a)|(b'"),
        (4, r"invalid escape sequence in '\1'"),
        *((number, no_name) for number in (5, 6, 7, 8)),
    ]
    with pytest.raises(ValueError, match="missing"):
        Selector(topics)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("", "", "a"),
        ("a.*", "abc", "ba"),
        ("a|bc", "bc", "ac"),
        ("(?i)abc", "ABC", "ABCD"),
        ("^a$", "a", "a\n"),
        (r"\d+\.x", "12.x", "12-x"),
        (r"\Qa.b\E", "a.b", "acb"),
        ("é+", "éé", "e"),
        ("[^a-c]x?", "dx", "ax"),
        ("[a-z0-9-]+", "a-1", "A"),
        ("(?m)a$", "a", "a\n"),
    ],
)
def test_pattern_matches_whole_text(text: str, matching: str, other: str) -> None:
    assert Pattern(text).matches(matching)
    assert not Pattern(text).matches(other)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(", "missing ) in '('"),
        ("a)|(b", "unexpected ) in 'a)|(b'"),
        ("[z-a]", "invalid character class range in 'z-a'"),
        ("a**", "bad repetition operator in '**'"),
        ("a{1001}", "invalid repetition size in '{1001}'"),
        ("(?=x)", "invalid perl operator in '(?='"),
        (r"\Qa", r"\Q without \E"),
        (r"(\pL?){500}", "too large after expanding its repetitions"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_invalid_pattern_raises_with_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(reason) + "$"):
        Pattern(text)


@pytest.mark.parametrize(
    "text", ["(a+)+b", "(a|aa)*b", "(.*)*b", ".*.*.*.*.*.*b", ".*a.*b", "a*a*b", "[a-z]*[a-z]+b"]
)
def test_pattern_without_match_is_fast(text: str) -> None:
    started = time.process_time()
    assert not Pattern(text).matches("a" * 249)
    assert time.process_time() - started < 0.5


_PIECES = ["a", "b", "-", ".", r"\.", "[a-b]", "[^a-]", "[ab-]", "*", "+", "?", "\n", "0"]


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join), st.text("ab-.0\n", max_size=8))
def test_quick_match_agrees_with_re2(text: str, name: str) -> None:
    if explain_invalid_pattern(text) is not None:
        with pytest.raises(ValueError, match=r".+"):
            Pattern(text)
        return
    pattern = Pattern(text)
    slow = Pattern(f"(?:{text}|{text})")  # too complex for Python's engine
    assert not isinstance(slow._compiled, re.Pattern)
    assert pattern.matches(name) is slow.matches(name)
