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
from tests.unit.policy.doubles import State, created, modified, verdict

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


def project(folder: Path, *entries: str) -> Project:
    (folder / "own.py").write_text(SOURCE)
    file = folder / "kdeclare.yaml"
    file.write_text(PROJECT + "".join(f"    - {entry}\n" for entry in entries))
    return open_project(file, None, {})


def manifest(name: str, rule: str = "post.partitions > 1", line: int = 4) -> DesiredResource:
    spec = PolicySpec.model_validate({"rule": rule, "actions": ["CREATE"]})
    body, _ = PolicyKind().parse(name, spec)
    return DesiredResource(ResourceId("Policy", name), body, {}, SourcePosition("rules.yaml", line, 7))


def load(folder: Path, *entries: str, rules: tuple[DesiredResource, ...] = ()) -> Loaded:
    return load_policies(project(folder, *entries), rules, PolicyKind())


def told(diagnostics: tuple[Diagnostic, ...]) -> list[tuple[str, int, int]]:
    """Return code, line and column of each diagnostic."""
    return [(d.code, d.place.line, d.place.column) for d in diagnostics if d.place is not None]


def test_a_policy_of_the_project_file(tmp_path: Path) -> None:
    entry = (
        "{name: own, class: 'own:New', config: {max: 5}, severity: warn, actions: [CREATE, DELETE], "
        "selector: {topics: ['/or.*/'], labels: {tier: gold}}}"
    )
    (policy,), diagnostics = load(tmp_path, entry)
    assert diagnostics == ()
    assert (policy.name, policy.outcome) == ("own", VerdictOutcome.WARN)
    assert policy.actions == {Action.CREATE, Action.DELETE}
    assert policy.place == SourcePosition(str(tmp_path / "kdeclare.yaml"), 6, 14)
    assert policy.covers(created(State(), labels={"tier": "gold"}))
    assert not policy.covers(created(State(), topic="shop", labels={"tier": "gold"}))
    assert not policy.covers(modified(State(), State(), labels={"tier": "gold"}))
    assert verdict(policy.policy, created(State())) == "new [{'max': 5}]"
    assert not policy.bounded
    assert type(policy.policy).made == 1  # type: ignore[attr-defined]


def test_a_rule_and_a_manifest(tmp_path: Path) -> None:
    entry = "{name: size, class: 'kdeclare.policy.rules:PartitionBounds', config: {max: 5}}"
    (rule, own), diagnostics = load(tmp_path, entry, rules=(manifest("two"),))
    assert diagnostics == ()
    assert (rule.actions, rule.outcome, rule.bounded) == (EVERY_ACTION, VerdictOutcome.DENY, True)
    assert verdict(rule.policy, created(State(6))) == "orders would have 6 partitions; it may have at most 5."
    assert own.name == "two"
    assert verdict(own.policy, created(State(1))) is not None


def test_a_rule_around_a_class_of_ones_own(tmp_path: Path) -> None:
    entry = "{name: a, class: 'kdeclare.policy.rules:CreationRuleForLife', config: {class: 'lib.own:Old'}}"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/own.py").write_text(SOURCE)
    (policy,), diagnostics = load(tmp_path, entry)
    assert diagnostics == ()
    assert not policy.bounded
    assert verdict(policy.policy, created(State())) == "old"


def test_no_policies(tmp_path: Path) -> None:
    assert load_policies(Project(), (), PolicyKind()) == ((), ())


def test_a_manifest_with_an_error_has_been_told_of(tmp_path: Path) -> None:
    policies, diagnostics = load_policies(Project(), (manifest("bad", "post.partition > 1"),), PolicyKind())
    assert (policies, diagnostics) == ((), ())


class Refusing(PolicyKind):
    """A kind whose policies cannot be built, for a reason that reading them does not reveal."""

    def configured(self, desired: DesiredResource) -> ConfiguredPolicy:
        raise ValueError("odd")


def test_a_manifest_that_fails_later_is_no_policy_less(tmp_path: Path) -> None:
    policies, (found,) = load_policies(Project(), (manifest("a"),), Refusing())
    assert (policies, found.code, found.place) == ((), "policy-failed", SourcePosition("rules.yaml", 4, 7))
    assert found.detail.startswith("Policy 'a' cannot be used: ValueError: odd")


def test_a_class_that_only_says_to_be_ready_made_is_not_trusted_to_end(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE + "New.__module__ = 'kdeclare.policy.rules.topics'\n")
    (policy,), _ = load(tmp_path, "{name: a, class: 'mine:New'}")
    assert not policy.bounded


def test_both_deprecated_interfaces_in_one_class(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"{SOURCE}class Both(Old, Older): pass\n")
    (policy,), (found,) = load(tmp_path, "{name: a, class: 'mine:Both'}")
    assert "is a CreateTopicPolicy and AlterConfigPolicy, which" in found.detail
    assert verdict(policy.policy, created(State())) == "old"


