"""`kdeclare topic create`, `alter`, `delete` on an in-memory cluster: KIP-4's rules, one by one."""

import json
from typing import Any

import pytest

from kdeclare.app.adhoc import run
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.port import NewTopic
from tests.beds import all_created
from tests.unit.cli.command_line import CommandLine, Ran


def replicas(kdeclare: CommandLine, topic: str) -> list[tuple[int, ...]]:
    return [p.replicas for p in kdeclare.cluster.topics([topic])[topic].partitions]


def make(kdeclare: CommandLine, name: str, *partitions: tuple[int, ...]) -> None:
    new = NewTopic(name, None, None, dict(enumerate(partitions)), {})
    assert all_created(kdeclare.cluster.create_topics([new]))


def results(ran: Ran) -> dict[str, str]:
    """Return the outcome of each resource."""
    return {item["resource"]: item["result"] for item in json.loads(ran.out)["results"]}


def test_create_is_a_plan_a_run_and_can_be_rolled_back(kdeclare: CommandLine) -> None:
    ran = kdeclare(
        "topic", "create", "a", "b", "--partitions", "3", "--config", "retention.ms=1", answer="yes\n"
    )
    assert ran.code == 0
    assert "2 to create" in ran.out
    assert "✓ Topic/a  created; 3 partitions × 1 replica, all in sync according to their leaders" in ran.out
    assert "Create these topics?" in ran.err
    assert kdeclare.topics == {"a", "b"}
    assert "kdeclare topic create a b" in kdeclare("history").out
    assert kdeclare("rollback", "--yes").code == 0
    assert not kdeclare.topics


def test_nothing_is_owned_through_it(kdeclare: CommandLine) -> None:
    kdeclare("topic", "create", "a", "--yes")
    kdeclare.topic("mine")
    kdeclare("apply", "--yes")
    plan = json.loads(kdeclare("plan", "--allow-deletes", "--format", "json").out)
    assert plan["changes"] == []
    assert plan["summary"]["unmanaged"] == 1


def test_who_says_no_changes_nothing(kdeclare: CommandLine) -> None:
    ran = kdeclare("topic", "create", "a", answer="no\n")
    assert (ran.code, kdeclare.topics) == (1, set())
    assert "Nothing was changed." in ran.err


def test_without_a_terminal_somebody_has_to_say_yes(kdeclare: CommandLine) -> None:
    assert kdeclare("topic", "create", "a").code == 64
    assert not kdeclare.topics


def test_one_failure_does_not_stop_the_others(kdeclare: CommandLine) -> None:
    make(kdeclare, "there", (1,))
    ran = kdeclare("topic", "create", "there", "a", "il/legal", "--yes", "--format", "json")
    assert ran.code == 5
    assert results(ran) == {"Topic/a": "created", "Topic/il/legal": "failed", "Topic/there": "failed"}
    assert kdeclare.topics == {"there", "a"}


def test_what_the_brokers_refuse_fails_alone(kdeclare: CommandLine) -> None:
    make(kdeclare, "a_b", (1,))
    ran = kdeclare("topic", "create", "a.b", "fine", "--yes", "--format", "json")
    assert results(ran) == {"Topic/a.b": "failed", "Topic/fine": "created"}
    assert "Correct the manifest" not in ran.out


def test_nothing_but_failures_is_an_error(kdeclare: CommandLine) -> None:
    make(kdeclare, "there", (1,))
    ran = kdeclare("topic", "create", "there", "--yes")
    assert ran.code == 1
    assert "Topic 'there' already exists and was not changed." in ran.err
    assert kdeclare("history").out == kdeclare("history").out
    assert json.loads(kdeclare("topic", "create", "there", "--yes", "--format", "json").out)["run"] is None


