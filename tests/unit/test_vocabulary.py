"""The core knows no noun of any provider: not in an identifier, not in a text."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdeclare.core

CORE = Path(kdeclare.core.__file__).parent
NOUN = re.compile(r"topic|partition|broker|replica|throttle|reassign|worker|\bacls?\b|kafka", re.IGNORECASE)

ALLOWED = {
    # keys and values of the version 1 JSON
    ("plan.py", "topic"),
    ("plan.py", "reassign"),
    ("plan.py", "broker"),
    # a message in golden files
    ("plan.py", "A policy of the brokers refuses it and does not say why."),
    # progress of moves, until work that goes on after its request reports it itself
    ("run.py", "partition"),
    ("run.py", "partitions"),
    ("run.py", "partitions_total"),
    ("run.py", "brokers"),
}
PYTHON = {"partition", "rpartition"}
"""Methods of `str`."""


def words_of(source: str) -> Iterator[str]:
    """All identifiers and string literals; docstrings are for people, who know Kafka."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name) if name not in PYTHON:
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.ImportFrom(module=str(name)):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text


def nouns_in(file: str, source: str) -> set[tuple[str, str]]:
    return {(file, word) for word in words_of(source) if NOUN.search(word)}


def test_core_has_no_noun_of_a_provider() -> None:
    found = {noun for path in CORE.glob("*.py") for noun in nouns_in(path.name, path.read_text())}
    assert found - ALLOWED == set()
    assert ALLOWED - found == set(), "what is gone must leave the list"


@pytest.mark.parametrize(
    "source",
    [
        "topic_id = 1",
        "def find_brokers(): ...",
        "class Throttle: ...",
        "op.partitions",
        "f(replicas=1)",
        "from kdeclare.providers.kafka import live",
        "x = 'reassign it'",
        "def f(worker): ...",
        "x = f'of {y} topics'",
    ],
)
def test_fence_finds_a_noun_wherever_it_is(source: str) -> None:
    assert nouns_in("it.py", source)


def test_fence_leaves_docstrings_and_methods_of_strings_alone() -> None:
    assert nouns_in("it.py", '"""A topic."""\nname.partition("=")') == set()
