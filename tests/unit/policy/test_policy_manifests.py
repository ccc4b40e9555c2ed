"""Policies in manifests, from the file to the verdict; mistakes have exact positions."""

import pickle
import re
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import Project, open_project
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import EVERY_ACTION, EVERYTHING, ConfiguredPolicy
from kdeclare.policy.interface import Action
from tests.unit.policy.doubles import State, find_violation, make_creation, make_deletion, make_modification

KIND = PolicyKind()
HEAD = "apiVersion: kdeclare/v1\nkind: Policy\nmetadata: {name: p}\nspec:\n"


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load_policy(spec: str, head: str = HEAD) -> LoadedManifests:
    Path("p.yaml").write_text(head + spec)
    return load_project_manifests(Project(), [Path("p.yaml")], {}, {"MIN": "3"}, rules={"Policy": KIND})


def load_problems(spec: str, head: str = HEAD) -> list[tuple[int, int, str]]:
    """Return line and column, counted from the first field of ``spec``, and the detail."""
    found = load_policy(spec, head).diagnostics
    lines = head.count("\n")
    return [(d.place.line - lines, d.place.column, d.detail) for d in found if d.place]


def configure_policy(spec: str) -> ConfiguredPolicy:
    result = load_policy(spec)
    assert not result.diagnostics
    [rule] = result.rules
    return KIND.configured(pickle.loads(pickle.dumps(rule)))


def test_policy_manifest_gives_verdicts() -> None:
    item = configure_policy(
        "  severity: warn\n  actions: [CREATE, MODIFY]\n  selector: {topics: ['/.*/'], labels: {tier: 1}}\n"
        "  rule: post.replicationFactor >= 3\n  message: gold topics need three replicas\n"
    )
    assert (item.name, item.outcome, item.bounded) == ("p", VerdictOutcome.WARN, True)
    assert item.place == SourcePosition("p.yaml", 3, 18)
    assert item.actions == {Action.CREATE, Action.MODIFY}
    small, large = State(1, 2), State(1, 3)
    assert item.covers(make_creation(small, labels={"tier": "1"}))
    assert not item.covers(make_creation(small))
    assert not item.covers(make_deletion(small, labels={"tier": "1"}))
    assert find_violation(item.policy, make_creation(small)) == "gold topics need three replicas"
    assert find_violation(item.policy, make_modification(small, large)) is None


def test_policy_manifest_has_defaults() -> None:
    item = configure_policy("  rule: |\n    topic\n      != 'orders'\n")
    assert (item.outcome, item.actions, item.selector) == (VerdictOutcome.DENY, EVERY_ACTION, EVERYTHING)
    assert find_violation(item.policy, make_creation(State())) == "The rule is violated: topic != 'orders'"
    long = configure_policy(f"  rule: topic != 'orders' && topic != '{'x' * 500}'\n")
    assert len(find_violation(long.policy, make_creation(State())) or "") < 230


def test_rule_resolves_references() -> None:
    item = configure_policy("  actions: [CREATE]\n  rule: post.partitions >= ${env.MIN}\n")
    assert (
        find_violation(item.policy, make_creation(State(2))) == "The rule is violated: post.partitions >= 3"
    )
    assert find_violation(item.policy, make_creation(State(3))) is None


@pytest.mark.parametrize(
    ("spec", "line", "column", "detail"),
    [
        ("  rule: topic == 'a' && foo", 1, 25, "The name 'foo' is not defined."),
        ("  rule: topic == 'a' and true", 1, 22, "'and' is not expected here."),
        ("  rule: 'topic == ''a'' && foo'", 1, 28, "The name 'foo' is not defined."),
        ('  rule: "topic == \\"a\\" &&\\n foo"', 1, 30, "The name 'foo' is not defined."),
        (
            "  rule: |\n    topic == 'a' &&\n      post.partition > 3\n",
            3,
            12,
            "'post' has no field 'partition'.",
        ),
        ("  rule: |-\n\n      true &&\n    # no comment\n", 3, 14, "The rule ends too early"),
        (
            "  rule: |\n    true ||\n    // a comment\n    labels.x > 3\n",
            4,
            14,
            "'>' does not accept a string and",
        ),
        ("  rule: post.partitions >   # more", 1, 26, "The rule ends too early"),
        ("  rule: |\n    post.partitions >\n\n", 2, 22, "The rule ends too early"),
        ("  rule: >\n    true &&\n    foo\n", 1, 9, "The name 'foo' is not defined."),
        ("  rule: topic.matches('(')", 1, 23, "This is not a valid regular expression: missing ) in '('."),
        (
            "  rule: post.partitions",
            1,
            9,
            "A rule must return true or false, but this rule returns a whole number.",
        ),
        ("  rule: true", 1, 9, "'spec.rule' takes a string, not true."),
        ('  rule: ""', 1, 9, "'spec.rule' needs at least one character."),
        ("  rule: topic != ''\n  rul: a", 2, 3, "There is no field 'rul' in 'spec'."),
        ("  rule: topic != ''\n  severity: error", 2, 13, "'spec.severity' takes deny or warn"),
        ("  rule: topic != ''\n  actions: []", 2, 12, "'spec.actions' needs at least one element."),
        ("  rule: topic != ''\n  actions: [create]", 2, 13, "takes CREATE, DELETE or MODIFY, not 'create'."),
        ("  rule: topic != ''\n  message: ''", 2, 12, "'spec.message' needs at least one character."),
        (
            "  rule: topic != ''\n  selector: {topics: [a, '/(/']}",
            2,
            26,
            "'/(/' is not valid: missing",
        ),
        ("  message: a", 1, 3, "'spec' needs a field 'rule'."),
    ],
)
def test_policy_manifest_reports_mistake_with_position(
    spec: str, line: int, column: int, detail: str
) -> None:
    [(at_line, at_column, text)] = load_problems(spec)
    assert (at_line, at_column) == (line, column)
    assert detail in text