def test_if_not_exists_and_if_exists_leave_out(kdeclare: CommandLine) -> None:
    make(kdeclare, "there", (1,))
    ran = kdeclare("topic", "create", "there", "new", "--if-not-exists", "--yes", "--format", "json")
    assert (ran.code, results(ran)) == (0, {"Topic/new": "created", "Topic/there": "left-out"})
    ran = kdeclare(
        "topic", "alter", "gone", "there", "--partitions", "2", "--if-exists", "--yes", "--format", "json"
    )
    assert (ran.code, results(ran)) == (0, {"Topic/gone": "left-out", "Topic/there": "altered"})
    ran = kdeclare("topic", "delete", "gone", "--if-exists", "--yes", "--format", "json")
    assert (ran.code, results(ran)) == (0, {"Topic/gone": "left-out"})


def test_a_topic_that_is_not_there_is_named_with_a_guess(kdeclare: CommandLine) -> None:
    make(kdeclare, "orders", (1,))
    ran = kdeclare("topic", "alter", "order", "--partitions", "2", "--yes")
    assert ran.code == 1
    assert "There is no topic 'order'." in ran.err
    assert "Did you mean 'orders'?" in ran.err


def test_an_assignment_must_leave_no_gap(kdeclare: CommandLine) -> None:
    make(kdeclare, "t", (1,))
    file = kdeclare.folder / "gap.yaml"
    file.write_text("topics:\n- topic: t\n  assignments: {0: [1], 3: [2]}\n")
    ran = kdeclare("topic", "alter", "--from-file", "gap.yaml", "--yes")
    assert ran.code == 1
    assert "partition 3 cannot be added without partition 1" in ran.err
    assert "gap.yaml:2:10" in ran.err


def test_flags_say_what_an_entry_of_a_file_does_not(kdeclare: CommandLine) -> None:
    text = "topics:\n- {topic: a, partitions: 2, configs: {retention.ms: 1}}\n- topic: b\n"
    (kdeclare.folder / "topics.yaml").write_text(text)
    flags = ("--partitions", "3", "--replication-factor", "2", "--config", "retention.ms=5")
    assert kdeclare("topic", "create", "--from-file", "topics.yaml", "c", *flags, "--yes").code == 0
    counts = {name: len(replicas(kdeclare, name)) for name in "abc"}
    assert counts == {"a": 2, "b": 3, "c": 3}
    assert [len(replicas(kdeclare, name)[0]) for name in "abc"] == [2, 2, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics: []\n", "The list 'topics' is empty"),
        ("topics: [{partitions: 3}]\n", "needs a field 'topic'"),
        ("topics: [{topic: a, partition: 3}]\n", "There is no field 'partition'"),
        ("topics: [{topic: a, partitions: 0}]\n", "partitions"),
        ("topics: [{topic: a\n", "YAML syntax error"),
        ("- a\n", "Not a manifest"),
    ],
)
def test_a_file_that_is_wrong_is_told_with_its_place(kdeclare: CommandLine, text: str, said: str) -> None:
    (kdeclare.folder / "topics.yaml").write_text(text)
    ran = kdeclare("topic", "create", "--from-file", "topics.yaml", "--yes")
    assert ran.code == 1
    assert said in ran.err
    assert "topics.yaml:" in ran.err


def test_a_name_is_exact_and_other_characters_make_an_expression(kdeclare: CommandLine) -> None:
    for name in ("a.b", "axb", "pay-1", "pay-2", "repay"):
        make(kdeclare, name, (1,))
    assert results(kdeclare("topic", "delete", "a.b", "--yes", "--format", "json")) == {
        "Topic/a.b": "deleted"
    }
    ran = kdeclare("topic", "alter", "--topic", "pay.*", "--partitions", "2", "--yes", "--format", "json")
    assert results(ran) == {"Topic/pay-1": "altered", "Topic/pay-2": "altered"}
    ran = kdeclare("topic", "delete", "nothing.*", "--yes")
    assert ran.code == 1
    assert "No topic name matches 'nothing.*'." in ran.err
    assert kdeclare("topic", "delete", "pay(", "--yes").code == 1


def test_names_with_commas_between(kdeclare: CommandLine) -> None:
    assert kdeclare("topic", "create", "--topic", "a,b", "--topic", "c", "--yes").code == 0
    assert kdeclare.topics == {"a", "b", "c"}
    assert kdeclare("topic", "delete", "[ab]", "c", "--yes").code == 0
    assert not kdeclare.topics