@pytest.mark.parametrize("name", ["'a\\nb'", "' a'", "a/b", "a" * 101, "'a\\u202eb'"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    name = name.replace("'", '"')
    with pytest.raises(KdeclareError) as caught:
        project(tmp_path, f"{{name: {name}, class: 'own:New'}}")
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
def test_names(tmp_path: Path, name: str) -> None:
    assert project(tmp_path, f"{{name: {name}, class: 'own:New'}}").policies[0].name == name


@pytest.mark.parametrize(
    ("class_name", "meant"),
    [
        ("PartitionBounds", "kdeclare.policy.rules:PartitionBounds"),
        ("kdeclare.policy.rules.PartitionBounds", "kdeclare.policy.rules:PartitionBounds"),
        ("policies.naming.Naming", "policies.naming:Naming"),
    ],
)
def test_a_class_without_a_colon(tmp_path: Path, class_name: str, meant: str) -> None:
    with pytest.raises(KdeclareError, match=f"write a class as module.path:ClassName, for example {meant}"):
        project(tmp_path, f"{{name: a, class: {class_name}}}")


@pytest.mark.parametrize(
    ("entry", "code", "column", "detail"),
    [
        ("{name: a, class: 'own:Nw'}", "policy-not-found", 24, "'own' has no class 'Nw'."),
        ("{name: a, class: 'owm:New'}", "policy-not-found", 24, "The module 'owm' does not exist."),
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
            "'config.max' takes a whole number, not the text 'five'.",
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
            "'config.max' takes a whole number, not the text 'five'.",
        ),
        (
            "{name: a, class: 'own:New', selector: {topics: [b, '/[/']}}",
            "bad-pattern",
            58,
            "'/[/' is not valid: missing",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(
    tmp_path: Path, entry: str, code: str, column: int, detail: str
) -> None:
    well = "{name: well, class: 'own:New'}"
    policies, (found,) = load(tmp_path, entry, well)
    assert [p.name for p in policies] == ["well"]
    assert (found.code, found.severity) == (code, Severity.ERROR)
    assert found.place == SourcePosition(str(tmp_path / "kdeclare.yaml"), 6, column)
    assert found.detail.startswith("Policy 'a': ")
    assert detail in found.detail


def test_a_mistake_in_ones_own_code_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("\n\nfoo = bar\n")
    monkeypatch.chdir(tmp_path)
    _, (found,) = load(tmp_path, "{name: a, class: 'broken:A'}")
    assert found.detail.endswith("cannot be imported: NameError: name 'bar' is not defined (broken.py:3).")


@pytest.mark.parametrize(
    ("name", "interface"), [("Old", "CreateTopicPolicy"), ("Older", "AlterConfigPolicy")]
)
def test_a_deprecated_policy_works_and_is_warned_of(tmp_path: Path, name: str, interface: str) -> None:
    (policy,), (found,) = load(tmp_path, f"{{name: a, class: 'own:{name}'}}")
    assert verdict(policy.policy, created(State(configs={"flush.ms": "1"}))) == name.lower()
    assert (found.code, found.severity) == ("deprecated-policy", Severity.WARNING)
    assert found.detail == f"Policy 'a': 'own:{name}' is a {interface}, which KIP-201 deprecates."


def test_both_deprecated_ones_go_together(tmp_path: Path) -> None:
    policies, diagnostics = load(tmp_path, "{name: a, class: 'own:Old'}", "{name: b, class: 'own:Older'}")
    assert len(policies) == 2
    assert [d.code for d in diagnostics] == ["deprecated-policy"] * 2


def test_an_old_and_a_new_policy_are_a_conflict(tmp_path: Path) -> None:
    _, diagnostics = load(tmp_path, "{name: a, class: 'own:Old'}", "{name: b, class: 'own:New'}")
    errors = tuple(d for d in diagnostics if d.is_error)
    assert told(errors) == [("policy-conflict", 6, 24), ("policy-conflict", 7, 24)]
    assert f"'b' ({tmp_path / 'kdeclare.yaml'}:7:24)" in errors[0].detail
    assert f"'a' ({tmp_path / 'kdeclare.yaml'}:6:24)" in errors[1].detail


def test_an_old_policy_and_a_manifest_are_a_conflict(tmp_path: Path) -> None:
    _, diagnostics = load(tmp_path, "{name: a, class: 'own:Older'}", rules=(manifest("rule"),))
    errors = tuple(d for d in diagnostics if d.is_error)
    assert told(errors) == [("policy-conflict", 6, 24), ("policy-conflict", 4, 7)]


def test_a_manifest_and_an_entry_of_one_name(tmp_path: Path) -> None:
    _, (found,) = load(tmp_path, "{name: a, class: 'own:New'}", rules=(manifest("b"), manifest("a", line=9)))
    assert (found.code, found.place) == ("duplicate-policy", SourcePosition("rules.yaml", 9, 7))
    assert f"{tmp_path / 'kdeclare.yaml'}:6:14" in found.detail
