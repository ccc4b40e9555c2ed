"""The core and the engine use no terms of any provider, neither in identifiers nor in strings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdeclare

PACKAGE = Path(kdeclare.__file__).parent
NOUN = re.compile(
    r"(?i:topic|partition|broker|replica|throttle|reassign|worker|kafka)"
    r"|(?<![A-Za-z])(?:acl|ACL)s?(?![a-z])|Acls?(?![a-z])"
)

ALLOWED = {
    # Keys and values of the version 1 JSON, and the descriptions in its schema.
    ("core/plans/plan.py", "topic"),
    ("core/plans/plan.py", "reassign"),
    ("core/plans/plan.py", "broker"),
    ("engine/executor/apply.py", "topic"),
    ("engine/executor/entries.py", "topic"),
    ("engine/executor/entries.py", "topic_id"),
    ("engine/executor/rollback.py", "reassign"),
    ("engine/planning/build.py", "reassign"),
    ("engine/planning/prune_denied.py", "topic"),
    ("engine/planning/plan_document.py", "broker"),
    ("engine/planning/plan_document.py", "topic"),
    ("engine/planning/plan_integrity.py", "reassign"),
    ("engine/planning/plan_values.py", "broker"),
    ("engine/planning/plan_values.py", "topic"),
    (
        "engine/planning/planfile_schema.py",
        "Topic labels that are not in the state, by topic. Apply needs them to evaluate policies again.",
    ),
    (
        "engine/planning/planfile_schema.py",
        "The rack of each broker, by broker id. Present if the plan places replicas.",
    ),
    ("engine/planning/planfile_schema.py", "The evaluated topic, if the resource is not the topic itself."),
    ("engine/planning/planfile_schema.py", "reassign"),
    ("engine/planning/planfile_schema.py", "topic"),
    ("engine/planning/prune_denied.py", "reassign"),
    # In version 1, a verdict of the system itself is a verdict of its brokers.
    ("core/plans/plan.py", "A policy of the brokers denied the request without giving a reason."),
    # The progress document.
    ("core/plans/run.py", "partition"),
    ("core/plans/run.py", "partitions"),
    ("core/plans/run.py", "partitions_total"),
    ("core/plans/run.py", "brokers"),
    ("engine/executor/progress_tracker.py", "partitions"),
    ("engine/executor/progress_tracker.py", "partitions_total"),
    # Threads.
    ("engine/executor/progress_tracker.py", "workers"),
    ("engine/executor/scheduler.py", "workers"),
}
PYTHON = {"partition", "rpartition"}
"""Methods of `str`."""


def list_words(source: str) -> Iterator[str]:
    """Yield all identifiers and string literals; docstrings may use the terms of Kafka."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.alias(name=name, asname=None):
                yield name
            case ast.alias(name=name, asname=str(other)):
                yield from (name, other)
            case (
                ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name))
            ):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name) if name not in PYTHON:
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.ImportFrom(module=str(name)):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text


def find_provider_terms(file: str, source: str) -> set[tuple[str, str]]:
    return {(file, word) for word in list_words(source) if NOUN.search(word)}


def list_modules() -> Iterator[tuple[str, Path]]:
    for layer in ("core", "engine"):
        for path in sorted((PACKAGE / layer).rglob("*.py")):
            yield path.relative_to(PACKAGE).as_posix(), path


@pytest.mark.slow
def test_core_and_engine_use_no_provider_terms() -> None:
    found = {noun for name, path in list_modules() for noun in find_provider_terms(name, path.read_text())}
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
        "async def find_topic(): ...",
        "import x as topic",
        "match x:\n    case 1 as topic: ...",
        "class AclBinding: ...",
        "def list_acls(): ...",
        "acl_key = 1",
    ],
)
def test_check_finds_provider_terms_anywhere(source: str) -> None:
    assert find_provider_terms("it.py", source)


def test_check_ignores_docstrings_and_string_methods() -> None:
    assert find_provider_terms("it.py", '"""A topic."""\nname.partition("=")\noracle = 1') == set()