def test_delete_is_final_and_says_so(kdeclare: CommandLine) -> None:
    make(kdeclare, "t", (1,))
    ran = kdeclare("topic", "delete", "t", answer="yes\n")
    assert ran.code == 0
    assert "destructive: All records of the topic are deleted." in ran.out
    assert "undoes it" not in ran.out


def test_internal_topics_and_prevent_destroy_are_never_deleted(kdeclare: CommandLine) -> None:
    kdeclare.topic("precious", lifecycle={"preventDestroy": True})
    kdeclare("apply", "--yes")
    ran = kdeclare("topic", "delete", "precious", "--yes")
    assert ran.code == 3
    assert "Topic 'precious' cannot be deleted" in ran.out
    assert kdeclare.topics == {"precious"}


def test_what_the_manifests_own_is_said_before_asking(kdeclare: CommandLine) -> None:
    kdeclare.topic("t", partitions=2, configs={"retention.ms": 5})
    kdeclare("apply", "--yes")
    ran = kdeclare("topic", "alter", "t", "--add-config", "retention.ms=7,max.message.bytes=9", answer="no\n")
    said = "retention.ms of Topic/t is declared in a manifest. The next 'kdeclare apply' reverts this change."
    assert said in ran.err
    assert ran.err.index(said) < ran.err.index("Change these topics?")
    assert "manifests/t.yaml:" in ran.err
    ran = kdeclare("topic", "alter", "t", "--add-config", "max.message.bytes=9", "--yes")
    assert "declared" not in ran.err


def test_what_manifests_own_is_drift_afterwards(kdeclare: CommandLine) -> None:
    kdeclare.topic("t", partitions=1, configs={"retention.ms": 5})
    kdeclare("apply", "--yes")
    kdeclare("topic", "alter", "t", "--add-config", "retention.ms=7", "--yes")
    (change,) = json.loads(kdeclare("plan", "--format", "json").out)["changes"]
    assert (change["reason"], change["fields"][0]["after"]) == ("drifted", "5")


def test_a_deleted_topic_of_the_manifests_is_missing_afterwards(kdeclare: CommandLine) -> None:
    kdeclare.topic("t", partitions=1)
    kdeclare("apply", "--yes")
    ran = kdeclare("topic", "delete", "t", "--yes")
    assert "The next 'kdeclare apply' creates it again" in ran.err
    (change,) = json.loads(kdeclare("plan", "--format", "json").out)["changes"]
    assert (change["action"], change["reason"]) == ("create", "missing")


