"""`kdeclare topic create`, `alter`, `delete` on an in-memory cluster: KIP-4's rules, one by one."""

import json
from typing import Any

import pytest

from kdeclare.app.adhoc import run
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.request_values import NewTopic
from tests.beds import all_created
from tests.unit.cli.command_line import CommandLine, CommandResult


def read_replicas(kdeclare: CommandLine, topic: str) -> list[tuple[int, ...]]:
    return [p.replicas for p in kdeclare.cluster.topics([topic])[topic].partitions]


def create_topic(kdeclare: CommandLine, name: str, *partitions: tuple[int, ...]) -> None:
    new = NewTopic(name, None, None, dict(enumerate(partitions)), {})
    assert all_created(kdeclare.cluster.create_topics([new]))


def read_results(ran: CommandResult) -> dict[str, str]:
    """Return the outcome of each resource."""
    return {item["resource"]: item["result"] for item in json.loads(ran.out)["results"]}


def test_topic_create_is_recorded_and_can_be_rolled_back(kdeclare: CommandLine) -> None:
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


def test_topic_create_owns_nothing(kdeclare: CommandLine) -> None:
    kdeclare("topic", "create", "a", "--yes")
    kdeclare.topic("mine")
    kdeclare("apply", "--yes")
    plan = json.loads(kdeclare("plan", "--allow-deletes", "--format", "json").out)
    assert plan["changes"] == []
    assert plan["summary"]["unmanaged"] == 1


def test_topic_create_declined_changes_nothing(kdeclare: CommandLine) -> None:
    ran = kdeclare("topic", "create", "a", answer="no\n")
    assert (ran.code, kdeclare.topics) == (1, set())
    assert "Nothing was changed." in ran.err


def test_topic_create_without_terminal_needs_yes(kdeclare: CommandLine) -> None:
    assert kdeclare("topic", "create", "a").code == 64
    assert not kdeclare.topics


def test_topic_create_reports_existing_topic_and_creates_others(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "there", (1,))
    ran = kdeclare("topic", "create", "there", "a", "il/legal", "--yes", "--format", "json")
    assert ran.code == 5
    assert read_results(ran) == {"Topic/a": "created", "Topic/il/legal": "failed", "Topic/there": "failed"}
    assert kdeclare.topics == {"there", "a"}


def test_topic_create_reports_refused_topic_and_creates_others(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "a_b", (1,))
    ran = kdeclare("topic", "create", "a.b", "fine", "--yes", "--format", "json")
    assert read_results(ran) == {"Topic/a.b": "failed", "Topic/fine": "created"}
    assert "Correct the manifest" not in ran.out


def test_topic_create_fails_if_nothing_was_created(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "there", (1,))
    ran = kdeclare("topic", "create", "there", "--yes")
    assert ran.code == 1
    assert "Topic 'there' already exists and was not changed." in ran.err
    assert kdeclare("history").out == kdeclare("history").out
    assert json.loads(kdeclare("topic", "create", "there", "--yes", "--format", "json").out)["run"] is None


def test_if_exists_and_if_not_exists_skip_topics(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "there", (1,))
    ran = kdeclare("topic", "create", "there", "new", "--if-not-exists", "--yes", "--format", "json")
    assert (ran.code, read_results(ran)) == (0, {"Topic/new": "created", "Topic/there": "left-out"})
    ran = kdeclare(
        "topic", "alter", "gone", "there", "--partitions", "2", "--if-exists", "--yes", "--format", "json"
    )
    assert (ran.code, read_results(ran)) == (0, {"Topic/gone": "left-out", "Topic/there": "altered"})
    ran = kdeclare("topic", "delete", "gone", "--if-exists", "--yes", "--format", "json")
    assert (ran.code, read_results(ran)) == (0, {"Topic/gone": "left-out"})


def test_topic_alter_suggests_name_for_unknown_topic(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "orders", (1,))
    ran = kdeclare("topic", "alter", "order", "--partitions", "2", "--yes")
    assert ran.code == 1
    assert "There is no topic 'order'." in ran.err
    assert "Did you mean 'orders'?" in ran.err


def test_topic_alter_rejects_gap_in_assignments(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "t", (1,))
    file = kdeclare.folder / "gap.yaml"
    file.write_text("topics:\n- topic: t\n  assignments: {0: [1], 3: [2]}\n")
    ran = kdeclare("topic", "alter", "--from-file", "gap.yaml", "--yes")
    assert ran.code == 1
    assert "partition 3 cannot be added without partition 1" in ran.err
    assert "gap.yaml:2:10" in ran.err


