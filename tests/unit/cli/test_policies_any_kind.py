"""Rules about kinds of providers that kdeclare does not know."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from kdeclare.policy.cel.rule import RuleError, compile_rule
from tests.unit.cli.command_line import CommandLine
from tests.unit.policy.conftest import own_modules
from tests.unit.policy.kettles import Kitchen, kitchen

__all__ = ["kitchen", "own_modules"]

pytestmark = pytest.mark.usefixtures("kitchen")

LUKEWARM = {
    "rule": "after.heat <= 90 || labels.tier == 'gold'",
    "message": "No more than 90 degrees.",
    "actions": ["CREATE", "MODIFY"],
    "selector": {"kind": "Kettle"},
}


@pytest.fixture
def kdeclare(kdeclare: CommandLine) -> CommandLine:
    kdeclare.write("manifests/lukewarm.yaml", "Policy", "lukewarm", **LUKEWARM)
    return kdeclare


def declare_kettle(
    kdeclare: CommandLine, name: str, labels: Mapping[str, str] | None = None, **spec: Any
) -> None:
    metadata = {"name": name, "labels": {"tier": "tin"} | dict(labels or {})}
    document = {"apiVersion": "kdeclare/v1", "kind": "Kettle", "metadata": metadata, "spec": spec}
    (kdeclare.folder / "manifests" / f"{name}.yaml").write_text(yaml.safe_dump(document))


def write_rule(kdeclare: CommandLine, **more: Any) -> None:
    kdeclare.write("manifests/lukewarm.yaml", "Policy", "lukewarm", **{**LUKEWARM, **more})


def test_plan_and_apply_deny_violating_resource(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    declare_kettle(kdeclare, "hot", heat=100)
    declare_kettle(kdeclare, "mild", heat=80)
    kdeclare.topic("orders", partitions=1)
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "Kettle/hot  BLOCKED: policy-violation" in ran.out
    assert "denied by policy lukewarm: No more than 90 degrees." in ran.out
    assert kdeclare("apply", "--yes").code == 3
    assert kitchen.kettles == {"mild": {"heat": 80, "extras": {}}}
    assert "orders" in kdeclare.cluster.topics()


def test_override_applies_change_and_is_in_history(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    declare_kettle(kdeclare, "hot", heat=100)
    ran = kdeclare("apply", "--yes", "--override-policy", "lukewarm", "--reason", "agreed")
    assert ran.code == 0, ran.out + ran.err
    assert kitchen.kettles["hot"]["heat"] == 100
    [run] = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert "policy lukewarm on Kettle/hot: agreed" in kdeclare("history", run["run_id"]).out


def test_modification_rule_compares_with_live_state(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    write_rule(kdeclare, rule="after.heat >= before.heat && 'heat' in changed", actions=["MODIFY"])
    kitchen.kettles["k"] = {"heat": 50, "extras": {}}
    declare_kettle(kdeclare, "k", heat=60)
    assert kdeclare("plan", "--adopt").code == 0
    declare_kettle(kdeclare, "k", heat=40)
    assert kdeclare("plan", "--adopt").code == 3


def test_rule_sees_complete_mappings_before_and_after(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    expression = "before.extras == {'lid': 'red', 'whistle': 'b'} && after.extras == {'whistle': 'c'}"
    write_rule(
        kdeclare, rule=f"{expression} && changed == ['extras.lid', 'extras.whistle']", actions=["MODIFY"]
    )
    kitchen.kettles["k"] = {"heat": 50, "extras": {"lid": "red", "whistle": "b"}}
    declare_kettle(kdeclare, "k", heat=50, extras={"whistle": "c"})
    ran = kdeclare("plan", "--adopt")
    assert ran.code == 0, ran.out


def test_deletion_rule_uses_last_applied_labels(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    declare_kettle(kdeclare, "k", {"tier": "gold"}, heat=10)
    declare_kettle(kdeclare, "stays", heat=10)
    assert kdeclare("apply", "--yes").code == 0
    kept = "resource.labels.tier != 'gold' || before.heat != 10 || resource.kind != 'Kettle'"
    write_rule(kdeclare, rule=kept, actions=["DELETE"])
    (kdeclare.folder / "manifests" / "k.yaml").unlink()
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 3
    assert kitchen.kettles.keys() == {"k", "stays"}
    write_rule(kdeclare, rule="resource.name != 'k' || resource.labels.tier == 'gold'", actions=["DELETE"])
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 0
    assert kitchen.kettles.keys() == {"stays"}


def test_rule_ignores_other_kinds_and_names(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    write_rule(kdeclare, rule="false", selector={"kind": "Kettle", "names": ["/x.*/"]})
    kdeclare.topic("xerxes", partitions=1)
    declare_kettle(kdeclare, "other", heat=100)
    assert kdeclare("plan").code == 0
    declare_kettle(kdeclare, "x1", heat=100)
    assert kdeclare("plan").code == 3


def test_policy_check_evaluates_manifests_offline(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    declare_kettle(kdeclare, "hot", heat=100)
    declare_kettle(kdeclare, "open")
    ran = kdeclare("policy", "check")
    assert ran.code == 3
    assert ran.out.splitlines()[0] == "1 of 2 resources violates a policy."
    assert "policy lukewarm on Kettle/open" in ran.out
    assert kitchen.reads == 0
    ran = kdeclare("validate")
    assert ran.code == 3
    assert "Kettle/hot, policy 'lukewarm': No more than 90 degrees." in ran.out + ran.err


def test_policy_check_live_evaluates_all_live_objects(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    kitchen.kettles |= {"a": {"heat": 95, "extras": {}}, "b": {"heat": 20, "extras": {}}}
    declare_kettle(kdeclare, "c", heat=100)
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 3
    assert ran.out.splitlines()[0] == "1 of 2 resources violates a policy."
    # it has no labels, so the rule cannot be evaluated there
    assert "Kettle/a" in ran.out
    assert kitchen.reads == 1
    declare_kettle(kdeclare, "a", {"tier": "gold"}, heat=95)
    assert kdeclare("policy", "check", "--live").code == 0


def test_policy_check_live_uses_declared_name_and_labels(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    write_rule(kdeclare, selector={"kind": "Urn"})
    kitchen.kettles |= {serial: {"heat": 95, "extras": {}} for serial in ("s-1", "s-2")}
    declare_kettle(kdeclare, "gold one", {"tier": "gold"}, serial="s-1")
    document = (kdeclare.folder / "manifests" / "gold one.yaml").read_text()
    (kdeclare.folder / "manifests" / "gold one.yaml").write_text(document.replace("Kettle", "Urn"))
    ran = kdeclare("policy", "check", "--live", "--format", "json")
    verdicts = {item["resource"]: item["outcome"] for item in json.loads(ran.out)["verdicts"]}
    assert verdicts == {"Urn/gold one": "allow", "Urn/s-2": "deny"}


def test_policy_check_evaluates_topics_and_foreign_kinds_together(
    kdeclare: CommandLine, kitchen: Kitchen
) -> None:
    wide = {"rule": "post.partitions < 3", "actions": ["CREATE", "MODIFY"]}
    kdeclare.write("manifests/wide.yaml", "Policy", "wide", **wide)
    kdeclare.topic("orders", partitions=5)
    declare_kettle(kdeclare, "hot", heat=100)
    assert kdeclare("policy", "check").out.splitlines()[0] == "2 of 2 resources violate a policy."


def test_policy_check_live_fails_for_unavailable_system(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    kitchen.broken = True
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 1
    assert "There is no power" in ran.err


def make_case(expect: str, **request: Any) -> dict[str, Any]:
    asked = {"kind": "Kettle", "name": "k", "labels": {"tier": "tin"}}
    return {"name": f"{request}", "expect": expect, "request": {**asked, **request}}


def test_policy_test_runs_cases_of_foreign_kind(kdeclare: CommandLine) -> None:
    found = [
        make_case("allow", action="CREATE", after={"heat": 10}),
        make_case("deny", action="MODIFY", before={"heat": 10}, after={"heat": 95}),
        make_case("allow", action="DELETE", before={"heat": 99}),
        make_case("allow", action="CREATE", after={"heat": 99}, labels={"tier": "gold"}),
    ]
    kdeclare.write("cases.yaml", "PolicyTest", "kettles", cases=found)
    ran = kdeclare("policy", "test", "cases.yaml")
    assert (ran.code, ran.out) == (0, "4 cases: 4 passed.\n")
    kdeclare.write(
        "cases.yaml", "PolicyTest", "kettles", cases=[make_case("allow", action="CREATE", after={})]
    )
    ran = kdeclare("policy", "test", "cases.yaml")
    assert ran.code == 1
    assert "policy lukewarm reads 'after.heat', which the case does not set" in ran.out


def test_policy_test_derives_changed_from_states(kdeclare: CommandLine) -> None:
    write_rule(kdeclare, rule="changed == ['extras.lid', 'heat']", actions=["MODIFY"])
    states = {
        "before": {"heat": 1, "extras": {"lid": "a", "w": "x"}},
        "after": {"heat": 2, "extras": {"w": "x"}},
    }
    found = [
        make_case("allow", action="MODIFY", **states),
        make_case("deny", action="MODIFY", **states, changed=["heat"]),
    ]
    kdeclare.write("cases.yaml", "PolicyTest", "kettles", cases=found)
    assert kdeclare("policy", "test", "cases.yaml").code == 0


@pytest.mark.parametrize(
    ("request_", "at", "said"),
    [
        ("{kind: Kettle, action: CREATE, name: k, topic: t}", "t}", "cannot have 'topic'. Use 'name'."),
        ("{kind: Kettel, action: CREATE, name: k}", "Kettel", "Did you mean 'Kettle'?"),
        ("{kind: Kettle, action: CREATE}", "{kind", "needs a field 'name'"),
        ("{kind: Kettle, action: CREATE, name: k, after: {heta: 1}}", "1}", "Did you mean 'heat'?"),
        (
            "{kind: Kettle, action: MODIFY, name: k, changed: [partitions]}",
            "partitions",
            "Kettle has no field 'partitions' that can change",
        ),
        ("{kind: Kettle, action: DELETE, name: k, after: {}}", "after", ""),
        ("{action: CREATE, topic: k, name: k}", "k}", "cannot have 'name'. Use 'topic'."),
    ],
)
def test_policy_test_reports_invalid_case_with_position(
    kdeclare: CommandLine, request_: str, at: str, said: str
) -> None:
    head = "apiVersion: kdeclare/v1\nkind: PolicyTest\nmetadata: {name: t}\nspec:\n  cases:\n"
    line = f"      request: {request_}\n"
    (kdeclare.folder / "cases.yaml").write_text(f"{head}    - name: it\n{line}      expect: allow\n")
    ran = kdeclare("policy", "test", "cases.yaml")
    if not said:
        assert ran.code == 0, ran.err
        return
    assert ran.code == 1
    assert said in " ".join(ran.err.split())
    assert f"cases.yaml:7:{line.index(at) + 1}" in ran.err


@pytest.mark.parametrize(
    ("selector", "at", "said"),
    [
        ("{kind: Kettel}", "Kettel", "Did you mean 'Kettle'?"),
        ("{kind: Teapot}", "Teapot", "Policies cannot check resources of kind Teapot"),
        ("{kind: Reassignment}", "Reassignment", "Policies cannot check resources of kind Reassignment"),
        ("{kind: Kettle, topics: [a]}", "[a]", "Use 'names' instead of 'topics'."),
        ("{kind: Kettle, names: ['/(/']}", "'/(/'", "missing ) in '('"),
        ("{names: [a b]}", "a b", "no topic can have this name"),
    ],
)
def test_validate_reports_invalid_selector_with_position(
    kdeclare: CommandLine, selector: str, at: str, said: str
) -> None:
    head = "apiVersion: kdeclare/v1\nkind: Policy\nmetadata: {name: p}\nspec:\n"
    line = f"  selector: {selector}\n"
    (kdeclare.folder / "manifests" / "p.yaml").write_text(f"{head}{line}  rule: 'true'\n")
    ran = kdeclare("validate")
    assert ran.code == 1
    assert said in " ".join((ran.out + ran.err).split())
    assert f"manifests/p.yaml:5:{line.index(at) + 1}" in ran.out + ran.err


CLASSES = """
from kdeclare.policy import CreateTopicPolicy, PolicyViolation, ResourcePolicy, ResourceRequest
from kdeclare.policy.rules import PartitionBounds


