"""Check links, command lines and manifests in the documentation."""

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from jsonschema import Draft202012Validator

from kdeclare.app.authoring.schema import build_manifest_schema, build_overlay_file_schema
from kdeclare.cli.main import build_application
from tests.unit.docs.written import (
    PAGES,
    ROOT,
    get_relative_path,
    list_code_blocks,
    list_command_lines,
    list_links,
)

each_page = pytest.mark.parametrize("file", PAGES, ids=get_relative_path)

_BREAKS = {"&&", "||", "|", ";", ">", ">>", "<", "2>"}


@pytest.mark.slow
@each_page
def test_doc_links_point_to_existing_files(file: Path) -> None:
    inside = [link for link in list_links(file) if not re.match(r"[a-z]+:|#", link)]
    lost = [link for link in inside if not (file.parent / unquote(link.partition("#")[0])).exists()]
    assert not lost


@pytest.mark.slow
@each_page
def test_doc_command_lines_are_valid(file: Path) -> None:
    wrong = {line: problem for line in list_command_lines(file) if (problem := find_unknown_word(line))}
    assert not wrong


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("kdeclare plan --out it.plan && kdeclare apply it.plan --yes   # as reviewed", None),
        ("kdeclare topic create|alter|delete NAME", None),
        ("kdeclare config alter --topic orders --add-config=a=b | cat -n", None),
        ("kdeclare plan > it.txt --nope", None),
        ("kdeclare --version", None),
        ("kdeclare", None),
        ("kdeclare plam", "plam"),
        ("kdeclare topic creates orders", "creates"),
        ("kdeclare plan --outt it.plan", "--outt"),
        ("kdeclare validate && kdeclare apply --nope", "--nope"),
        ("kdeclare sandbox start -z", "-z"),
    ],
)
def test_find_unknown_word_of_command_line(line: str, problem: str | None) -> None:
    assert find_unknown_word(line) == problem


@pytest.mark.slow
def test_docs_contain_command_lines() -> None:
    shown = {get_relative_path(file): len(list(list_command_lines(file))) for file in PAGES}
    assert shown["README.md"] > 10
    assert sum(shown.values()) > 200


def list_manifests() -> Iterator[Any]:
    """Yield the manifests in YAML blocks, except those of test cases, which can be invalid."""
    for file in PAGES:
        if file.is_relative_to(ROOT / "tests/cases"):
            continue
        for language, text in list_code_blocks(file):
            if language == "yaml" and "apiVersion: " in text:
                for number, document in enumerate(yaml.safe_load_all(text)):
                    if re.search(r"(strimzi|jikkou)\.io/", document["apiVersion"]):
                        continue  # a file of another tool
                    yield pytest.param(document, id=f"{get_relative_path(file)}-{document['kind']}-{number}")


def test_documented_overlays_match_schema() -> None:
    shown = [
        text for _, text in list_code_blocks(ROOT / "docs/environments.md") if text.startswith("# overlays/")
    ]
    assert shown
    for text in shown:
        Draft202012Validator(build_overlay_file_schema(None)).validate(yaml.safe_load(text))


@pytest.mark.parametrize("manifest", list(list_manifests()))
def test_documented_manifests_match_schema(manifest: Any) -> None:
    """Converted to JSON, because member names are strings there."""
    Draft202012Validator(_build_schema()).validate(json.loads(json.dumps(manifest)))


def test_decision_index_lists_every_decision() -> None:
    folder = ROOT / "docs" / "decisions"
    titles = {file.name: file.read_text().splitlines()[0] for file in folder.glob("0*.md")}
    listed = dict(re.findall(r"\]\((0.*?\.md)\): (.+)", (folder / "README.md").read_text()))
    assert listed == {name: title.partition(". ")[2] for name, title in titles.items()}


def find_unknown_word(line: str) -> str | None:
    """Return the first word of a command line that kdeclare does not know; None if it knows all."""
    found = (_find_unknown_word(words) for words in _list_commands(line))
    return next((word for word in found if word), None)


def _list_commands(line: str) -> list[list[str]]:
    """Return the words after each ``kdeclare``, without shell syntax and explanations."""
    typed = re.sub(r"(\s#\s|\s{2,}).*", "", line)
    reader = shlex.shlex(typed, posix=True, punctuation_chars="&;<>")
    reader.whitespace_split, reader.commenters = True, ""
    commands: list[list[str]] = []
    taken = False
    for word in reader:
        if word in _BREAKS:
            taken = False
        elif word == "kdeclare":
            commands.append([])
            taken = True
        elif taken:
            commands[-1].append(word)
    return commands


def _find_unknown_word(words: list[str]) -> str | None:
    """Resolve groups to their commands; ``a|b`` means either, and COMMAND or … means any of them."""
    command = _build_application()
    while words and hasattr(command, "commands") and re.match(r"[a-z]", words[0]):
        names, *words = words
        for name in names.split("|"):
            if name not in command.commands:
                return name
        command = command.commands[names.partition("|")[0]]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    known |= {"--help", "-h"}
    given = (word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word))
    return next((word for word in given if word not in known), None)


@cache
def _build_schema() -> Any:
    return build_manifest_schema(None)


@cache
def _build_application() -> Any:
    return build_application().root


def test_index_lists_every_page_once() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = re.findall(r"\]\(((?!\.\./)[^)#]+\.md)\)", index)
    pages = {file.relative_to(ROOT / "docs").as_posix() for file in (ROOT / "docs").rglob("*.md")}
    single_decisions = {page for page in pages if page.startswith("decisions/0")}
    assert sorted(listed) == sorted(pages - single_decisions - {"README.md"})


@pytest.mark.parametrize("page", ["errors.md", "durability.md"])
def test_tests_that_pages_name_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    names = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(names) > 10
    assert [
        f"{file}::{test}"
        for file, test in names
        if not (ROOT / file).is_file() or f"def {test}(" not in (ROOT / file).read_text()
    ] == []