def test_options_are_defaults_for_entries_of_file(kdeclare: CommandLine) -> None:
    text = "topics:\n- {topic: a, partitions: 2, configs: {retention.ms: 1}}\n- topic: b\n"
    (kdeclare.folder / "topics.yaml").write_text(text)
    flags = ("--partitions", "3", "--replication-factor", "2", "--config", "retention.ms=5")
    assert kdeclare("topic", "create", "--from-file", "topics.yaml", "c", *flags, "--yes").code == 0
    counts = {name: len(read_replicas(kdeclare, name)) for name in "abc"}
    assert counts == {"a": 2, "b": 3, "c": 3}
    assert [len(read_replicas(kdeclare, name)[0]) for name in "abc"] == [2, 2, 2]


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
def test_invalid_topics_file_is_reported_with_position(kdeclare: CommandLine, text: str, said: str) -> None:
    (kdeclare.folder / "topics.yaml").write_text(text)
    ran = kdeclare("topic", "create", "--from-file", "topics.yaml", "--yes")
    assert ran.code == 1
    assert said in ran.err
    assert "topics.yaml:" in ran.err


def test_plain_name_matches_exactly_and_pattern_as_expression(kdeclare: CommandLine) -> None:
    for name in ("a.b", "axb", "pay-1", "pay-2", "repay"):
        create_topic(kdeclare, name, (1,))
    assert read_results(kdeclare("topic", "delete", "a.b", "--yes", "--format", "json")) == {
        "Topic/a.b": "deleted"
    }
    ran = kdeclare("topic", "alter", "--topic", "pay.*", "--partitions", "2", "--yes", "--format", "json")
    assert read_results(ran) == {"Topic/pay-1": "altered", "Topic/pay-2": "altered"}
    ran = kdeclare("topic", "delete", "nothing.*", "--yes")
    assert ran.code == 1
    assert "No topic name matches 'nothing.*'." in ran.err
    assert kdeclare("topic", "delete", "pay(", "--yes").code == 64


def test_topic_names_can_be_comma_separated(kdeclare: CommandLine) -> None:
    assert kdeclare("topic", "create", "--topic", "a,b", "--topic", "c", "--yes").code == 0
    assert kdeclare.topics == {"a", "b", "c"}
    assert kdeclare("topic", "delete", "[ab]", "c", "--yes").code == 0
    assert not kdeclare.topics


def test_topic_delete_warns_about_data_loss(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "t", (1,))
    ran = kdeclare("topic", "delete", "t", answer="yes\n")
    assert ran.code == 0
    assert "destructive: All records of the topic are deleted." in ran.out
    assert "undoes it" not in ran.out


def test_topic_delete_refuses_protected_topic(kdeclare: CommandLine) -> None:
    kdeclare.topic("precious", lifecycle={"preventDestroy": True})
    kdeclare("apply", "--yes")
    ran = kdeclare("topic", "delete", "precious", "--yes")
    assert ran.code == 3
    assert "Topic 'precious' cannot be deleted" in ran.out
    assert kdeclare.topics == {"precious"}


def test_topic_alter_warns_about_declared_config(kdeclare: CommandLine) -> None:
    kdeclare.topic("t", partitions=2, configs={"retention.ms": 5})
    kdeclare("apply", "--yes")
    ran = kdeclare("topic", "alter", "t", "--add-config", "retention.ms=7,max.message.bytes=9", answer="no\n")
    said = "retention.ms of Topic/t is declared in a manifest. The next 'kdeclare apply' reverts this change."
    assert said in ran.err
    assert ran.err.index(said) < ran.err.index("Change these topics?")
    assert "manifests/t.yaml:" in ran.err
    ran = kdeclare("topic", "alter", "t", "--add-config", "max.message.bytes=9", "--yes")
    assert "declared" not in ran.err


def test_altered_declared_config_is_drift(kdeclare: CommandLine) -> None:
    kdeclare.topic("t", partitions=1, configs={"retention.ms": 5})
    kdeclare("apply", "--yes")
    kdeclare("topic", "alter", "t", "--add-config", "retention.ms=7", "--yes")
    (change,) = json.loads(kdeclare("plan", "--format", "json").out)["changes"]
    assert (change["reason"], change["fields"][0]["after"]) == ("drifted", "5")


def test_deleted_declared_topic_is_missing(kdeclare: CommandLine) -> None:
    kdeclare.topic("t", partitions=1)
    kdeclare("apply", "--yes")
    ran = kdeclare("topic", "delete", "t", "--yes")
    assert "The next 'kdeclare apply' creates the resource again" in ran.err
    (change,) = json.loads(kdeclare("plan", "--format", "json").out)["changes"]
    assert (change["action"], change["reason"]) == ("create", "missing")


