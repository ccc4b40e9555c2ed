"""``spec.scope`` of a project file limits the names that it may declare, change or import."""

import json
from typing import Any

import pytest

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.port import NewTopic
from tests.unit.cli.command_line import CommandLine

ENVIRONMENTS = {"lab": {"bootstrapServers": "lab:9092"}}
CHECKOUT = {"Topic": [r"/checkout\..*/", "audit"]}


def limit(kdeclare: CommandLine, scope: Any = CHECKOUT) -> None:
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=ENVIRONMENTS, scope=scope)


@pytest.fixture
def shared(kdeclare: CommandLine) -> CommandLine:
    """A cluster with topics of two teams, and a project limited to one of them."""
    topics = [NewTopic(name, None, None, {0: (1, 2)}, {}) for name in ("checkout.a", "search.a", "audit")]
    kdeclare.cluster.create_topics(topics)
    limit(kdeclare)
    return kdeclare


def said(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("command", ["validate", "plan", "apply --yes"])
def test_name_outside_the_scope_is_an_error_at_its_place(shared: CommandLine, command: str) -> None:
    shared.topic("checkout.new")
    shared.topic("search.new")
    ran = shared(*command.split())
    assert ran.code == 1
    told = said(ran.out + ran.err)
    assert "manifests/search.new.yaml:4:9" in told
    assert (
        "This project must not declare or change Topic/search.new. "
        r"Its scope for kind Topic: /checkout\..*/, audit."
    ) in told
    assert "checkout.new" not in told
    assert "checkout.new" not in shared.topics


def test_names_within_the_scope_and_kinds_without_one_are_free(shared: CommandLine) -> None:
    shared.topic("checkout.new")
    shared.topic("audit", partitions=1)
    shared.write("manifests/b.yaml", "BrokerConfig", "1", configs={"num.io.threads": 9})
    assert shared("apply", "--yes").code == 0
    assert "checkout.new" in shared.topics


def test_empty_list_permits_no_name(shared: CommandLine) -> None:
    limit(shared, {"BrokerConfig": []})
    shared.write("manifests/b.yaml", "BrokerConfig", "1", configs={"num.io.threads": 9})
    ran = shared("validate")
    assert ran.code == 1
    assert "Its scope for kind BrokerConfig: none." in said(ran.out)


def test_reassignment_names_only_topics_within_the_scope(shared: CommandLine) -> None:
    shared.write("manifests/r.yaml", "Reassignment", "away", topics=["search.a", "audit"], drain=[1])
    ran = shared("validate")
    assert ran.code == 1
    assert "must not declare or change Topic/search.a, which Reassignment/away would affect" in said(ran.out)


def test_pattern_of_a_reassignment_matches_only_topics_within_the_scope(shared: CommandLine) -> None:
    file = shared.write("manifests/r.yaml", "Reassignment", "away", topics=["/.*a/"], drain=[1])
    assert shared("validate").code == 0, "only the cluster knows which topics match"
    ran = shared("plan")
    assert ran.code == 1
    assert "Topic/search.a, which Reassignment/away would affect" in said(ran.out)
    file.unlink()
    shared.write("manifests/r.yaml", "Reassignment", "away", topics=["/checkout.*/"], drain=[1])
    assert shared("plan").code == 0


def test_orphan_outside_the_scope_is_released_and_never_deleted(shared: CommandLine) -> None:
    limit(shared, {})
    for name in ("search.a", "checkout.a"):
        shared.topic(name)
    assert shared("apply", "--yes").code == 0
    limit(shared)
    (shared.folder / "manifests" / "search.a.yaml").unlink()
    ran = shared("apply", "--yes", "--allow-deletes")
    assert ran.code == 3
    assert "Release it with --forget" in said(ran.out)
    assert "search.a" in shared.topics
    assert shared("apply", "--yes", "--forget", "Topic/search.a").code == 0


@pytest.mark.parametrize(
    "command",
    [
        "topic create search.new --partitions 1",
        "topic delete search.a",
        "topic alter search.a --partitions 5",
        "config alter --topic search.a --add-config retention.ms=1",
    ],
)
def test_ad_hoc_commands_change_nothing_outside_the_scope(shared: CommandLine, command: str) -> None:
    before = shared.cluster.dump()
    ran = shared(*command.split(), "--yes")
    assert ran.code == 1
    assert "This project must not declare or change Topic/search." in said(ran.out + ran.err)
    assert shared.cluster.dump() == before


def test_ad_hoc_command_does_what_is_within_the_scope(shared: CommandLine) -> None:
    ran = shared("topic", "delete", ".*a", "--yes")
    assert ran.code == 5
    assert shared.topics == {"search.a", "audit"}


@pytest.mark.parametrize("step", ["--execute", "--cancel"])
def test_reassign_moves_nothing_outside_the_scope(shared: CommandLine, step: str) -> None:
    partitions = [{"topic": "search.a", "partition": 0, "replicas": [3, 2]}]
    (shared.folder / "r.json").write_text(json.dumps({"version": 1, "partitions": partitions}))
    ran = shared("reassign", step, "--reassignment-json-file", "r.json", "--yes")
    assert ran.code == 1
    assert "This project must not declare or change Topic/search.a" in said(ran.err)
    assert shared.cluster.partition(TopicPartition("search.a", 0)).replicas == (1, 2)


def test_import_leaves_out_what_is_outside_the_scope(shared: CommandLine) -> None:
    ran = shared("import", "--match", ".*")
    assert "name: checkout.a" in ran.out
    assert "name: audit" in ran.out
    assert "search.a" not in ran.out
    assert "1 topic (outside the scope of the project)" in ran.err


def test_scope_names_kinds_and_patterns_that_exist(kdeclare: CommandLine) -> None:
    limit(kdeclare, {"Topics": ["a"], "Topic": ["/(?=a)/", "/a.*/"]})
    ran = kdeclare("validate")
    assert ran.code == 1
    told = said(ran.err)
    assert "'spec.scope' has an entry for the kind 'Topics', which does not exist." in told
    assert "Did you mean 'Topic'?" in told
    assert "The entry /(?=a)/ of 'spec.scope.Topic' is not a regular expression" in told
    assert told.count("kdeclare.yaml:") == 2