def test_policy_manifest_reports_mistakes_of_several_fields() -> None:
    found = load_problems("  severity: error\n  rule: foo && bar\n")
    assert [(line, column) for line, column, _ in found] == [(1, 13), (2, 9), (2, 16)]


def test_policy_name_broker_is_reserved() -> None:
    result = load_policy("  rule: topic != ''\n", HEAD.replace("{name: p}", "{name: broker}"))
    assert [(d.code, d.place) for d in result.diagnostics] == [
        ("reserved-name", SourcePosition("p.yaml", 3, 18))
    ]


@pytest.mark.parametrize(
    ("actions", "rule", "hint"),
    [
        (
            "",
            "post.partitions > 1",
            "Limit the policy with actions: [CREATE, MODIFY], or write post == null || ….",
        ),
        (
            "",
            "pre.partitions > 1",
            "Limit the policy with actions: [MODIFY, DELETE], or write pre == null || ….",
        ),
        (
            "",
            "post.partitions > pre.partitions",
            "Limit the policy with actions: [MODIFY], or write pre == null || post == null || ….",
        ),
        (
            "",
            "pre == null || post.partitions > pre.partitions",
            "Limit the policy with actions: [CREATE, MODIFY], or",
        ),
        ("[DELETE]", "post.partitions > 1", "Write 'pre', which is the topic before the change."),
        ("[CREATE]", "pre.partitions > 1", "Write 'post', which is the topic after the change."),
        (
            "[CREATE, DELETE]",
            "topic == 'a' || 'x' in post.configs",
            "Limit the policy with actions: [CREATE], or",
        ),
    ],
)
def test_rule_with_state_missing_for_some_actions_is_rejected(actions: str, rule: str, hint: str) -> None:
    stated = f"  actions: {actions}\n" if actions else ""
    [found] = load_policy(f'{stated}  rule: "{rule}"\n').diagnostics
    assert found.code == "invalid-rule"
    assert "is null on" in found.detail
    assert hint in found.hint
    assert found.place == SourcePosition("p.yaml", 6 if actions else 5, 9)


@pytest.mark.parametrize(
    ("actions", "rule"),
    [
        ("[CREATE, MODIFY]", "post.partitions > 1"),
        ("[MODIFY, DELETE]", "pre.partitions > 1"),
        ("[MODIFY]", "pre.partitions > post.partitions"),
        ("[CREATE, MODIFY, DELETE]", "post == null || post.partitions > 1"),
        ("[CREATE, MODIFY, DELETE]", "action == 'DELETE' || post.partitions > 1"),
        ("[CREATE, MODIFY, DELETE]", "pre != null ? pre.partitions > 1 : topic != 'post.partitions'"),
    ],
)
def test_rule_with_guarded_state_is_accepted(actions: str, rule: str) -> None:
    assert not load_policy(f'  actions: {actions}\n  rule: "{rule}"\n').diagnostics


def test_policy_manifest_with_mistake_cannot_be_configured() -> None:
    result = load_policy("  rule: foo\n")
    assert result.has_errors
    with pytest.raises(Exception, match="name 'foo'"):
        KIND.configured(result.rules[0])


def test_policies_apply_to_any_loaded_part_of_project() -> None:
    Path("manifests").mkdir()
    Path("kdeclare.yaml").write_text(
        "{apiVersion: kdeclare/v1, kind: Project, metadata: {name: p}, spec: {}}"
    )
    Path("manifests/p.yaml").write_text(HEAD + "  rule: topic != 'a'\n")
    Path("manifests/q.yaml").write_text(HEAD.replace("name: p", "name: q") + "  rule: foo\n")
    Path("other.yaml").write_text(HEAD.replace("name: p", "name: o") + "  rule: topic != 'b'\n")
    result = load_project_manifests(
        open_project(None, None, {}), [Path("other.yaml")], {}, {}, rules={"Policy": KIND}
    )
    assert [str(rule.id) for rule in result.rules] == ["Policy/o", "Policy/p", "Policy/q"]
    assert [str(d.place) for d in result.diagnostics] == ["manifests/q.yaml:5:9"]


def test_policy_manifest_import_does_not_load_cel() -> None:
    import subprocess
    import sys

    code = "import sys, kdeclare.policy.cel.manifest; print([m for m in sys.modules if m.startswith('cel')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\[\]\s*", done.stdout)