def test_policies_hold_by_hand_too(kdeclare: CommandLine) -> None:
    rule = {"rule": "post.partitions <= 3", "message": "three at most", "actions": ["CREATE"]}
    kdeclare.write("manifests/policy.yaml", "Policy", "few", **rule)
    ran = kdeclare("topic", "create", "many", "--partitions", "9", "--yes", "--format", "json")
    assert (ran.code, results(ran)) == (3, {"Topic/many": "denied"})
    override = ("--override-policy", "few", "--reason", "an experiment")
    assert kdeclare("topic", "create", "many", "--partitions", "9", *override, "--yes").code == 0
    assert len(replicas(kdeclare, "many")) == 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create",), "name at least one topic"),
        (("alter", "t"), "specify a change"),
        (("create", "t", "--replica-assignment", "1:2", "--partitions", "3"), "omit --partitions"),
        (("create", "t", "--replica-assignment", "1:x"), "not of the form BROKER:BROKER"),
        (("create", "t", "--replica-assignment", "1:1"), "lists a broker twice"),
        (("create", "t", "--partitions", "0"), "--partitions"),
        (("create", "t", "--config", "retention.ms"), "does not have the form KEY=VALUE"),
        (("create", "t", "--config", "a=1", "--config", "a=2"), "given twice"),
        (("alter", "t", "--add-config", "a=1", "--delete-config", "a"), "is also changed by another option"),
        (
            ("alter", "t", "--add-config", "a=1", "--append-config", "a=1"),
            "is also changed by another option",
        ),
    ],
)
def test_wrong_usage(kdeclare: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    ran = kdeclare("topic", *arguments, "--yes")
    assert ran.code == 64
    assert said in " ".join(ran.err.split())


def test_manifests_that_cannot_be_read_are_no_reason_to_fail(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "manifests" / "broken.yaml").write_text("kind: [\n")
    ran = kdeclare("topic", "create", "t", "--yes")
    assert ran.code == 0
    assert "Not all manifests can be read" in ran.err


def test_metadata_that_cannot_be_read_afterwards_takes_nothing_back(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, topics = kdeclare.cluster.create_topics, kdeclare.cluster.topics

    def then_away(*args: Any, **kwargs: Any) -> Any:
        answer = create(*args, **kwargs)
        if not kwargs.get("validate_only"):
            monkeypatch.setattr(run, "verify", away)
        return answer

    def away(*_: object) -> None:
        raise Fault("NETWORK_EXCEPTION", "The broker has gone away.")

    monkeypatch.setattr(kdeclare.cluster, "create_topics", then_away)
    ran = kdeclare("topic", "create", "t", "--yes")
    assert ran.code == 0
    assert "✓ Topic/t  created" in ran.out
    assert "The metadata could not be read after the changes: NETWORK_EXCEPTION" in ran.out
    assert set(topics()) == {"t"}


def test_policies_go_by_the_labels_of_manifests(kdeclare: CommandLine) -> None:
    rule = {"rule": "post.partitions <= 3", "actions": ["MODIFY"], "selector": {"labels": {"tier": "gold"}}}
    kdeclare.write("manifests/policy.yaml", "Policy", "few", message="three at most", **rule)
    manifest = kdeclare.topic("orders", partitions=1)
    manifest.write_text(manifest.read_text().replace("name: orders", "labels: {tier: gold}\n  name: orders"))
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("topic", "alter", "orders", "--partitions", "5", "--yes").code == 3
    assert len(replicas(kdeclare, "orders")) == 1


def test_what_a_manifest_protects_is_not_deleted_though_it_was_never_applied(kdeclare: CommandLine) -> None:
    make(kdeclare, "orders", (1,))
    kdeclare.topic("orders", lifecycle={"preventDestroy": True})
    assert kdeclare("topic", "delete", "orders", "--yes").code == 3
    assert kdeclare.topics == {"orders"}


@pytest.mark.parametrize("assignments", ["{-1: [1, 2]}", "{0: [1, 1]}", "{0: []}"])
def test_assignments_that_are_none(kdeclare: CommandLine, assignments: str) -> None:
    make(kdeclare, "t", (1, 3))
    (kdeclare.folder / "odd.yaml").write_text(f"topics: [{{topic: t, assignments: {assignments}}}]\n")
    assert kdeclare("topic", "alter", "--from-file", "odd.yaml", "--yes").code == 1
    assert replicas(kdeclare, "t") == [(1, 3)]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("x{1001}", "nor a regular expression: invalid repetition size in '{1001}'"),
        ("x{99999999999}", "No topic name matches"),  # RE2 reads these as letters, not as a repetition
    ],
)
def test_a_pattern_that_is_too_much_is_an_error_and_no_bug(
    kdeclare: CommandLine, pattern: str, said: str
) -> None:
    ran = kdeclare("topic", "delete", pattern, "--yes")
    assert ran.code == 1
    assert said in ran.err


def test_a_secret_behind_an_odd_bracket_stays_out_of_the_history(kdeclare: CommandLine) -> None:
    odd = "listener.name.a.ssl.principal.mapping.rules=RULE:[x,listener.name.b.ssl.keystore.password=hunter2"
    kdeclare("config", "alter", "--broker", "1", "--add-config", odd, "--verify-timeout", "0", "--yes")
    kept = "".join(p.read_text() for p in (kdeclare.folder / "state").rglob("*") if p.is_file())
    assert "hunter2" not in kept
    ran = kdeclare(
        "config", "alter", "--broker", "1", "--add-config", "ssl.keystore.password=hun,ter2", "--yes"
    )
    assert (ran.code, "ter2" in ran.err) == (64, False)
