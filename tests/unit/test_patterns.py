"""Users' regular expressions are RE2: none hangs, and unsupported syntax is reported with its position."""

import time
from collections.abc import Callable

import pytest

from kdeclare.app.authoring.import_live import import_cluster
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.patterns import PatternError, compile_pattern
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.defaults import DefaultsBody, DefaultsKind, DefaultsSpec
from kdeclare.providers.kafka.commands.topic_selection import select_named_topics
from kdeclare.providers.kafka.reassignment.spec import ReassignmentBody, ReassignmentSpec, parse_reassignment

HANGS_IN_PYTHON = "(a+)+b"
NAME = "a" * 60


def match_reassignment() -> bool:
    return bool(ReassignmentBody(topics=(f"/{HANGS_IN_PYTHON}/",)).filter_topics([NAME]))


def find_idle_patterns() -> bool:
    return not ReassignmentBody(topics=(f"/{HANGS_IN_PYTHON}/",)).find_unmatched_patterns([NAME])


def match_defaults() -> bool:
    return DefaultsBody("Topic", (f"/{HANGS_IN_PYTHON}/",)).covers(ResourceId("Topic", NAME), {})


def choose_topics() -> bool:
    return bool(select_named_topics([HANGS_IN_PYTHON], [NAME]).found)


@pytest.mark.parametrize("match", [match_reassignment, find_idle_patterns, match_defaults, choose_topics])
def test_pattern_with_nested_repetitions_is_fast(match: Callable[[], bool]) -> None:
    started = time.monotonic()
    assert not match()
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("text", "reason", "offset"),
    [
        ("a(?!b)", "invalid perl operator in '(?!'", 1),
        (r"[(?!](?!x)", "invalid perl operator in '(?!'", 5),
        (r"(a)\1", r"invalid escape sequence in '\1'", 3),
        (r"\\1x\1", r"invalid escape sequence in '\1'", 4),
        ("ab**", "bad repetition operator in '**'", 2),
        ("x(", "missing ) in 'x('", 0),
        (r"a\Qb", r"\Q without \E", 1),
        ("[z-a]", "invalid character class range in 'z-a'", 1),
    ],
)
def test_pattern_error_has_reason_and_offset(text: str, reason: str, offset: int) -> None:
    with pytest.raises(PatternError) as raised:
        compile_pattern(text)
    assert (raised.value.reason, raised.value.offset) == (reason, offset)


def test_reassignment_pattern_unsupported_by_re2_is_rejected() -> None:
    spec = ReassignmentSpec.model_validate({"topics": ["ok", "/(?!test).*/"], "rebalance": True})
    _, (problem,) = parse_reassignment("r", spec)
    assert (problem.path, problem.offset) == (("topics", 1), 1)
    assert problem.diagnostic.code == "invalid-reassignment"
    assert "invalid perl operator in '(?!'" in problem.diagnostic.detail
    assert "no look-around" in problem.diagnostic.hint


def test_defaults_pattern_unsupported_by_re2_is_rejected() -> None:
    selector = {"names": ["ok", r"/x(a)\1/"]}
    spec = DefaultsSpec.model_validate({"kind": "Topic", "selector": selector, "defaults": {}})
    _, (problem,) = DefaultsKind(KINDS).parse("d", spec)
    assert (problem.path, problem.offset) == (("selector", "names", 1), 5)
    assert problem.diagnostic.code == "bad-pattern"
    assert r"invalid escape sequence in '\1'" in problem.diagnostic.detail
    assert "no back-references" in problem.diagnostic.hint


def test_command_line_pattern_unsupported_by_re2_is_rejected() -> None:
    with pytest.raises(KdeclareError) as raised:
        select_named_topics(["a(?=b)"], ["ab"])
    (said,) = raised.value.diagnostics
    assert said.code == "bad-pattern"
    assert "invalid perl operator in '(?=' at character 2" in said.detail
    assert "no look-around" in said.hint


def test_import_pattern_unsupported_by_re2_is_rejected() -> None:
    with pytest.raises(KdeclareError) as raised:
        import_cluster(None, "(?<!a)b")  # type: ignore[arg-type]  # refused before a cluster is asked for
    (said,) = raised.value.diagnostics
    assert said.code == "bad-pattern"
    assert "at character 1" in said.detail
