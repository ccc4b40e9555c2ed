"""Files with test cases: their meaning, and each mistake with its position."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.manifests.project import Environment, Project
from kdeclare.manifests.syntax.substitution import Variable
from kdeclare.policy.interface import Action
from kdeclare.policy.testing.case_requests import CaseState
from kdeclare.policy.testing.cases import Case, load_cases

HEAD = "apiVersion: kdeclare/v1\nkind: PolicyTest\nmetadata: {name: gold}\n"
WHOLE = """\
spec:
  defaults:
    topic: orders
    labels: {tier: gold, keyed: true}
    pre: {partitions: 3, replicationFactor: 3, configs: {retention.ms: 1000, a: b}}
    records: 5
  cases:
    - name: first
      policy: factor
      request:
        action: MODIFY
        principal: User:alice
        labels: {tier: 1}
        changed: [partitions, configs.retention.ms]
        post: {partitions: 6, replicationFactor: 3, configs: {cleanup.policy: [compact, delete], a: null}}
        racks: {1: a, 2: null}
        partitionsOf: {team=blue: 180, "team=red,env=prod": 7}
        impact: {unreadRecords: 12, unreadGroups: [billing], lastWriteMs: null}
      expect: deny
      message: three replicas
    - name: second
      request: {action: CREATE, post: {assignments: {0: [1, 2], 1: [2, 3]}}}
      expect: allow
    - {name: third, request: {action: DELETE, topic: other}, expect: warn}
"""


def load_text(
    folder: Path, text: str, project: Project | None = None
) -> tuple[tuple[Case, ...], list[Diagnostic]]:
    """Load the cases of a file with this text."""
    (folder / "it.yaml").write_text(text)
    cases, problems = load_cases([folder / "it.yaml"], project or Project(), {"HOME": "here"})
    return cases, list(problems)


def load_problems(folder: Path, spec: str) -> list[tuple[str, str, str]]:
    """Return line and column, code, and text with hint of each diagnostic."""
    cases, problems = load_text(folder, HEAD + spec)
    assert not cases
    return [
        (str(p.place).rpartition("it.yaml:")[2], p.code, f"{p.detail} {p.hint}".strip()) for p in problems
    ]


def test_load_cases_reads_all_fields(tmp_path: Path) -> None:
    (first, second, third), problems = load_text(tmp_path, HEAD + WHOLE)
    assert problems == []
    assert (first.test, first.name, first.policy, first.message) == (
        "gold",
        "first",
        "factor",
        "three replicas",
    )
    assert (first.expect, str(first.place)) == (VerdictOutcome.DENY, f"{tmp_path}/it.yaml:11:13")
    request = first.request
    assert (request.action, request.name, request.principal) == (Action.MODIFY, "orders", "User:alice")
    assert request.labels == {"tier": "1", "keyed": "true"}
    assert request.changed == {"partitions", "configs.retention.ms"}
    before = {"retention.ms": "1000", "a": "b"}
    assert request.pre_request_state == CaseState("pre", 3, 3, {}, before, states_factor=True)
    after = {"cleanup.policy": "compact,delete"}
    assert request.post_request_state == CaseState("post", 6, 3, {}, after, states_factor=True)
    assert (request.racks, request.record_count) == ({1: "a", 2: None}, 5)
    assert request.partitions_of({"team": "blue"}) == 180
    assert request.partitions_of({"env": "prod", "team": "red"}) == 7
    impact = request.impact
    assert (impact.unread_records, impact.unread_groups, impact.last_write_ms) == (12, ["billing"], None)
    created = second.request
    replicas = {0: (1, 2), 1: (2, 3)}
    assert created.pre_request_state is None, "of the defaults, what a creation has not is left out"
    assert created.post_request_state == CaseState("post", 2, 2, replicas, {})
    assert (created.record_count, second.policy) == (0, None)
    assert (third.request.name, third.request.post_request_state) == ("other", None)
    assert third.request.pre_request_state == request.pre_request_state


def test_assignments_of_case_override_counts_of_defaults(tmp_path: Path) -> None:
    spec = """\
spec:
  defaults: {action: CREATE, topic: t, post: {partitions: 9, replicationFactor: 9, configs: {a: b}}}
  cases: [{name: it, request: {post: {assignments: {0: [1]}}}, expect: allow}]
