"""``kdeclare policy``: check manifests, check a cluster, and run test cases."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.report.policy import build_policy_schemas
from tests.unit.cli.command_line import CommandLine

RULES = "kdeclare.policy.rules:"
BOUNDS = {"name": "bounds", "class": f"{RULES}PartitionBounds", "config": {"max": 6}}
BUDGET = {"name": "budget", "class": f"{RULES}PartitionBudget", "config": {"max": 10}}
GOLD = {
    "rule": "post.replicationFactor >= 3",
    "message": "three replicas, please",
    "actions": ["CREATE", "MODIFY"],
    "selector": {"labels": {"tier": "gold"}},
}


def write_project(kdeclare: CommandLine, *policies: Mapping[str, Any]) -> None:
    """The project with these policies."""
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, policies=list(policies))


def declare_topic(
    kdeclare: CommandLine, name: str, labels: Mapping[str, str] | None = None, **spec: Any
) -> None:
    """Declare a topic with labels."""
    metadata = {"name": name, "labels": dict(labels or {})}
    document = {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": metadata, "spec": spec}
    (kdeclare.folder / "manifests" / f"{name}.yaml").write_text(yaml.safe_dump(document))


def write_cases(kdeclare: CommandLine, *found: Mapping[str, Any], **more: Any) -> None:
    """Write cases.yaml."""
    kdeclare.write("cases.yaml", "PolicyTest", "gold", cases=list(found), **more)


def make_creation(name: str, expect: str, partitions: int = 1, **more: Any) -> dict[str, Any]:
    """Return a case: the creation of a topic with one replica."""
    post = {"partitions": partitions, "replicationFactor": 1}
    request = {"action": "CREATE", "topic": "orders", "post": post}
    return {"name": name, "expect": expect, "request": request} | more


# check


def test_policy_check_evaluates_manifests_offline(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS)
    kdeclare.write("manifests/gold.yaml", "Policy", "gold", **GOLD)
    declare_topic(kdeclare, "orders", {"tier": "gold"}, partitions=9, replicationFactor=1)
    declare_topic(kdeclare, "payments", partitions=6, replicationFactor=1)
    ran = kdeclare("policy", "check")
    assert ran.code == 3
    lines = ran.out.splitlines()
    assert lines[0] == "1 of 2 topics violates a policy."
    assert lines[3].startswith("Topic/orders  manifests/orders.yaml:")
    assert lines[5] == "  denied by policy gold: three replicas, please"
    assert not any("payments" in line for line in lines)
    assert kdeclare("policy", "check", "manifests/payments.yaml").code == 0
    assert not kdeclare.cluster.calls
    assert ran.err == ""


def test_policy_check_reports_compliant_manifests(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS)
    declare_topic(kdeclare, "orders", partitions=6)
    declare_topic(kdeclare, "payments", partitions=6)
    ran = kdeclare("policy", "check")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "All 2 topics comply with 1 policy.")


def test_policy_check_reports_warnings(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS | {"severity": "warn"})
    declare_topic(kdeclare, "orders", partitions=9)
    ran = kdeclare("policy", "check")
    assert ran.code == 0
    assert "warned by policy bounds" in ran.out
    assert "1 with a warning" in ran.out


def test_policy_check_counts_policies_that_need_cluster(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BUDGET)
    for number in range(5):
        declare_topic(kdeclare, f"t{number}", {"team": "blue"}, partitions=6)
    ran = kdeclare("policy", "check")
    assert ran.code == 0
    assert "as far as the manifests show" in ran.out
    assert "policy budget on Topic/t0, Topic/t1, Topic/t2 and 2 more" in ran.out
    assert "--live" in ran.out
    document = json.loads(kdeclare("policy", "check", "--format", "json").out)
    assert len(document["open"]) == document["policies"][0]["open"] == 5


def test_policy_check_without_policies_hints_how_to_add_them(kdeclare: CommandLine) -> None:
    declare_topic(kdeclare, "orders", partitions=6)
    for line in (["policy", "check"], ["policy", "check", "--live"]):
        ran = kdeclare(*line)
        assert ran.code == 0
        assert ran.out.startswith("The project has no policies.\nhint: Add policies under")
    assert not kdeclare.cluster.calls


def set_up_live_cluster(kdeclare: CommandLine) -> None:
    """A cluster with topics, of which one is declared, and one is internal."""
    write_project(kdeclare, BOUNDS, BUDGET)
    kdeclare.write("manifests/gold.yaml", "Policy", "gold", **GOLD)
    kdeclare.cluster.create_topics([NewTopic("orders", None, None, {0: (1, 2)}, {})])
    for name in ("wide", "__consumer_offsets"):
        kdeclare.cluster.create_topics([NewTopic(name, 9, 1, None, {})])
    kdeclare.cluster.mark_internal("__consumer_offsets")
    declare_topic(kdeclare, "orders", {"tier": "gold"}, partitions=1)
    declare_topic(kdeclare, "declared-only", partitions=99)
    kdeclare.cluster.calls.clear()


def test_policy_check_live_evaluates_live_topics(kdeclare: CommandLine) -> None:
    set_up_live_cluster(kdeclare)
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 3
    assert ran.out.startswith("2 of 2 topics violate a policy.\nshop/lab on lab:9092: live topics of")
    assert "Topic/orders  manifests/orders.yaml:" in ran.out
    assert "denied by policy gold: three replicas, please" in ran.out
    assert "\nTopic/wide\n  denied by policy bounds: " in ran.out
    assert "__consumer_offsets" not in ran.out
    assert "declared-only" not in ran.out
    assert ran.err == ""


def test_policy_check_live_reads_only_what_policies_need(kdeclare: CommandLine) -> None:
    set_up_live_cluster(kdeclare)
    write_project(kdeclare, BOUNDS)
    (kdeclare.folder / "manifests" / "gold.yaml").unlink()
    kdeclare("policy", "check", "--live")
    assert [call.method for call in kdeclare.cluster.calls] == ["describe", "topics"]


def test_policy_check_live_falls_back_to_last_applied_labels(kdeclare: CommandLine) -> None:
    declare_topic(kdeclare, "orders", {"tier": "gold"}, partitions=1)
    declare_topic(kdeclare, "payments", {"tier": "gold"}, partitions=1)
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.write("manifests/gold.yaml", "Policy", "gold", **GOLD)
    (kdeclare.folder / "manifests" / "orders.yaml").unlink()
    declare_topic(kdeclare, "payments", {"tier": "iron"}, partitions=1)
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 3
    assert "\nTopic/orders\n" in ran.out
    assert "payments" not in ran.out


@pytest.mark.parametrize("options", [[], ["--live"]])
def test_policy_check_json_fits_schema(kdeclare: CommandLine, options: list[str]) -> None:
    set_up_live_cluster(kdeclare)
    ran = kdeclare("policy", "check", *options, "--format", "json")
    document = json.loads(ran.out)
    Draft202012Validator(build_policy_schemas()["policy-check"]).validate(document)
    assert ran.code == document["exit_code"] == 3
    assert document["cluster"] == ("lab:9092" if options else None)
    assert document["topics"] == 2


def test_policy_check_rejects_invalid_manifest(kdeclare: CommandLine) -> None:
    set_up_live_cluster(kdeclare)
    kdeclare.topic("wrong", partitons=1)
    for options in ([], ["--live"]):
        ran = kdeclare("policy", "check", *options)
        assert ran.code == 1
        assert "partitions" in ran.err
    assert not kdeclare.cluster.calls


def test_policy_check_live_reports_unreadable_cluster(kdeclare: CommandLine) -> None:
    set_up_live_cluster(kdeclare)
    kdeclare.cluster.faults.fail(Fault("TOPIC_AUTHORIZATION_FAILED", "No."), method="moves", nth=None)
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 1
    assert "Not authorized" in ran.err
    assert not ran.out


def test_policy_commands_report_unloadable_class(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS | {"class": "nowhere:Nothing"})
    declare_topic(kdeclare, "orders", partitions=6)
    write_cases(kdeclare, make_creation("fine", "allow"))
    for line in (["policy", "check"], ["policy", "check", "--live"], ["policy", "test", "cases.yaml"]):
        ran = kdeclare(*line)
        assert ran.code == 1
        assert "kdeclare.yaml:" in ran.err


def test_policy_commands_mention_deprecated_interface(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "old_policies.py").write_text(
        "from kdeclare.policy.deprecated import CreateTopicPolicy\n\n\n"
        "class Old(CreateTopicPolicy):\n    def validate(self, request):\n        pass\n"
    )
    write_project(kdeclare, {"name": "old", "class": "old_policies:Old"})
    declare_topic(kdeclare, "orders", partitions=6)
    write_cases(kdeclare, make_creation("fine", "allow"))
    for line in (["policy", "check"], ["policy", "test", "cases.yaml"]):
        ran = kdeclare(*line)
        assert (ran.code, "Deprecated policy interface" in ran.err) == (0, True)
        document = json.loads(kdeclare(*line, "--format", "json").out)
        assert [d["code"] for d in document["diagnostics"]] == ["deprecated-policy"]


# test


def test_policy_test_reports_passed_cases(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS)
    kdeclare.write("manifests/gold.yaml", "Policy", "gold", **GOLD)
    write_cases(
        kdeclare,
        make_creation("too wide", "deny", partitions=9, message="9 partitions"),
        make_creation("narrow", "allow", policy="bounds"),
        make_creation("gold", "deny", policy="gold", message="three replicas"),
        defaults={"labels": {"tier": "gold"}},
    )
    ran = kdeclare("policy", "test", "cases.yaml")
    assert (ran.code, ran.out, ran.err) == (0, "3 cases: 3 passed.\n", "")
    assert kdeclare("policy", "test", "cases.yaml", "-v").out.count("passed") == 4
    assert not kdeclare.cluster.calls
    assert not (kdeclare.folder / "state").exists()


def test_policy_test_takes_facts_about_impact(kdeclare: CommandLine) -> None:
    unread = {"name": "unread", "class": "kdeclare.policy.rules:NoLossOfUnreadRecords"}
    write_project(kdeclare, unread)
    rule = {"rule": "impact.activeConsumers == 0", "actions": ["DELETE"]}
    kdeclare.write("manifests/unused.yaml", "Policy", "unused", **rule)

    def make_case(name: str, policy: str, expect: str, facts: dict[str, Any], **more: str) -> dict[str, Any]:
        request = {"action": "DELETE", "topic": "orders", "impact": facts}
        return {"name": name, "policy": policy, "request": request, "expect": expect, **more}

    write_cases(
        kdeclare,
        make_case("read", "unread", "allow", {"unreadGroups": []}),
        make_case("not read", "unread", "deny", {"unreadGroups": ["billing"]}, message="group 'billing'"),
        make_case("unknown", "unread", "deny", {"unreadGroups": "unknown"}, message="is unknown"),
        make_case("unused", "unused", "allow", {"activeConsumers": 0}),
        make_case("used", "unused", "deny", {"activeConsumers": 2}),
        make_case("unknown use", "unused", "deny", {"activeConsumers": "unknown"}, message="is unknown"),
        make_case("incomplete", "unused", "allow", {"unreadGroups": []}),
    )
    ran = kdeclare("policy", "test", "cases.yaml")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[-2] == "  policy unused reads 'impact.activeConsumers', which the case does not set"
    assert lines[-1] == "7 cases: 6 passed, 1 failed."


def test_policy_test_reports_failed_cases(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS, BUDGET)
    write_cases(
        kdeclare,
        make_creation("narrow", "deny"),
        make_creation("wide", "deny", partitions=9),
        {
            "name": "a team",
            "expect": "allow",
            "request": {
                "action": "CREATE",
                "topic": "orders",
                "labels": {"team": "blue"},
                "post": {"partitions": 1},
            },
        },
    )
    ran = kdeclare("policy", "test", "cases.yaml")
    assert ran.code == 1
    lines = ran.out.splitlines()
    assert lines[0].startswith("cases.yaml:")
    assert lines[0].endswith("failed narrow: expected deny, got allow")
    assert lines[1].endswith("failed a team: expected allow, got no verdict")
    assert lines[2] == "  policy budget reads 'partitionsOf: {team=blue: …}', which the case does not set"
    assert lines[-1] == "3 cases: 1 passed, 2 failed."
    assert ran.err == ""
    document = json.loads(kdeclare("policy", "test", "cases.yaml", "--format", "json").out)
    Draft202012Validator(build_policy_schemas()["policy-test"]).validate(document)
    assert (document["exit_code"], document["passed"], document["failed"]) == (1, 1, 2)


def test_policy_test_returns_same_message_as_plan(kdeclare: CommandLine) -> None:
    """The same topic in a plan and in a case gets the same message."""
    write_project(kdeclare, BOUNDS)
    declare_topic(kdeclare, "orders", partitions=9)
    write_cases(kdeclare, make_creation("wide", "allow", partitions=9))
    planned = json.loads(kdeclare("plan", "--format", "json").out)["verdicts"]
    tried = json.loads(kdeclare("policy", "test", "cases.yaml", "--format", "json").out)["cases"][0]
    assert tried["verdicts"] == planned


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (make_creation("it", "deny", policy="bound"), "Did you mean 'bounds'?"),
        (make_creation("it", "maybe"), "'spec.cases[0].expect' takes allow, deny or warn"),
        ({"name": "it"}, "'spec.cases[0]' needs a field 'request'."),
        (make_creation("it", "allow", message="no!"), "A policy that allows a request has no message"),
    ],
)
def test_policy_test_reports_invalid_cases(kdeclare: CommandLine, case: Mapping[str, Any], said: str) -> None:
    write_project(kdeclare, BOUNDS)
    write_cases(kdeclare, case)
    ran = kdeclare("policy", "test", "cases.yaml")
    assert ran.code == 1
    assert said in ran.err
    assert "cases.yaml:" in ran.err
    assert not ran.out


def test_policy_test_reports_files_without_cases(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS)
    declare_topic(kdeclare, "orders", partitions=1)
    (kdeclare.folder / "empty.yaml").write_text("# nothing\n")
    for file, said in (
        ("nowhere.yaml", "'nowhere.yaml' does not exist."),
        ("empty.yaml", "empty.yaml:1:1"),
        ("manifests", "This document is of kind Topic, which is not a policy test."),
    ):
        ran = kdeclare("policy", "test", file)
        assert ran.code == 1
        assert said in ran.err


def test_policy_test_needs_policies(kdeclare: CommandLine) -> None:
    write_cases(kdeclare, make_creation("it", "allow"))
    ran = kdeclare("policy", "test", "cases.yaml")
    assert ran.code == 1
    assert "The project 'shop' has no policies." in ran.err
    (kdeclare.folder / "kdeclare.yaml").unlink()
    assert "There is no project file in this folder." in kdeclare("policy", "test", "cases.yaml").err


def test_validate_rejects_cases_among_manifests(kdeclare: CommandLine) -> None:
    write_project(kdeclare, BOUNDS)
    write_cases(kdeclare, make_creation("it", "allow"))
    (kdeclare.folder / "cases.yaml").rename(kdeclare.folder / "manifests" / "cases.yaml")
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "Move policy tests out of the manifests" in ran.out + ran.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "PolicyTest"])
def test_policy_test_schema_accepts_cases(kdeclare: CommandLine, kind: str | None) -> None:
    schema = json.loads(kdeclare("schema", *(["--kind", kind] if kind else [])).out)
    Draft202012Validator.check_schema(schema)
    write_cases(kdeclare, make_creation("it", "allow"), defaults={"labels": {"keyed": True}})
    document = yaml.safe_load((kdeclare.folder / "cases.yaml").read_text())
    assert Draft202012Validator(schema).is_valid(document)
    document["spec"]["cases"][0]["expect"] = "maybe"
    assert not Draft202012Validator(schema).is_valid(document)
