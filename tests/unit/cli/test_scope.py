"""``spec.scope`` of a project file limits the names that it may declare, change or import."""

import json
from typing import Any

import pytest

from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine

ENVIRONMENTS = {"lab": {"bootstrapServers": "lab:9092"}}
CHECKOUT = {"Topic": [r"/checkout\..*/", "audit"]}


def limit_project(kdeclare: CommandLine, scope: Any = CHECKOUT) -> None:
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=ENVIRONMENTS, scope=scope)


@pytest.fixture
def shared_cli(kdeclare: CommandLine) -> CommandLine:
    """A cluster with topics of two teams, and a project limited to one of them."""
    topics = [NewTopic(name, None, None, {0: (1, 2)}, {}) for name in ("checkout.a", "search.a", "audit")]
    kdeclare.cluster.create_topics(topics)
    limit_project(kdeclare)
    return kdeclare


def join_words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("command", ["validate", "plan", "apply --yes"])
def test_name_outside_scope_is_error_with_position(shared_cli: CommandLine, command: str) -> None:
    shared_cli.topic("checkout.new")
    shared_cli.topic("search.new")
    ran = shared_cli(*command.split())
    assert ran.code == 1
    told = join_words(ran.out + ran.err)
    assert "manifests/search.new.yaml:4:9" in told
    assert (
        "This project must not declare or change Topic/search.new. "
        r"The project's scope allows these names for kind Topic: /checkout\..*/, audit."
    ) in told
    assert "checkout.new" not in told
    assert "checkout.new" not in shared_cli.topics


def test_names_within_scope_and_kinds_without_scope_are_allowed(shared_cli: CommandLine) -> None:
    shared_cli.topic("checkout.new")
    shared_cli.topic("audit", partitions=1)
    shared_cli.write("manifests/b.yaml", "BrokerConfig", "1", configs={"num.io.threads": 9})
    assert shared_cli("apply", "--yes").code == 0
    assert "checkout.new" in shared_cli.topics


def test_empty_scope_allows_no_name(shared_cli: CommandLine) -> None:
    limit_project(shared_cli, {"BrokerConfig": []})
    shared_cli.write("manifests/b.yaml", "BrokerConfig", "1", configs={"num.io.threads": 9})
    ran = shared_cli("validate")
    assert ran.code == 1
    assert "The project's scope allows these names for kind BrokerConfig: none." in join_words(ran.out)


def test_reassignment_rejects_topics_outside_scope(shared_cli: CommandLine) -> None:
    shared_cli.write("manifests/r.yaml", "Reassignment", "away", topics=["search.a", "audit"], drain=[1])
    ran = shared_cli("validate")
    assert ran.code == 1
    assert "must not declare or change Topic/search.a, which Reassignment/away would affect" in join_words(
        ran.out
    )


def test_reassignment_pattern_rejects_matches_outside_scope(shared_cli: CommandLine) -> None:
    file = shared_cli.write("manifests/r.yaml", "Reassignment", "away", topics=["/.*a/"], drain=[1])
    assert shared_cli("validate").code == 0, "only the cluster knows which topics match"
    ran = shared_cli("plan")
    assert ran.code == 1
    assert "Topic/search.a, which Reassignment/away would affect" in join_words(ran.out)
    file.unlink()
    shared_cli.write("manifests/r.yaml", "Reassignment", "away", topics=["/checkout.*/"], drain=[1])
    assert shared_cli("plan").code == 0


def test_orphan_outside_scope_can_be_released_but_not_deleted(shared_cli: CommandLine) -> None:
    limit_project(shared_cli, {})
    for name in ("search.a", "checkout.a"):
        shared_cli.topic(name)
    assert shared_cli("apply", "--yes").code == 0
    limit_project(shared_cli)
    (shared_cli.folder / "manifests" / "search.a.yaml").unlink()
    ran = shared_cli("apply", "--yes", "--allow-deletes")
    assert ran.code == 3
    assert "Release the resource with --forget" in join_words(ran.out)
    assert "search.a" in shared_cli.topics
    assert shared_cli("apply", "--yes", "--forget", "Topic/search.a").code == 0


@pytest.mark.parametrize(
    "command",
    [
        "topic create search.new --partitions 1",
        "topic delete search.a",
        "topic alter search.a --partitions 5",
        "config alter --topic search.a --add-config retention.ms=1",
    ],
)
def test_ad_hoc_commands_reject_names_outside_scope(shared_cli: CommandLine, command: str) -> None:
    before = shared_cli.cluster.dump()
    ran = shared_cli(*command.split(), "--yes")
    assert ran.code == 1
    assert "This project must not declare or change Topic/search." in join_words(ran.out + ran.err)
    assert shared_cli.cluster.dump() == before


def test_ad_hoc_pattern_matches_within_scope_only(shared_cli: CommandLine) -> None:
    ran = shared_cli("topic", "delete", ".*a", "--yes")
    assert ran.code == 5
    assert shared_cli.topics == {"search.a", "audit"}


@pytest.mark.parametrize("step", ["--execute", "--cancel"])
def test_reassign_rejects_topics_outside_scope(shared_cli: CommandLine, step: str) -> None:
    partitions = [{"topic": "search.a", "partition": 0, "replicas": [3, 2]}]
    (shared_cli.folder / "r.json").write_text(json.dumps({"version": 1, "partitions": partitions}))
    ran = shared_cli("reassign", step, "--reassignment-json-file", "r.json", "--yes")
    assert ran.code == 1
    assert "This project must not declare or change Topic/search.a" in join_words(ran.err)
    assert shared_cli.cluster.partition(TopicPartition("search.a", 0)).replicas == (1, 2)


def test_import_omits_resources_outside_scope(shared_cli: CommandLine) -> None:
    ran = shared_cli("import", "--match", ".*")
    assert "name: checkout.a" in ran.out
    assert "name: audit" in ran.out
    assert "search.a" not in ran.out
    assert "1 topic (outside the scope of the project)" in ran.err


def test_validate_rejects_unknown_kinds_and_patterns_in_scope(kdeclare: CommandLine) -> None:
    limit_project(kdeclare, {"Topics": ["a"], "Topic": ["/(?=a)/", "/a.*/"]})
    ran = kdeclare("validate")
    assert ran.code == 1
    told = join_words(ran.err)
    assert "'spec.scope' has an entry for the kind 'Topics', which does not exist." in told
    assert "Did you mean 'Topic'?" in told
    assert "The entry /(?=a)/ of 'spec.scope.Topic' is not a regular expression" in told
    assert told.count("kdeclare.yaml:") == 2
