"""`kdeclare state transfer`: give resources to another project of the same cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from kdeclare.engine.state.local_store import LocalStore
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_damaged_state import apply_topics, contains_words, list_owned, read_state
from tests.unit.cli.test_state_abandon import kill_last_run
from tests.unit.cli.test_state_commands import forbid_connections, validate

BILLING = "billing/kdeclare.yaml"
TO_BILLING = ("--to-project", BILLING, "--yes")


def write_billing(kdeclare: CommandLine, **spec: Any) -> None:
    """Write a second project for the same cluster, without manifests."""
    (kdeclare.folder / "billing" / "manifests").mkdir(parents=True)
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    kdeclare.write(BILLING, "Project", "billing", **{"environments": environments} | spec)


def list_billing(kdeclare: CommandLine) -> set[str]:
    """Return the resources that the second project owns."""
    ran = kdeclare("state", "list", "--project", BILLING, "--format", "json")
    return set(json.loads(ran.out)["resources"]) if ran.code == 0 else set()


def get_billing_state(kdeclare: CommandLine) -> Path:
    """Return the file of the state of the second project."""
    return kdeclare.folder / "billing" / "state" / "billing" / "lab" / "state.json"


def test_transfer_moves_records_to_a_new_state(kdeclare: CommandLine) -> None:
    kdeclare.topic("b")
    apply_topics(kdeclare, "a", "c")
    records = read_state(kdeclare)["resources"]
    write_billing(kdeclare)
    forbid_connections(kdeclare)
    ran = kdeclare("state", "transfer", "Topic/a", "Topic/b", "--to-project", BILLING, answer="yes\n")
    assert ran.code == 0, ran.err
    words = ("project 'billing', environment 'lab'", "→ Topic/a", "Only the two states are changed")
    assert contains_words(ran, *words)
    assert (list_owned(kdeclare), list_billing(kdeclare)) == ({"Topic/c"}, {"Topic/a", "Topic/b"})
    written = json.loads(get_billing_state(kdeclare).read_text())
    assert written["resources"] == {
        name: records[name] | {"preventDestroy": True} for name in ("Topic/a", "Topic/b")
    }
    assert written["cluster_id"] == read_state(kdeclare)["cluster_id"]
    assert written["lineage"] != read_state(kdeclare)["lineage"]


def test_transferred_resources_need_no_adoption(kdeclare: CommandLine) -> None:
    kdeclare.topic("a", configs={"retention.ms": 1000})
    assert kdeclare("apply", "--yes").code == 0
    write_billing(kdeclare)
    assert kdeclare("state", "transfer", "Topic/a", *TO_BILLING).code == 0
    (kdeclare.folder / "manifests" / "a.yaml").rename(kdeclare.folder / "billing" / "manifests" / "a.yaml")
    ran = kdeclare("plan", "--project", BILLING, "--detailed-exitcode")
    assert (ran.code, "adopt" in ran.out) == (0, False), ran
    kdeclare.write("billing/manifests/a.yaml", "Topic", "a", partitions=1, configs={"retention.ms": 2000})
    assert kdeclare("apply", "--project", BILLING, "--yes").code == 0
    assert kdeclare("plan", "--detailed-exitcode", "--allow-empty").code == 0
    assert kdeclare.topics == {"a"}


def test_transferred_resource_is_not_deleted_before_it_is_declared(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    write_billing(kdeclare)
    assert kdeclare("state", "transfer", "Topic/a", *TO_BILLING).code == 0
    line = ("apply", "--project", BILLING, "--yes", "--allow-deletes", "--allow-empty")
    refused = kdeclare(*line)
    assert (refused.code, contains_words(refused, "prevent-destroy", "Topic/a")) == (3, True), refused
    (kdeclare.folder / "manifests" / "a.yaml").rename(kdeclare.folder / "billing" / "manifests" / "a.yaml")
    assert kdeclare("apply", "--project", BILLING, "--yes").code == 0
    (kdeclare.folder / "billing" / "manifests" / "a.yaml").unlink()
    assert kdeclare(*line).code == 0
    assert kdeclare.topics == {"b"}


def test_transferred_broker_config_keeps_its_record(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/b.yaml", "BrokerConfig", "1", configs={"log.cleaner.threads": 2})
    assert kdeclare("apply", "--yes").code == 0
    record = read_state(kdeclare)["resources"]["BrokerConfig/1"]
    write_billing(kdeclare)
    assert kdeclare("state", "transfer", "BrokerConfig/1", *TO_BILLING).code == 0
    assert json.loads(get_billing_state(kdeclare).read_text())["resources"] == {"BrokerConfig/1": record}


def test_transfer_prints_a_document(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    write_billing(kdeclare)
    ran = kdeclare("state", "transfer", "Topic/a", *TO_BILLING, "--format", "json")
    document: Any = validate("state-transfer", ran.out)
    assert (document["resources"], document["written"]) == (["Topic/a"], True)
    assert (document["source"]["serial"], document["target"]["serial"]) == (2, 1)
    assert (document["source"]["project"], document["target"]["project"]) == ("shop", "billing")


def test_transfer_requires_confirmation(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    write_billing(kdeclare)
    line = ("state", "transfer", "Topic/a", "--to-project", BILLING)
    assert kdeclare(*line).code == 64
    declined = kdeclare(*line, answer="no\n")
    assert (declined.code, contains_words(declined, "Not confirmed")) == (1, True)
    assert (list_owned(kdeclare), list_billing(kdeclare)) == ({"Topic/a"}, set())


def test_transfer_to_the_same_state_is_refused(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    refused = kdeclare("state", "transfer", "Topic/a", "--to-project", "kdeclare.yaml", "--yes")
    assert (refused.code, contains_words(refused, "already own the resources")) == (64, True)


def test_transfer_of_unowned_resource_is_refused(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    write_billing(kdeclare)
    refused = kdeclare("state", "transfer", "Topic/a", "Topic/b", *TO_BILLING)
    assert (refused.code, contains_words(refused, "not owned", "Topic/b")) == (1, True)
    assert (list_owned(kdeclare), list_billing(kdeclare)) == ({"Topic/a"}, set())


def test_transfer_outside_the_scope_is_refused(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "billing.a")
    write_billing(kdeclare, scope={"Topic": [r"/billing\..*/"]})
    refused = kdeclare("state", "transfer", "Topic/a", "Topic/billing.a", *TO_BILLING)
    assert (refused.code, contains_words(refused, "Outside the scope", "Topic/a")) == (1, True)
    assert list_billing(kdeclare) == set()
    assert kdeclare("state", "transfer", "Topic/billing.a", *TO_BILLING).code == 0


@pytest.mark.parametrize("has_state", [True, False], ids=["state", "clusterId"])
def test_transfer_to_another_cluster_is_refused(kdeclare: CommandLine, has_state: bool) -> None:
    apply_topics(kdeclare, "a")
    write_billing(
        kdeclare,
        environments={
            "lab": {"bootstrapServers": "lab:9092"} | ({} if has_state else {"clusterId": "another"})
        },
    )
    if has_state:
        document = read_state(kdeclare) | {"cluster_id": "another", "lineage": "x", "resources": {}}
        get_billing_state(kdeclare).parent.mkdir(parents=True)
        get_billing_state(kdeclare).write_text(json.dumps(document))
    refused = kdeclare("state", "transfer", "Topic/a", *TO_BILLING)
    assert (refused.code, contains_words(refused, "different clusters", "another")) == (1, True)
    assert list_owned(kdeclare) == {"Topic/a"}


def test_transfer_is_refused_if_the_target_owns_the_resource_differently(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    write_billing(kdeclare)
    kdeclare.write("billing/manifests/a.yaml", "Topic", "a", configs={"retention.ms": 1000})
    assert kdeclare("apply", "--project", BILLING, "--yes", "--adopt").code == 0
    refused = kdeclare("state", "transfer", "Topic/a", *TO_BILLING)
    assert (refused.code, contains_words(refused, "already owned", "kdeclare state rm Topic/a")) == (1, True)
    assert (list_owned(kdeclare), list_billing(kdeclare)) == ({"Topic/a"}, {"Topic/a"})


def test_interrupted_transfer_is_completed_by_the_same_command(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_topics(kdeclare, "a")
    write_billing(kdeclare)
    write, folder = LocalStore.write, str(kdeclare.folder / "state")

    def fail(store: LocalStore, state: Any) -> None:
        if str(store._folder.resolve()).startswith(folder):
            raise KeyboardInterrupt
        write(store, state)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "write", fail)
        assert kdeclare("state", "transfer", "Topic/a", *TO_BILLING).code != 0
    assert (list_owned(kdeclare), list_billing(kdeclare)) == ({"Topic/a"}, {"Topic/a"})
    assert kdeclare("state", "transfer", "Topic/a", *TO_BILLING).code == 0
    assert (list_owned(kdeclare), list_billing(kdeclare)) == (set(), {"Topic/a"})


def test_transfer_is_refused_while_a_run_is_unfinished(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    write_billing(kdeclare)
    kill_last_run(kdeclare, 2)
    refused = kdeclare("state", "transfer", "Topic/a", *TO_BILLING)
    assert (refused.code, contains_words(refused, "A run is not finished")) == (1, True)
    assert list_billing(kdeclare) == set()