def test_policies_apply_to_topic_create(kdeclare: CommandLine) -> None:
    rule = {"rule": "post.partitions <= 3", "message": "three at most", "actions": ["CREATE"]}
    kdeclare.write("manifests/policy.yaml", "Policy", "few", **rule)
    ran = kdeclare("topic", "create", "many", "--partitions", "9", "--yes", "--format", "json")
    assert (ran.code, read_results(ran)) == (3, {"Topic/many": "denied"})
    override = ("--override-policy", "few", "--reason", "an experiment")
    assert kdeclare("topic", "create", "many", "--partitions", "9", *override, "--yes").code == 0
    assert len(read_replicas(kdeclare, "many")) == 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create",), "name at least one topic"),
        (("alter", "t"), "specify a change"),
        (("create", "t", "--replica-assignment", "1:2", "--partitions", "3"), "omit --partitions"),
        (("create", "t", "--replica-assignment", "1:x"), "'1:x' is not a replica assignment"),
        (("create", "t", "--replica-assignment", "1:1"), "lists a broker twice"),
        (("create", "t", "--replica-assignment", "9" * 5000), "is not a replica assignment"),
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
def test_topic_commands_reject_wrong_usage(
    kdeclare: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    ran = kdeclare("topic", *arguments, "--yes")
    assert ran.code == 64
    assert said in " ".join(ran.err.split())


def test_topic_create_warns_about_unreadable_manifests(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "manifests" / "broken.yaml").write_text("kind: [\n")
    ran = kdeclare("topic", "create", "t", "--yes")
    assert ran.code == 0
    assert "Not all manifests can be read" in ran.err


def test_topic_create_succeeds_if_verification_fails(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, topics = kdeclare.cluster.create_topics, kdeclare.cluster.topics

    def create_then_break(*args: Any, **kwargs: Any) -> Any:
        answer = create(*args, **kwargs)
        if not kwargs.get("validate_only"):
            monkeypatch.setattr(run, "verify", raise_unreachable)
        return answer

    def raise_unreachable(*_: object) -> None:
        raise Fault("NETWORK_EXCEPTION", "The broker has gone away.")

    monkeypatch.setattr(kdeclare.cluster, "create_topics", create_then_break)
    ran = kdeclare("topic", "create", "t", "--yes")
    assert ran.code == 0
    assert "✓ Topic/t  created" in ran.out
    assert "The metadata could not be read after the changes: NETWORK_EXCEPTION" in ran.out
    assert set(topics()) == {"t"}


def test_policies_use_labels_of_manifests(kdeclare: CommandLine) -> None:
    rule = {"rule": "post.partitions <= 3", "actions": ["MODIFY"], "selector": {"labels": {"tier": "gold"}}}
    kdeclare.write("manifests/policy.yaml", "Policy", "few", message="three at most", **rule)
    manifest = kdeclare.topic("orders", partitions=1)
    manifest.write_text(manifest.read_text().replace("name: orders", "labels: {tier: gold}\n  name: orders"))
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("topic", "alter", "orders", "--partitions", "5", "--yes").code == 3
    assert len(read_replicas(kdeclare, "orders")) == 1


def test_topic_delete_refuses_topic_protected_by_unapplied_manifest(kdeclare: CommandLine) -> None:
    create_topic(kdeclare, "orders", (1,))
    kdeclare.topic("orders", lifecycle={"preventDestroy": True})
    assert kdeclare("topic", "delete", "orders", "--yes").code == 3
    assert kdeclare.topics == {"orders"}


@pytest.mark.parametrize("assignments", ["{-1: [1, 2]}", "{0: [1, 1]}", "{0: []}"])
def test_topic_alter_rejects_invalid_assignments(kdeclare: CommandLine, assignments: str) -> None:
    create_topic(kdeclare, "t", (1, 3))
    (kdeclare.folder / "odd.yaml").write_text(f"topics: [{{topic: t, assignments: {assignments}}}]\n")
    assert kdeclare("topic", "alter", "--from-file", "odd.yaml", "--yes").code == 1
    assert read_replicas(kdeclare, "t") == [(1, 3)]


@pytest.mark.parametrize(
    ("pattern", "code", "said"),
    [
        ("x{1001}", 64, "nor a valid regular expression: invalid repetition size in '{1001}'"),
        ("x{99999999999}", 1, "No topic name matches"),  # RE2 reads these as letters, not as a repetition
    ],
)
def test_topic_delete_rejects_oversized_pattern(
    kdeclare: CommandLine, pattern: str, code: int, said: str
) -> None:
    ran = kdeclare("topic", "delete", pattern, "--yes")
    assert ran.code == code
    assert said in ran.err


def test_secret_in_malformed_value_is_not_recorded(kdeclare: CommandLine) -> None:
    odd = "listener.name.a.ssl.principal.mapping.rules=RULE:[x,listener.name.b.ssl.keystore.password=hunter2"
    kdeclare("config", "alter", "--broker", "1", "--add-config", odd, "--verify-timeout", "0", "--yes")
    kept = "".join(p.read_text() for p in (kdeclare.folder / "state").rglob("*") if p.is_file())
    assert "hunter2" not in kept
    ran = kdeclare(
        "config", "alter", "--broker", "1", "--add-config", "ssl.keystore.password=hun,ter2", "--yes"
    )
    assert (ran.code, "ter2" in ran.err) == (64, False)
