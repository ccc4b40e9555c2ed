"""Lines are split into words."""

import shlex
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.cli.interactive.words import is_continued, parse_arguments, quote_word, split_words
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", []),
        ("  plan   a.yaml ", ["plan", "a.yaml"]),
        ("plan # what would change", ["plan"]),
        ("# nothing", []),
        ("a#b '#c' \\#d", ["a#b", "#c", "#d"]),
        ("'a b' \"c d\" e\\ f", ["a b", "c d", "e f"]),
        ('"a\\"b" \'a\\b\' "a\\nb"', ['a"b', "a\\b", "a\\nb"]),
        ("a''b \"\"", ["ab", ""]),
        ("--config cleanup.policy=[compact,delete]", ["--config", "cleanup.policy=[compact,delete]"]),
        ("'${env.A}' ${env.B}", ["${env.A}", "${env.B}"]),
        ("topic \\\n  list", ["topic", "list"]),
        ("or\\\nders", ["orders"]),
        ("'/payments\\..*/' 'a|b'", ["/payments\\..*/", "a|b"]),
        ("'~/x' \\~ a~", ["~/x", "~", "a~"]),
    ],
)
def test_parse_arguments_splits_line_into_words(line: str, meant: list[str]) -> None:
    assert parse_arguments(line) == meant


def test_parse_arguments_expands_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_arguments("~/a ~") == [str(Path("/home/me/a")), str(Path("/home/me"))]


@pytest.mark.parametrize(
    ("line", "summary"),
    [
        ("plan 'a", "Unclosed quote"),
        ('plan "a\\"', "Unclosed quote"),
        ("topic list | grep a", "Shell operator not supported"),
        ("plan > a", "Shell operator not supported"),
        ("plan && apply", "Shell operator not supported"),
    ],
)
def test_parse_arguments_rejects_unreadable_line(line: str, summary: str) -> None:
    with pytest.raises(KdeclareError) as raised:
        parse_arguments(line)
    (problem,) = raised.value.diagnostics
    assert (problem.code, problem.summary) == ("unreadable-line", summary)
    assert raised.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("line", "continued"), [("a", False), ("a\\", True), ("a\\\\", False), ("a\\\\\\", True), ("", False)]
)
def test_is_continued_detects_trailing_backslash(line: str, continued: bool) -> None:
    assert is_continued(line) is continued


_TEXTS = st.text(alphabet=string.ascii_letters + " '\"\\#~/=[],|>\t$")


@given(st.lists(_TEXTS.filter(lambda text: not text.startswith("~"))))
def test_parse_arguments_reverses_quote_word(texts: list[str]) -> None:
    assert parse_arguments(" ".join(quote_word(text) or "''" for text in texts)) == texts


@given(st.lists(st.text(alphabet=string.ascii_letters + " '\"\\#\n", min_size=1)))
def test_parse_arguments_reverses_shlex_join(texts: list[str]) -> None:
    assert parse_arguments(shlex.join(texts)) == texts


@given(_TEXTS)
def test_split_words_accepts_any_incomplete_line(line: str) -> None:
    at = 0
    for word in split_words(line):
        assert at <= word.start < word.end <= len(line)
        at = word.end


@given(_TEXTS.filter(lambda text: "'" not in text and text), st.sampled_from("'\""))
def test_quote_word_keeps_open_quote(text: str, quote: str) -> None:
    found = quote_word(text, quote)
    assert found[0] == quote
    (word,) = split_words(found)
    assert word.text == text