"""
    [case], _ = load_text(tmp_path, HEAD + spec)
    assert case.request.post_request_state == CaseState("post", 1, 1, {0: (1,)}, {"a": "b"})


def test_case_references_resolve_project_variables(tmp_path: Path) -> None:
    environment = Environment(variables={"n": Variable(4, "4")})
    spec = """\
spec:
  cases:
    - name: it
      request: {action: CREATE, topic: "${env.HOME}", post: {partitions: "${var.n}"}}
      expect: allow
"""
    [case], problems = load_text(tmp_path, HEAD + spec, Project(environment=environment))
    assert problems == []
    assert case.request.name == "here"
    assert case.request.post_request_state == CaseState("post", 4, overrides={})
    _, [problem] = load_text(tmp_path, HEAD + spec)
    assert (problem.code, problem.place and problem.place.line) == ("undefined-variable", 7)


CASE = "spec:\n  cases:\n    - name: it\n      expect: deny\n      request:\n        action: CREATE\n"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("spec: {cases: []}\n", [("4:15", "bad-value", "'spec.cases' needs at least one element.")]),
        ("spec: {}\n", [("4:7", "missing-field", "'spec' needs a field 'cases'.")]),
        (
            f"{CASE}        topik: t\n",
            [
                (
                    "10:9",
                    "unknown-field",
                    "There is no field 'topik' in 'spec.cases[0].request'. Did you mean 'topic'?",
                )
            ],
        ),
        (
            CASE,
            [
                (
                    "9:9",
                    "missing-field",
                    "'request' of test case 'it' needs a field 'topic'. "
                    "Add 'topic' to the request or to 'spec.defaults'.",
                )
            ],
        ),
        (
            f"{CASE}        topic: t\n      expects: deny\n",
            [
                (
                    "11:7",
                    "unknown-field",
                    "There is no field 'expects' in 'spec.cases[0]'. Did you mean 'expect'?",
                )
            ],
        ),
        (
            CASE.replace("CREATE", "ALTER") + "        topic: t\n",
            [
                (
                    "9:17",
                    "bad-value",
                    "'spec.cases[0].request.action' takes CREATE, DELETE or MODIFY, not 'ALTER'.",
                )
            ],
        ),
        (
            f"{CASE}        topic: t\n        changed: [partition]\n",
            [
                (
                    "11:19",
                    "bad-value",
                    "'spec.cases[0].request.changed[0]': use partitions, replicationFactor, assignments or "
                    "configs.<key>, not 'partition' (did you mean 'partitions'?).",
                )
            ],
        ),
        (
            f"{CASE}        topic: t\n        partitionsOf: {{blue: 1}}\n",
            [
                (
                    "11:23",
                    "bad-value",
                    "'spec.cases[0].request.partitionsOf': write labels as in 'team=blue' or "
                    "'team=blue,tier=gold', not 'blue'.",
                )
            ],
        ),
    ],
)
def test_load_cases_reports_mistakes_with_position(
    tmp_path: Path, spec: str, found: list[tuple[str, str, str]]
) -> None:
    assert load_problems(tmp_path, spec) == found


@pytest.mark.parametrize(
    ("more", "place", "said"),
    [
        (
            "pre: {partitions: 1}",
            "11:14",
            "A CREATE request cannot have 'pre': the topic does not exist before the request.",
        ),
        ("records: 3", "11:18", "A CREATE request cannot have 'records': a new topic has no records."),
        (
            "impact: {records: 3}",
            "11:17",
            "A CREATE request cannot have 'impact': a new topic has no records and no consumers.",
        ),
        (
            "post: {partitions: 2, assignments: {0: [1], 2: [1]}}",
            "11:15",
            "'assignments' lists partition 2, but the topic has 2 partitions, numbered from 0.",
        ),
        (
            "post: {assignments: {1: [1]}}",
            "11:15",
            "'assignments' lists partition 1, but the topic has 1 partition",
        ),
        ("post: {assignments: {0: [1, 1]}}", "11:15", "'assignments' lists a broker twice for partition 0."),
        (
            "post: {replicationFactor: 3, assignments: {0: [1, 2]}}",
            "11:15",
            "'replicationFactor' is 3, but 'assignments' has 2 replicas.",
        ),
    ],
)
def test_load_cases_reports_contradictory_fields(tmp_path: Path, more: str, place: str, said: str) -> None:
    [(where, code, text)] = load_problems(tmp_path, f"{CASE}        topic: t\n        {more}\n")
    assert (where, code) == (place, "contradictory-case")
    assert said in text


def test_deletion_case_with_post_state_is_rejected(tmp_path: Path) -> None:
    spec = f"{CASE}        topic: t\n        post: {{partitions: 1}}\n".replace("CREATE", "DELETE")
    [(_, _, text)] = load_problems(tmp_path, spec)
    assert "A DELETE request cannot have 'post': the topic does not exist after the request." in text


@pytest.mark.parametrize(
    ("action", "more", "said"),
    [
        (
            "DELETE",
            "changed: [partitions]",
            "A DELETE request cannot have 'changed': a deletion changes no fields.",
        ),
        ("CREATE", "changed: []", "a CREATE request sets fields"),
        (
            "CREATE",
            "labelsBefore: {a: b}",
            "A CREATE request cannot have 'labelsBefore': the topic does not exist before the request.",
        ),
    ],
)
def test_changed_fields_impossible_for_action_are_rejected(
    tmp_path: Path, action: str, more: str, said: str
) -> None:
    spec = f"{CASE}        topic: t\n        {more}\n".replace("CREATE", action)
    [(_, code, text)] = load_problems(tmp_path, spec)
    assert code == "contradictory-case"
    assert said in text


def test_case_without_evaluation_cannot_expect_deny(tmp_path: Path) -> None:
    [(where, _, text)] = load_problems(tmp_path, f"{CASE}        topic: t\n      asked: false\n")
    assert where == "11:14"
    assert "the result cannot be deny" in text


def test_named_policy_is_expected_to_be_asked_by_default(tmp_path: Path) -> None:
    case = "{name: a, expect: allow, request: {action: CREATE, topic: t}"
    spec = f"spec:\n  cases:\n  - {case}}}\n  - {case}, policy: p}}\n  - {case}, policy: p, asked: false}}\n"
    cases, problems = load_text(tmp_path, HEAD + spec)
    assert problems == []
    assert [item.asked for item in cases] == [None, True, False]


def test_load_cases_reads_labels_before(tmp_path: Path) -> None:
    request = "{action: MODIFY, topic: t, labels: {a: b}, labelsBefore: {keyed: true}}"
    [case], _ = load_text(
        tmp_path, f"{HEAD}spec: {{cases: [{{name: a, expect: allow, request: {request}}}]}}\n"
    )
    assert (case.request.labels, case.request.labels_before) == ({"a": "b"}, {"keyed": "true"})


def test_case_that_expects_allow_rejects_message(tmp_path: Path) -> None:
    spec = f"{CASE}        topic: t\n      message: never\n".replace("deny", "allow")
    [(where, code, text)] = load_problems(tmp_path, spec)
    assert (where, code) == ("11:16", "contradictory-case")
    assert "A policy that allows a request has no message" in text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no-cases"),
        ("# nothing\n---\n", "no-cases"),
        ("- a list\n", "not-a-manifest"),
        ("apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: t}\nspec: {}\n", "unknown-kind"),
        ("a: [\n", "yaml-syntax"),
    ],
)
def test_load_cases_rejects_other_files(tmp_path: Path, text: str, code: str) -> None:
    cases, problems = load_text(tmp_path, text)
    assert not cases
    assert problems[0].code == code
    assert problems[0].place is not None


def test_load_cases_reports_missing_files_and_empty_folders(tmp_path: Path) -> None:
    def load_codes(path: Path, environ: Mapping[str, str] = {}) -> list[str]:
        return [p.code for p in load_cases([path], Project(), environ)[1]]

    assert load_codes(tmp_path / "nowhere.yaml") == ["no-such-path"]
    assert load_codes(tmp_path) == ["no-cases"], "a folder without any file"
    load_text(tmp_path, HEAD + WHOLE)
    assert len(load_cases([tmp_path], Project(), {})[0]) == 3