class Cool(ResourcePolicy):
    def configure(self, configs):
        self.most = configs.get("most", 90)

    def validate(self, request: ResourceRequest) -> None:
        state = request.post_request_state
        if state is not None and state["heat"] > self.most:
            raise PolicyViolation(f"{request.name} would have {state['heat']} degrees.")


class Both(PartitionBounds, ResourcePolicy):
    pass


class Old(CreateTopicPolicy):
    def validate(self, request):
        pass
"""


def add_policy_class(kdeclare: CommandLine, **entry: Any) -> None:
    (kdeclare.folder / "cool_kettles.py").write_text(CLASSES)
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    policies = [{"name": "cool", "class": "cool_kettles:Cool"} | entry]
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, policies=policies)
    (kdeclare.folder / "manifests" / "lukewarm.yaml").unlink(missing_ok=True)


@pytest.mark.usefixtures("own_modules")
def test_policy_class_evaluates_foreign_kind(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    add_policy_class(kdeclare, config={"most": 70}, selector={"kind": "Kettle", "names": ["/h.*/"]})
    declare_kettle(kdeclare, "hot", heat=80)
    declare_kettle(kdeclare, "mild", heat=80)
    kdeclare.topic("hops", partitions=1)
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "denied by policy cool: hot would have 80 degrees." in ran.out
    assert kdeclare("policy", "check").code == 3
    kitchen.kettles["hot"] = {"heat": 71, "extras": {}}
    assert kdeclare("policy", "check", "--live").code == 3
    found = [make_case("deny", name="hop", action="CREATE", after={"heat": 71}, labels={})]
    kdeclare.write("cases.yaml", "PolicyTest", "kettles", cases=found)
    assert kdeclare("policy", "test", "cases.yaml").code == 0


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "'cool_kettles:Cool' is a ResourcePolicy, which checks kinds other than Topic."),
        (
            {"class": "kdeclare.policy.rules:NoDelete", "selector": {"kind": "Kettle"}},
            "'kdeclare.policy.rules:NoDelete' checks topics, but 'selector.kind' is Kettle.",
        ),
        ({"selector": {"kind": "Kettel"}}, "Did you mean 'Kettle'?"),
        ({"selector": {"kind": "Teapot"}}, "Policies cannot check resources of kind Teapot"),
        ({"selector": {"kind": "Kettle", "names": ["/(/"]}}, "'/(/' is not valid: missing )"),
        ({"class": "cool_kettles:Both"}, "is both TopicActionsPolicy and ResourcePolicy"),
    ],
)
def test_validate_rejects_policy_class_for_wrong_kind(
    kdeclare: CommandLine, entry: Mapping[str, Any], said: str
) -> None:
    add_policy_class(kdeclare, **entry)
    ran = kdeclare("validate")
    assert ran.code == 1
    assert said in " ".join((ran.out + ran.err).split())
    assert "kdeclare.yaml:" in ran.out + ran.err


@pytest.mark.usefixtures("own_modules")
def test_deprecated_policies_mix_only_with_rules_for_other_kinds(kdeclare: CommandLine) -> None:
    add_policy_class(kdeclare, **{"class": "cool_kettles:Old"})
    kdeclare.write("manifests/lukewarm.yaml", "Policy", "lukewarm", **LUKEWARM)
    assert kdeclare("validate").code == 0
    write_rule(kdeclare, rule="true", selector={})
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "Mixed policy interfaces" in ran.out + ran.err


@pytest.mark.parametrize(
    ("text", "detail", "hint"),
    [
        ("after.hat > 3", "'after' has no field 'hat'.", "Did you mean 'heat'?"),
        ("post.heat > 3", "The name 'post' is not defined.", ""),
        ("topic == 'x'", "The name 'topic' is not defined.", "Use action, after, before, changed"),
        ("heat > 3", "The name 'heat' is not defined.", "Did you mean 'after.heat'?"),
        ("'heet' in changed", "'heet' is never in 'changed'.", "Did you mean 'heat'?"),
        ("'whistle' in changed", "'whistle' is never in 'changed'.", "Did you mean 'extras.whistle'?"),
        (
            "after.heat == 'hot'",
            "'==' does not accept a whole number and a string.",
            "because the values of extras and labels are strings",
        ),
        (
            "resource == null",
            "'resource' cannot be used without a field",
            "Use resource.kind, resource.labels, resource.name or resource.owner.",
        ),
        (
            "after.extras.a.b == ''",
            "An extra name that contains dots is one key",
            "Write after.extras['a.b'].",
        ),
        ("before == null || after == null || 1 < 'a'", "'<' does not accept", ""),
    ],
)
def test_compile_rule_checks_fields_of_kind(text: str, detail: str, hint: str) -> None:
    with pytest.raises(RuleError) as wrong:
        compile_rule(text, "Kettle")
    [problem] = wrong.value.problems
    assert detail in problem.detail
    assert hint in problem.hint


def test_general_variables_work_for_topics(kdeclare: CommandLine) -> None:
    write_rule(
        kdeclare,
        rule="resource.kind == 'Topic' && resource.name == topic && after.partitions == post.partitions "
        "&& before == null && resource.labels == labels",
        actions=["CREATE"],
        selector={},
    )
    kdeclare.topic("orders", partitions=2)
    ran = kdeclare("plan")
    assert ran.code == 0, ran.out


def test_validate_rejects_rule_on_missing_before_state(kdeclare: CommandLine) -> None:
    write_rule(kdeclare, rule="before.heat < 3", actions=["CREATE", "MODIFY"])
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "'before' is null on CREATE" in " ".join((ran.out + ran.err).split())


def test_rule_evaluates_broker_configs(kdeclare: CommandLine) -> None:
    threads = "int(after.configs['num.network.threads']) <= 8"
    expression = f"!('num.network.threads' in after.configs) || {threads}"
    write_rule(kdeclare, rule=expression, actions=["CREATE", "MODIFY"], selector={"kind": "BrokerConfig"})

    def declare_broker(**configs: int) -> None:
        keys = {key.replace("_", "."): value for key, value in configs.items()}
        kdeclare.write("manifests/all.yaml", "BrokerConfig", "cluster-default", configs=keys)

    declare_broker(num_network_threads=12, log_cleaner_threads=2)
    assert kdeclare("policy", "check").code == 3
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "BrokerConfig/cluster-default  BLOCKED: policy-violation" in ran.out
    declare_broker(num_network_threads=4, log_cleaner_threads=2)
    assert kdeclare("policy", "check").code == 0
    assert kdeclare("apply", "--yes").code == 0
    strict = "int(after.configs['num.network.threads']) < 4"
    write_rule(kdeclare, rule=strict, actions=["CREATE", "MODIFY"], selector={"kind": "BrokerConfig"})
    assert kdeclare("policy", "check", "--live").code == 3
    # nothing about it changes, so the plan does not ask
    assert kdeclare("plan").code == 0
    declare_broker(log_cleaner_threads=3)
    write_rule(
        kdeclare,
        rule="before.configs['num.network.threads'] == '4' && changed.size() == 2 "
        "&& after.configs['log.cleaner.threads'] == '3' && !('num.network.threads' in after.configs)",
        actions=["MODIFY"],
        selector={"kind": "BrokerConfig"},
    )
    ran = kdeclare("plan")
    assert ran.code == 0, ran.out
