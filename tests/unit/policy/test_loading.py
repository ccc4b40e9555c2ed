"""Loading the policies of a project file and of manifests; mistakes are reported with their position."""

from pathlib import Path

import pytest
import yaml

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Severity, SourcePosition
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.manifests.project import Project, open_project
from kdeclare.policy.cel.manifest import PolicyKind, PolicySpec
from kdeclare.policy.configured_policy import EVERY_ACTION, ConfiguredPolicy
from kdeclare.policy.interface import Action
from kdeclare.policy.loading.load_policies import load_policies
from tests.unit.policy.doubles import State, find_violation, make_creation, make_modification

pytestmark = pytest.mark.usefixtures("own_modules")

PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: shop}
spec:
  policies:
"""

SOURCE = """\
from kdeclare.policy import AlterConfigPolicy, CreateTopicPolicy, PolicyViolation, TopicActionsPolicy

class New(TopicActionsPolicy):
    made = 0
    log = []
    def __init__(self):
        New.made += 1
    def configure(self, configs):
        self.log.append(dict(configs))
    def validate(self, request):
        raise PolicyViolation(f"new {self.log}")

class Old(CreateTopicPolicy):
    def validate(self, request):
        raise PolicyViolation("old")

class Older(AlterConfigPolicy):
    def validate(self, request):
        raise PolicyViolation("older")

class Failing(New):
    def configure(self, configs):
        raise RuntimeError("out of order")
