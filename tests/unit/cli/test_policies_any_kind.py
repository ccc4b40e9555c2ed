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


def kettle(kdeclare: CommandLine, name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
    metadata = {"name": name, "labels": {"tier": "tin"} | dict(labels or {})}
    document = {"apiVersion": "kdeclare/v1", "kind": "Kettle", "metadata": metadata, "spec": spec}
    (kdeclare.folder / "manifests" / f"{name}.yaml").write_text(yaml.safe_dump(document))


def rule(kdeclare: CommandLine, **more: Any) -> None:
    kdeclare.write("manifests/lukewarm.yaml", "Policy", "lukewarm", **{**LUKEWARM, **more})


def test_a_plan_denies_what_a_rule_is_against(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    kettle(kdeclare, "hot", heat=100)
    kettle(kdeclare, "mild", heat=80)
    kdeclare.topic("orders", partitions=1)
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "Kettle/hot  BLOCKED: policy-violation" in ran.out
    assert "denied by policy lukewarm: No more than 90 degrees." in ran.out
    assert kdeclare("apply", "--yes").code == 3
    assert kitchen.kettles == {"mild": {"heat": 80, "extras": {}}}
    assert "orders" in kdeclare.cluster.topics()


def test_a_denial_can_be_overridden_and_the_history_has_it(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    kettle(kdeclare, "hot", heat=100)
    ran = kdeclare("apply", "--yes", "--override-policy", "lukewarm", "--reason", "agreed")
    assert ran.code == 0, ran.out + ran.err
    assert kitchen.kettles["hot"]["heat"] == 100
    [run] = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert "policy lukewarm on Kettle/hot: agreed" in kdeclare("history", run["run_id"]).out


def test_a_modification_is_judged_on_the_live_state(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    rule(kdeclare, rule="after.heat >= before.heat && 'heat' in changed", actions=["MODIFY"])
    kitchen.kettles["k"] = {"heat": 50, "extras": {}}
    kettle(kdeclare, "k", heat=60)
    assert kdeclare("plan", "--adopt").code == 0
    kettle(kdeclare, "k", heat=40)
    assert kdeclare("plan", "--adopt").code == 3


def test_mappings_are_seen_whole_before_and_after(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    expression = "before.extras == {'lid': 'red', 'whistle': 'b'} && after.extras == {'whistle': 'c'}"
    rule(kdeclare, rule=f"{expression} && changed == ['extras.lid', 'extras.whistle']", actions=["MODIFY"])
    kitchen.kettles["k"] = {"heat": 50, "extras": {"lid": "red", "whistle": "b"}}
    kettle(kdeclare, "k", heat=50, extras={"whistle": "c"})
    ran = kdeclare("plan", "--adopt")
    assert ran.code == 0, ran.out


def test_a_deletion_is_judged_by_the_labels_that_were_applied(
    kdeclare: CommandLine, kitchen: Kitchen
) -> None:
    kettle(kdeclare, "k", {"tier": "gold"}, heat=10)
    kettle(kdeclare, "stays", heat=10)
    assert kdeclare("apply", "--yes").code == 0
    kept = "resource.labels.tier != 'gold' || before.heat != 10 || resource.kind != 'Kettle'"
    rule(kdeclare, rule=kept, actions=["DELETE"])
    (kdeclare.folder / "manifests" / "k.yaml").unlink()
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 3
    assert kitchen.kettles.keys() == {"k", "stays"}
    rule(kdeclare, rule="resource.name != 'k' || resource.labels.tier == 'gold'", actions=["DELETE"])
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 0
    assert kitchen.kettles.keys() == {"stays"}


def test_other_kinds_are_not_asked_about(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    rule(kdeclare, rule="false", selector={"kind": "Kettle", "names": ["/x.*/"]})
    kdeclare.topic("xerxes", partitions=1)
    kettle(kdeclare, "other", heat=100)
    assert kdeclare("plan").code == 0
    kettle(kdeclare, "x1", heat=100)
    assert kdeclare("plan").code == 3


def test_what_is_declared_is_checked_without_any_system(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    kettle(kdeclare, "hot", heat=100)
    kettle(kdeclare, "open")
    ran = kdeclare("policy", "check")
    assert ran.code == 3
    assert ran.out.splitlines()[0] == "1 of 2 resources violates a policy."
    assert "policy lukewarm on Kettle/open" in ran.out
    assert kitchen.reads == 0
    ran = kdeclare("validate")
    assert ran.code == 3
    assert "Kettle/hot, policy 'lukewarm': No more than 90 degrees." in ran.out + ran.err


def test_what_is_live_is_checked_declared_or_not(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    kitchen.kettles |= {"a": {"heat": 95, "extras": {}}, "b": {"heat": 20, "extras": {}}}
    kettle(kdeclare, "c", heat=100)
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 3
    assert ran.out.splitlines()[0] == "1 of 2 resources violates a policy."
    # it has no labels, so the rule cannot be evaluated there
    assert "Kettle/a" in ran.out
    assert kitchen.reads == 1
    kettle(kdeclare, "a", {"tier": "gold"}, heat=95)
    assert kdeclare("policy", "check", "--live").code == 0


def test_live_objects_that_are_declared_under_another_name_keep_name_and_labels(
    kdeclare: CommandLine, kitchen: Kitchen
) -> None:
    rule(kdeclare, selector={"kind": "Urn"})
    kitchen.kettles |= {serial: {"heat": 95, "extras": {}} for serial in ("s-1", "s-2")}
    kettle(kdeclare, "gold one", {"tier": "gold"}, serial="s-1")
    document = (kdeclare.folder / "manifests" / "gold one.yaml").read_text()
    (kdeclare.folder / "manifests" / "gold one.yaml").write_text(document.replace("Kettle", "Urn"))
    ran = kdeclare("policy", "check", "--live", "--format", "json")
    verdicts = {item["resource"]: item["outcome"] for item in json.loads(ran.out)["verdicts"]}
    assert verdicts == {"Urn/gold one": "allow", "Urn/s-2": "deny"}


def test_topics_and_others_are_checked_together(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    wide = {"rule": "post.partitions < 3", "actions": ["CREATE", "MODIFY"]}
    kdeclare.write("manifests/wide.yaml", "Policy", "wide", **wide)
    kdeclare.topic("orders", partitions=5)
    kettle(kdeclare, "hot", heat=100)
    assert kdeclare("policy", "check").out.splitlines()[0] == "2 of 2 resources violate a policy."


def test_a_system_that_does_not_answer_is_no_verdict(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    kitchen.broken = True
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 1
    assert "There is no power" in ran.err


def case(expect: str, **request: Any) -> dict[str, Any]:
    asked = {"kind": "Kettle", "name": "k", "labels": {"tier": "tin"}}
    return {"name": f"{request}", "expect": expect, "request": {**asked, **request}}


def test_cases_are_run(kdeclare: CommandLine) -> None:
    found = [
        case("allow", action="CREATE", after={"heat": 10}),
        case("deny", action="MODIFY", before={"heat": 10}, after={"heat": 95}),
        case("allow", action="DELETE", before={"heat": 99}),
        case("allow", action="CREATE", after={"heat": 99}, labels={"tier": "gold"}),
    ]
    kdeclare.write("cases.yaml", "PolicyTest", "kettles", cases=found)
    ran = kdeclare("policy", "test", "cases.yaml")
    assert (ran.code, ran.out) == (0, "4 cases: 4 passed.\n")
    kdeclare.write("cases.yaml", "PolicyTest", "kettles", cases=[case("allow", action="CREATE", after={})])
    ran = kdeclare("policy", "test", "cases.yaml")
    assert ran.code == 1
    assert "policy lukewarm reads 'after.heat', which the case does not set" in ran.out


def test_changed_of_a_case_follows_from_its_states(kdeclare: CommandLine) -> None:
    rule(kdeclare, rule="changed == ['extras.lid', 'heat']", actions=["MODIFY"])
    states = {
        "before": {"heat": 1, "extras": {"lid": "a", "w": "x"}},
        "after": {"heat": 2, "extras": {"w": "x"}},
    }
    found = [
        case("allow", action="MODIFY", **states),
        case("deny", action="MODIFY", **states, changed=["heat"]),
    ]
    kdeclare.write("cases.yaml", "PolicyTest", "kettles", cases=found)
    assert kdeclare("policy", "test", "cases.yaml").code == 0


@pytest.mark.parametrize(
    ("request_", "at", "said"),
    [
        ("{kind: Kettle, action: CREATE, name: k, topic: t}", "t}", "does not take 'topic'. Use 'name'."),
        ("{kind: Kettel, action: CREATE, name: k}", "Kettel", "Did you mean 'Kettle'?"),
        ("{kind: Kettle, action: CREATE}", "{kind", "needs a field 'name'"),
        ("{kind: Kettle, action: CREATE, name: k, after: {heta: 1}}", "1}", "Did you mean 'heat'?"),
        (
            "{kind: Kettle, action: MODIFY, name: k, changed: [partitions]}",
            "partitions",
            "Kettle has no field 'partitions' that can change",
        ),
        ("{kind: Kettle, action: DELETE, name: k, after: {}}", "after", ""),
        ("{action: CREATE, topic: k, name: k}", "k}", "does not take 'name'. Use 'topic'."),
    ],
)
def test_what_is_wrong_with_a_case_is_said_at_its_place(
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
def test_what_is_wrong_with_a_selector_is_said_at_its_place(
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


def with_class(kdeclare: CommandLine, **entry: Any) -> None:
    (kdeclare.folder / "cool_kettles.py").write_text(CLASSES)
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    policies = [{"name": "cool", "class": "cool_kettles:Cool"} | entry]
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, policies=policies)
    (kdeclare.folder / "manifests" / "lukewarm.yaml").unlink(missing_ok=True)


@pytest.mark.usefixtures("own_modules")
def test_a_class_of_ones_own_judges_any_kind(kdeclare: CommandLine, kitchen: Kitchen) -> None:
    with_class(kdeclare, config={"most": 70}, selector={"kind": "Kettle", "names": ["/h.*/"]})
    kettle(kdeclare, "hot", heat=80)
    kettle(kdeclare, "mild", heat=80)
    kdeclare.topic("hops", partitions=1)
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "denied by policy cool: hot would have 80 degrees." in ran.out
    assert kdeclare("policy", "check").code == 3
    kitchen.kettles["hot"] = {"heat": 71, "extras": {}}
    assert kdeclare("policy", "check", "--live").code == 3
    found = [case("deny", name="hop", action="CREATE", after={"heat": 71}, labels={})]
    kdeclare.write("cases.yaml", "PolicyTest", "kettles", cases=found)
    assert kdeclare("policy", "test", "cases.yaml").code == 0


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "'cool_kettles:Cool' is a ResourcePolicy, which checks kinds other than Topic."),
        (
            {"class": "kdeclare.policy.rules:NoDelete", "selector": {"kind": "Kettle"}},
            "'kdeclare.policy.rules:NoDelete' checks topics, but the selector names the kind Kettle.",
        ),
        ({"selector": {"kind": "Kettel"}}, "Did you mean 'Kettle'?"),
        ({"selector": {"kind": "Teapot"}}, "Policies cannot check resources of kind Teapot"),
        ({"selector": {"kind": "Kettle", "names": ["/(/"]}}, "'/(/' is not valid: missing )"),
        ({"class": "cool_kettles:Both"}, "is both TopicActionsPolicy and ResourcePolicy"),
    ],
)
def test_a_class_goes_with_its_kind(kdeclare: CommandLine, entry: Mapping[str, Any], said: str) -> None:
    with_class(kdeclare, **entry)
    ran = kdeclare("validate")
    assert ran.code == 1
    assert said in " ".join((ran.out + ran.err).split())
    assert "kdeclare.yaml:" in ran.out + ran.err


@pytest.mark.usefixtures("own_modules")
def test_deprecated_policies_go_with_rules_about_other_kinds(kdeclare: CommandLine) -> None:
    with_class(kdeclare, **{"class": "cool_kettles:Old"})
    kdeclare.write("manifests/lukewarm.yaml", "Policy", "lukewarm", **LUKEWARM)
    assert kdeclare("validate").code == 0
    rule(kdeclare, rule="true", selector={})
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
            "'==' does not accept a whole number and text.",
            "because extras and labels are text",
        ),
        (
            "resource == null",
            "'resource' cannot be used as a whole",
            "Use resource.kind, resource.labels or resource.name.",
        ),
        (
            "after.extras.a.b == ''",
            "An extra name that contains dots is one key",
            "Write after.extras['a.b'].",
        ),
        ("before == null || after == null || 1 < 'a'", "'<' does not accept", ""),
    ],
)
def test_a_rule_is_checked_by_the_fields_of_its_kind(text: str, detail: str, hint: str) -> None:
    with pytest.raises(RuleError) as wrong:
        compile_rule(text, "Kettle")
    [problem] = wrong.value.problems
    assert detail in problem.detail
    assert hint in problem.hint


def test_general_names_hold_for_topics_as_well(kdeclare: CommandLine) -> None:
    rule(
        kdeclare,
        rule="resource.kind == 'Topic' && resource.name == topic && after.partitions == post.partitions "
        "&& before == null && resource.labels == labels",
        actions=["CREATE"],
        selector={},
    )
    kdeclare.topic("orders", partitions=2)
    ran = kdeclare("plan")
    assert ran.code == 0, ran.out


def test_a_rule_looks_into_a_state_that_is_not_there(kdeclare: CommandLine) -> None:
    rule(kdeclare, rule="before.heat < 3", actions=["CREATE", "MODIFY"])
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "'before' is null on CREATE" in " ".join((ran.out + ran.err).split())


def test_broker_configs_are_judged(kdeclare: CommandLine) -> None:
    threads = "int(after.configs['num.network.threads']) <= 8"
    expression = f"!('num.network.threads' in after.configs) || {threads}"
    rule(kdeclare, rule=expression, actions=["CREATE", "MODIFY"], selector={"kind": "BrokerConfig"})

    def declare(**configs: int) -> None:
        keys = {key.replace("_", "."): value for key, value in configs.items()}
        kdeclare.write("manifests/all.yaml", "BrokerConfig", "cluster-default", configs=keys)

    declare(num_network_threads=12, log_cleaner_threads=2)
    assert kdeclare("policy", "check").code == 3
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "BrokerConfig/cluster-default  BLOCKED: policy-violation" in ran.out
    declare(num_network_threads=4, log_cleaner_threads=2)
    assert kdeclare("policy", "check").code == 0
    assert kdeclare("apply", "--yes").code == 0
    strict = "int(after.configs['num.network.threads']) < 4"
    rule(kdeclare, rule=strict, actions=["CREATE", "MODIFY"], selector={"kind": "BrokerConfig"})
    assert kdeclare("policy", "check", "--live").code == 3
    # nothing about it changes, so the plan does not ask
    assert kdeclare("plan").code == 0
    declare(log_cleaner_threads=3)
    rule(
        kdeclare,
        rule="before.configs['num.network.threads'] == '4' && changed.size() == 2 "
        "&& after.configs['log.cleaner.threads'] == '3' && !('num.network.threads' in after.configs)",
        actions=["MODIFY"],
        selector={"kind": "BrokerConfig"},
    )
    ran = kdeclare("plan")
    assert ran.code == 0, ran.out
