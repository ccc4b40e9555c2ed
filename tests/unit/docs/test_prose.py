"""The language of texts: dropped phrases, the form of diagnostics, and the script that draws samples."""

import ast
import re
from pathlib import Path

import pytest

from scripts.prose import diagnostics, texts
from scripts.prose.__main__ import draw
from scripts.prose.diagnostics import check_diagnostics
from scripts.prose.phrases import find_phrases
from scripts.prose.texts import Text, TextKind, collect_texts, find_diagnostics, read_page, render


@pytest.mark.slow
def test_texts_have_no_dropped_phrases() -> None:
    assert [str(finding) for finding in find_phrases(collect_texts())] == []


@pytest.mark.slow
def test_diagnostics_have_constant_summaries_and_hints_that_start_with_verbs() -> None:
    assert list(check_diagnostics()) == []


def test_every_kind_of_text_is_collected() -> None:
    counts = dict.fromkeys(TextKind, 0)
    for text in collect_texts():
        counts[text.kind] += 1
    assert counts[TextKind.DIAGNOSTIC] > 300
    assert all(count > 500 for kind, count in counts.items() if kind is not TextKind.DIAGNOSTIC), counts


@pytest.mark.parametrize(
    "sentence",
    [
        "Nobody is here to be asked.",
        "The file stands in the manifest folder.",
        "Users are told of it.",
        "The topic is created anew.",
        "It is no drift and left alone.",
        "Policies judge changes.",
        "A run is under way.",
    ],
)
def test_dropped_phrase_is_found(sentence: str) -> None:
    text = Text("page.md", 1, TextKind.PAGE, sentence)
    assert len(list(find_phrases([text]))) >= 1


def test_names_in_backquotes_are_no_phrases() -> None:
    text = Text("page.md", 1, TextKind.PAGE, "The code is `nobody-to-ask`, from ``leftovers``.")
    assert list(find_phrases([text])) == []


def test_code_blocks_of_pages_are_left_out() -> None:
    page = "# Title\n\nA line\ngoes on.\n\n```sh\nnobody\n```\n\n- an item\n"
    assert [text.text for text in read_page(page, "page.md")] == ["# Title", "A line goes on.", "- an item"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("A line:\n\n    kdeclare plan\n\n    - kdeclare apply\n\nA line.\n", ["A line:", "A line."]),
        ("1. A step:\n\n       kdeclare plan\n\n   A line.\n", ["1. A step:", "A line."]),
        ("1. A step.\n\n   - An item\n     goes on.\n", ["1. A step.", "- An item goes on."]),
        ("- An item.\n\n  A line.\n\nA line.\n\n    code\n", ["- An item.", "A line.", "A line."]),
        ("10. A step.\n\n    A line of the step.\n", ["10. A step.", "A line of the step."]),
        ("A line\n    goes on.\n", ["A line goes on."]),
    ],
)
def test_indented_code_of_pages_is_left_out(page: str, expected: list[str]) -> None:
    assert [text.text for text in read_page(page, "page.md")] == expected


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ('error("x", f"No topic {name}", "d", hint="Create it.")', "summary has values in it"),
        ('error("x", "No topic.", "d", hint="Create it.")', "summary ends with a period"),
        ('error("x", "no topic", "d", hint="Create it.")', "summary starts with a small letter"),
        ('error("x", "No topic", "d", hint="It is gone.")', "hint does not start with a verb"),
        ('Diagnostic(s, "x", "No topic", "d", "Perhaps later.")', "hint does not start with a verb"),
        (
            'error("x", "No topic", "d", hint="Create it." if a else "Gone.")',
            "hint does not start with a verb",
        ),
        ('error("x", "No topic", "d", hint=HINT)', "hint does not start with a verb"),
        ('error("x", "No topic", "d", hint="If it is new, create it.")', None),
        ('error("x", "min.insync.replicas too high", "d", hint="Did you mean 2?")', None),
    ],
)
def test_form_of_diagnostic(
    call: str, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kdeclare").mkdir()
    (tmp_path / "kdeclare" / "module.py").write_text(f'HINT = "Nothing to do."\n{call}\n')
    monkeypatch.setattr(diagnostics, "ROOT", tmp_path)
    problems = list(check_diagnostics())
    assert len(problems) == (problem is not None), problems
    assert problem is None or problems[0].startswith(f"kdeclare/module.py:2: {problem}")


def test_diagnostic_of_several_parts_is_one_text() -> None:
    (call,) = find_diagnostics(
        ast.parse('error("c", "No topic", f"{name} is missing." + end, hint="Create it.")')
    )
    assert [render(part) for part in call.parts] == ["No topic", "{} is missing.{}", "Create it."]


def test_same_seed_draws_same_texts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = []
    for seed in (1, 1, 2):
        draw(seed, 20)
        samples.append(capsys.readouterr().out)
    assert samples[0] == samples[1] != samples[2]
    assert len(re.findall(r"^## \d+\. ", samples[0], re.MULTILINE)) == 20
    assert texts.ROOT.joinpath("README.md").exists()
