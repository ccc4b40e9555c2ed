"""Plans protect the resources that other projects own, according to the states at the same location."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.git_remotes import create_remote
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_damaged_state import apply_topics, contains_words, list_owned

BILLING = ("--project", "billing/kdeclare.yaml")
BOTH_PLACES = ("billing/manifests/a.yaml:", "project 'shop' in environment 'lab' (state: ")


@pytest.fixture
def shared(kdeclare: CommandLine) -> CommandLine:
    """Provide two projects, shop and billing, whose states are at the same location."""
    apply_topics(kdeclare, "a")
    (kdeclare.folder / "billing" / "manifests").mkdir(parents=True)
    write_billing(kdeclare)
    return kdeclare


@pytest.fixture
def shared_branch(kdeclare: CommandLine) -> CommandLine:
    """Provide two projects, shop and billing, whose states are on one branch of a git repository."""
    location = f"git+file://{create_remote(kdeclare.folder / 'state.git')}"
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, state=location)
    kdeclare.topic("a")
    assert kdeclare("apply", "--yes").code == 0
    (kdeclare.folder / "billing" / "manifests").mkdir(parents=True)
    write_billing(kdeclare, state=location)
    return kdeclare


def write_billing(kdeclare: CommandLine, **spec: Any) -> None:
    """Write the project file of billing."""
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    known = {"environments": environments, "state": "../state"}
    kdeclare.write("billing/kdeclare.yaml", "Project", "billing", **known | spec)


def declare_in_billing(kdeclare: CommandLine, name: str = "a", **spec: Any) -> Path:
    """Declare a topic in billing."""
    return kdeclare.write(f"billing/manifests/{name}.yaml", "Topic", name, **{"partitions": 1} | spec)


def list_billing(kdeclare: CommandLine) -> list[str]:
    """Return the resources that billing owns."""
    ran = kdeclare("state", "list", *BILLING, "--format", "json")
    return json.loads(ran.out)["resources"] if ran.code == 0 else []


@pytest.mark.parametrize("configs", [{}, {"retention.ms": 1000}], ids=["equal", "different"])
def test_resource_of_another_project_is_not_adopted(shared: CommandLine, configs: dict[str, int]) -> None:
    declare_in_billing(shared, configs=configs)
    planned = shared("plan", *BILLING)
    assert (planned.code, contains_words(planned, "Another project owns the resource", *BOTH_PLACES)) == (
        3,
        True,
    )
    assert "kdeclare state transfer Topic/a" in planned.out + planned.err
    assert shared("apply", *BILLING, "--yes").code == 3
    assert list_billing(shared) == []
    assert shared("plan", "--detailed-exitcode").code == 0, "the topic was not changed"


@pytest.mark.slow
def test_states_on_a_git_branch_are_compared(shared_branch: CommandLine) -> None:
    path = declare_in_billing(shared_branch)
    refused = shared_branch("plan", *BILLING)
    assert (refused.code, contains_words(refused, *BOTH_PLACES, "git+file://")) == (3, True)
    line = ("state", "transfer", "Topic/a", "--to-project", "billing/kdeclare.yaml", "--yes")
    assert shared_branch(*line).code == 0
    assert shared_branch("plan", *BILLING, "--detailed-exitcode").code == 0
    adopted_again = shared_branch("plan")
    assert (adopted_again.code, contains_words(adopted_again, "project 'billing' in environment")) == (
        3,
        True,
    )
    path.unlink()
    declare_in_billing(shared_branch, "b")
    orphaned = shared_branch("plan", *BILLING, "--allow-deletes")
    assert (orphaned.code, contains_words(orphaned, "prevent-destroy")) == (3, True), "it was transferred"
    assert "Another project owns" not in orphaned.out + orphaned.err


def test_resource_without_another_owner_is_created(shared: CommandLine) -> None:
    declare_in_billing(shared, "b")
    assert shared("apply", *BILLING, "--yes").code == 0
    assert list_billing(shared) == ["Topic/b"]


@pytest.mark.parametrize("way", ["option", "manifest"])
def test_allowed_adoption_is_reported(shared: CommandLine, way: str) -> None:
    lifecycle = {"adopt": True} if way == "manifest" else {}
    declare_in_billing(shared, lifecycle=lifecycle)
    ran = shared("apply", *BILLING, "--yes", *(["--adopt"] if way == "option" else []))
    assert (ran.code, contains_words(ran, "warning: Another project owns the resource", *BOTH_PLACES)) == (
        0,
        True,
    )
    assert list_billing(shared) == ["Topic/a"]


@pytest.mark.parametrize("way", ["--allow-deletes", "--delete=Topic/a", "absent"])
def test_resource_of_another_project_is_not_deleted(shared: CommandLine, way: str) -> None:
    path = declare_in_billing(shared)
    assert shared("apply", *BILLING, "--yes", "--adopt").code == 0
    declare_in_billing(shared, "b")
    if way == "absent":
        shared.write("billing/manifests/a.yaml", "Topic", "a", lifecycle={"state": "absent"})
    else:
        path.unlink()
    options = [] if way == "absent" else [way]
    refused = shared("apply", *BILLING, "--yes", *options)
    assert (refused.code, contains_words(refused, "Another project owns the resource", "'shop'")) == (3, True)
    assert shared.topics == {"a", "b"}, "the other change was made"
    assert list_billing(shared) == ["Topic/a", "Topic/b"]
    if way != "absent":
        assert "Pass --forget Topic/a" in refused.out + refused.err
        assert shared("apply", *BILLING, "--yes", "--forget", "Topic/a").code == 0
        assert (list_billing(shared), list_owned(shared)) == (["Topic/b"], {"Topic/a"})


def test_transfer_ends_the_conflict(shared: CommandLine) -> None:
    declare_in_billing(shared)
    (shared.folder / "manifests" / "a.yaml").unlink()
    line = ("state", "transfer", "Topic/a", "--to-project", "billing/kdeclare.yaml", "--yes")
    assert shared(*line).code == 0
    assert shared("plan", *BILLING, "--detailed-exitcode").code == 0
    assert shared("apply", "--yes", "--allow-deletes", "--allow-empty").code == 0
    assert shared.topics == {"a"}


def test_configs_of_one_broker_can_belong_to_two_projects(shared: CommandLine) -> None:
    shared.write("manifests/b.yaml", "BrokerConfig", "1", configs={"log.cleaner.threads": 2})
    assert shared("apply", "--yes").code == 0
    shared.write("billing/manifests/b.yaml", "BrokerConfig", "1", configs={"background.threads": 11})
    ran = shared("apply", *BILLING, "--yes")
    assert (ran.code, contains_words(ran, "warning: Another project owns the resource")) == (0, True), ran
    (shared.folder / "billing" / "manifests" / "b.yaml").unlink()
    assert shared("apply", *BILLING, "--yes", "--allow-deletes", "--allow-empty").code == 0
    assert shared("plan", "--detailed-exitcode").code == 0


def test_acl_under_another_name_is_recognized(shared: CommandLine) -> None:
    bindings = {
        "principals": ["User:checkout"],
        "consume": {"topics": ["a"], "groups": ["a"]},
    }
    shared.write("manifests/acl.yaml", "Acl", "checkout", **bindings)
    applied = shared("apply", "--yes")
    assert applied.code == 0, applied
    shared.write("billing/manifests/acl.yaml", "Acl", "reader", **bindings)
    refused = shared("plan", *BILLING)
    assert (refused.code, contains_words(refused, "environment 'lab' as Acl/checkout")) == (3, True), refused


def test_states_of_other_clusters_do_not_matter(shared: CommandLine) -> None:
    state = shared.folder / "state" / "shop" / "lab" / "state.json"
    document = json.loads(state.read_text()) | {"cluster_id": "another"}
    del document["checksum"]
    state.write_text(json.dumps(document))
    declare_in_billing(shared)
    assert shared("apply", *BILLING, "--yes").code == 0
    assert list_billing(shared) == ["Topic/a"]


def test_other_states_are_not_read_without_need(shared: CommandLine) -> None:
    (shared.folder / "state" / "other" / "lab").mkdir(parents=True)
    (shared.folder / "state" / "other" / "lab" / "state.json").write_text("{")
    unneeded = shared("plan")
    assert (unneeded.code, "not read" in unneeded.err) == (0, False)
    shared.topic("b")
    reported = shared("plan")
    assert (reported.code, contains_words(reported, "States of other projects not read", "'other'")) == (
        0,
        True,
    )