"""

Loaded = tuple[tuple[ConfiguredPolicy, ...], tuple[Diagnostic, ...]]


def make_project(folder: Path, *entries: str) -> Project:
    (folder / "own.py").write_text(SOURCE)
    file = folder / "kdeclare.yaml"
    file.write_text(PROJECT + "".join(f"    - {entry}\n" for entry in entries))
    return open_project(file, None, {})


def make_manifest(name: str, rule: str = "post.partitions > 1", line: int = 4) -> DesiredResource:
    spec = PolicySpec.model_validate({"rule": rule, "actions": ["CREATE"]})
    body, _ = PolicyKind().parse(name, spec)
    return DesiredResource(ResourceId("Policy", name), body, {}, SourcePosition("rules.yaml", line, 7))


def load_entries(folder: Path, *entries: str, rules: tuple[DesiredResource, ...] = ()) -> Loaded:
    return load_policies(make_project(folder, *entries), rules, PolicyKind())


def get_positions(diagnostics: tuple[Diagnostic, ...]) -> list[tuple[str, int, int]]:
    """Return code, line and column of each diagnostic."""
    return [(d.code, d.place.line, d.place.column) for d in diagnostics if d.place is not None]


def test_load_policies_reads_project_file(tmp_path: Path) -> None:
    entry = (
        "{name: own, class: 'own:New', config: {max: 5}, severity: warn, actions: [CREATE, DELETE], "
        "selector: {topics: ['/or.*/'], labels: {tier: gold}}}"
    )
    (policy,), diagnostics = load_entries(tmp_path, entry)
    assert diagnostics == ()
    assert (policy.name, policy.outcome) == ("own", VerdictOutcome.WARN)
    assert policy.actions == {Action.CREATE, Action.DELETE}
    assert policy.place == SourcePosition(str(tmp_path / "kdeclare.yaml"), 6, 14)
    assert policy.covers(make_creation(State(), labels={"tier": "gold"}))
    assert not policy.covers(make_creation(State(), topic="shop", labels={"tier": "gold"}))
    assert not policy.covers(make_modification(State(), State(), labels={"tier": "gold"}))
    assert find_violation(policy.policy, make_creation(State())) == "new [{'max': 5}]"
    assert not policy.bounded
    assert type(policy.policy).made == 1  # type: ignore[attr-defined]


def test_load_policies_combines_ready_made_rule_and_manifest(tmp_path: Path) -> None:
    entry = "{name: size, class: 'kdeclare.policy.rules:PartitionBounds', config: {max: 5}}"
    (rule, own), diagnostics = load_entries(tmp_path, entry, rules=(make_manifest("two"),))
    assert diagnostics == ()
    assert (rule.actions, rule.outcome, rule.bounded) == (EVERY_ACTION, VerdictOutcome.DENY, True)
    assert (
        find_violation(rule.policy, make_creation(State(6)))
        == "orders would have 6 partitions; it may have at most 5."
    )
    assert own.name == "two"
    assert find_violation(own.policy, make_creation(State(1))) is not None


def test_load_policies_wraps_own_class_in_ready_made_rule(tmp_path: Path) -> None:
    entry = "{name: a, class: 'kdeclare.policy.rules:CreationRuleForLife', config: {class: 'lib.own:Old'}}"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/own.py").write_text(SOURCE)
    (policy,), diagnostics = load_entries(tmp_path, entry)
    assert diagnostics == ()
    assert not policy.bounded
    assert find_violation(policy.policy, make_creation(State())) == "old"


def test_load_policies_without_policies_returns_nothing(tmp_path: Path) -> None:
    assert load_policies(Project(), (), PolicyKind()) == ((), ())


def test_load_policies_skips_manifest_with_reported_error(tmp_path: Path) -> None:
    policies, diagnostics = load_policies(
        Project(), (make_manifest("bad", "post.partition > 1"),), PolicyKind()
    )
    assert (policies, diagnostics) == ((), ())


class UnbuildablePolicyKind(PolicyKind):
    """A kind whose policies cannot be built, for a reason that reading them does not reveal."""

    def configured(self, desired: DesiredResource) -> ConfiguredPolicy:
        raise ValueError("odd")


def test_load_policies_reports_manifest_that_cannot_be_configured(tmp_path: Path) -> None:
    policies, (found,) = load_policies(Project(), (make_manifest("a"),), UnbuildablePolicyKind())
    assert (policies, found.code, found.place) == ((), "policy-failed", SourcePosition("rules.yaml", 4, 7))
    assert found.detail.startswith("Policy 'a' cannot be loaded: ValueError: odd")


def test_class_that_claims_to_be_ready_made_is_not_bounded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE + "New.__module__ = 'kdeclare.policy.rules.topics'\n")
    (policy,), _ = load_entries(tmp_path, "{name: a, class: 'mine:New'}")
    assert not policy.bounded


def test_class_with_both_deprecated_interfaces_is_loaded_with_warning(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"{SOURCE}class Both(Old, Older): pass\n")
    (policy,), (found,) = load_entries(tmp_path, "{name: a, class: 'mine:Both'}")
    assert "is a CreateTopicPolicy and AlterConfigPolicy, which" in found.detail
    assert find_violation(policy.policy, make_creation(State())) == "old"


@pytest.mark.parametrize("name", ["'a\\nb'", "' a'", "a/b", "a" * 101, "'a\\u202eb'"])
def test_illegal_policy_names_are_rejected(tmp_path: Path, name: str) -> None:
    name = name.replace("'", '"')
    with pytest.raises(KdeclareError) as caught:
        make_project(tmp_path, f"{{name: {name}, class: 'own:New'}}")
    (found,) = caught.value.diagnostics
    assert (found.code, found.place) == (
        "illegal-name",
        SourcePosition(str(tmp_path / "kdeclare.yaml"), 6, 14),
    )
    _, problems = PolicyKind().parse(
        yaml.safe_load(name), PolicySpec(rule="post.partitions > 1", actions=["CREATE"])
    )
    assert [(p.path, p.diagnostic.code) for p in problems] == [(("metadata", "name"), "illegal-name")]


@pytest.mark.parametrize("name", ["a", "Größe 2.0", "a_b-c.d e", "a" * 100])
def test_legal_policy_names_are_accepted(tmp_path: Path, name: str) -> None:
    assert make_project(tmp_path, f"{{name: {name}, class: 'own:New'}}").policies[0].name == name


@pytest.mark.parametrize(
    ("class_name", "meant"),
    [
        ("PartitionBounds", "kdeclare.policy.rules:PartitionBounds"),
        ("kdeclare.policy.rules.PartitionBounds", "kdeclare.policy.rules:PartitionBounds"),
        ("policies.naming.Naming", "policies.naming:Naming"),
    ],
)
def test_class_without_colon_is_rejected_with_suggestion(tmp_path: Path, class_name: str, meant: str) -> None:
    with pytest.raises(KdeclareError, match=f"write a class as module.path:ClassName, for example {meant}"):
        make_project(tmp_path, f"{{name: a, class: {class_name}}}")


@pytest.mark.parametrize(
    ("entry", "code", "column", "detail"),
    [
        ("{name: a, class: 'own:Nw'}", "policy-not-found", 24, "'own' has no class 'Nw'."),
        ("{name: a, class: 'owm:New'}", "policy-not-found", 24, "The module 'owm' does not exist."),
        (f"{{name: a, class: '{'owm' * 99}:New'}}", "policy-not-found", 24, "does not exist."),
        ("{name: a, class: 'own:PolicyViolation'}", "not-a-policy", 24, "is not a subclass of"),
        ("{name: a, class: 'own:Failing'}", "policy-failed", 7, "RuntimeError: out of order ("),
        ("{name: a, class: 'own:Failing', config: {}}", "policy-failed", 47, "RuntimeError: out of order ("),
        (
            "{name: a, class: 'kdeclare.policy.rules:PartitionBounds', config: {maxi: 5, min: 1}}",
            "unknown-field",
            74,
            "There is no field 'maxi' in 'config'.",
        ),
        (
            "{name: a, class: 'kdeclare.policy.rules:PartitionBounds', config: {max: five}}",
            "wrong-type",
            79,
            "'config.max' takes a whole number, not the string 'five'.",
        ),
        (
            "{name: a, class: 'kdeclare.policy.rules:BoundedConfigs', "
            "config: {configs: {flush.ms: {mn: 5, max: 5}}}}",
            "unknown-field",
            94,
            "There is no field 'mn' in 'config.configs.flush.ms'.",
        ),
        (
            "{name: a, class: 'kdeclare.policy.rules:NamePattern', config: {pattern: '[a'}}",
            "bad-value",
            79,
            "'config.pattern': this is not a regular expression (RE2): missing ]",
        ),
        (
            "{name: a, class: 'kdeclare.policy.rules:CreationRuleForLife', "
            "config: {class: 'kdeclare.policy.rules:PartitionBounds', config: {max: five}}}",
            "wrong-type",
            140,
            "'config.max' takes a whole number, not the string 'five'.",
        ),
        (
            "{name: a, class: 'own:New', selector: {topics: [b, '/[/']}}",
            "bad-pattern",
            58,
            "'/[/' is not valid: missing",
        ),
    ],
)
def test_load_policies_reports_mistake_with_position(
    tmp_path: Path, entry: str, code: str, column: int, detail: str
) -> None:
    well = "{name: well, class: 'own:New'}"
    policies, (found,) = load_entries(tmp_path, entry, well)
    assert [p.name for p in policies] == ["well"]
    assert (found.code, found.severity) == (code, Severity.ERROR)
    assert found.place == SourcePosition(str(tmp_path / "kdeclare.yaml"), 6, column)
    assert found.detail.startswith("Policy 'a': ")
    assert detail in found.detail


def test_load_policies_reports_import_error_with_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("\n\nfoo = bar\n")
    monkeypatch.chdir(tmp_path)
    _, (found,) = load_entries(tmp_path, "{name: a, class: 'broken:A'}")
    assert found.detail.endswith("cannot be imported: NameError: name 'bar' is not defined (broken.py:3).")


@pytest.mark.parametrize(
    ("name", "interface"), [("Old", "CreateTopicPolicy"), ("Older", "AlterConfigPolicy")]
)
def test_deprecated_policy_is_loaded_with_warning(tmp_path: Path, name: str, interface: str) -> None:
    (policy,), (found,) = load_entries(tmp_path, f"{{name: a, class: 'own:{name}'}}")
    assert find_violation(policy.policy, make_creation(State(configs={"flush.ms": "1"}))) == name.lower()
    assert (found.code, found.severity) == ("deprecated-policy", Severity.WARNING)
    assert found.detail == f"Policy 'a': 'own:{name}' is a {interface}, which KIP-201 deprecates."


def test_two_deprecated_policies_do_not_conflict(tmp_path: Path) -> None:
    policies, diagnostics = load_entries(
        tmp_path, "{name: a, class: 'own:Old'}", "{name: b, class: 'own:Older'}"
    )
    assert len(policies) == 2
    assert [d.code for d in diagnostics] == ["deprecated-policy"] * 2


def test_deprecated_and_new_policy_conflict(tmp_path: Path) -> None:
    _, diagnostics = load_entries(tmp_path, "{name: a, class: 'own:Old'}", "{name: b, class: 'own:New'}")
    errors = tuple(d for d in diagnostics if d.is_error)
    assert get_positions(errors) == [("policy-conflict", 6, 24), ("policy-conflict", 7, 24)]
    assert f"'b' ({tmp_path / 'kdeclare.yaml'}:7:24)" in errors[0].detail
    assert f"'a' ({tmp_path / 'kdeclare.yaml'}:6:24)" in errors[1].detail


def test_deprecated_policy_and_manifest_conflict(tmp_path: Path) -> None:
    _, diagnostics = load_entries(tmp_path, "{name: a, class: 'own:Older'}", rules=(make_manifest("rule"),))
    errors = tuple(d for d in diagnostics if d.is_error)
    assert get_positions(errors) == [("policy-conflict", 6, 24), ("policy-conflict", 4, 7)]


def test_manifest_and_project_entry_of_same_name_are_duplicates(tmp_path: Path) -> None:
    _, (found,) = load_entries(
        tmp_path, "{name: a, class: 'own:New'}", rules=(make_manifest("b"), make_manifest("a", line=9))
    )
    assert (found.code, found.place) == ("duplicate-policy", SourcePosition("rules.yaml", 9, 7))
    assert f"{tmp_path / 'kdeclare.yaml'}:6:14" in found.detail
