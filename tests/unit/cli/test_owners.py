"""The owner and the description of a resource, from the manifest to the reports."""

import json

import pytest

from tests.unit.cli.command_line import CommandLine

_TOPIC = """\
apiVersion: kdeclare/v1
kind: Topic
metadata: {{name: {name}, {metadata}}}
spec: {{partitions: 1}}
"""


def declare(kdeclare: CommandLine, name: str, metadata: str) -> None:
    file = kdeclare.folder / "manifests" / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(_TOPIC.format(name=name, metadata=metadata))


def plan_changes(kdeclare: CommandLine, *options: str) -> dict[str, dict[str, object]]:
    ran = kdeclare("plan", "--format", "json", *options)
    assert ran.code in (0, 2), ran.out + ran.err
    return {change["id"]: change for change in json.loads(ran.out)["changes"]}


def test_owner_is_the_label_team(kdeclare: CommandLine) -> None:
    declare(kdeclare, "orders", "owner: checkout")
    declare(kdeclare, "refunds", "labels: {team: billing}")
    declare(kdeclare, "stray", "labels: {tier: gold}")
    changes = plan_changes(kdeclare)
    assert changes["Topic/orders"]["owner"] == "checkout"
    assert changes["Topic/refunds"]["owner"] == "billing"
    assert "owner" not in changes["Topic/stray"]
    assert set(plan_changes(kdeclare, "--selector", "team=checkout")) == {"Topic/orders"}


def test_contradicting_owner_and_team_are_an_error(kdeclare: CommandLine) -> None:
    declare(kdeclare, "orders", "owner: checkout, labels: {team: billing}")
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "'owner' is checkout, but the label 'team' is billing" in ran.out
    assert "manifests/orders.yaml:3" in ran.out
    declare(kdeclare, "orders", "owner: checkout, labels: {team: checkout}")
    assert kdeclare("validate").code == 0


def test_owner_selects_defaults(kdeclare: CommandLine) -> None:
    declare(kdeclare, "orders", "owner: checkout")
    (kdeclare.folder / "manifests" / "defaults.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Defaults\nmetadata: {name: checkout}\nspec:\n  kind: Topic\n"
        "  selector: {labels: {team: checkout}}\n  defaults: {configs: {retention.ms: 1000}}\n"
    )
    fields = plan_changes(kdeclare)["Topic/orders"]["fields"]
    assert "configs.retention.ms" in json.dumps(fields)


def test_orphan_and_deletion_show_owner_at_last_apply(kdeclare: CommandLine) -> None:
    declare(kdeclare, "orders", "owner: checkout, description: Orders of the shop.")
    kdeclare.topic("kept")
    assert kdeclare("apply", "--yes").code == 0
    (kdeclare.folder / "manifests" / "orders.yaml").unlink()
    assert "Topic/orders  owner: checkout" in kdeclare("plan").out
    assert "(owner <code>checkout</code>)" in kdeclare("plan", "--format", "markdown").out
    ran = kdeclare("plan", "--delete", "Topic/orders")
    assert "- Topic/orders  no longer declared · destructive · owner: checkout" in ran.out
    ran = kdeclare("plan", "--delete", "Topic/orders", "--format", "markdown")
    assert "delete of <code>Topic/orders</code>, owner <code>checkout</code>" in ran.out
    assert '"owner: checkout"' in kdeclare("plan", "--delete", "Topic/orders", "--format", "html").out


def test_removed_owner_is_not_taken_from_state(kdeclare: CommandLine) -> None:
    declare(kdeclare, "orders", "owner: checkout")
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.topic("orders", configs={"retention.ms": "1000"})
    assert "owner" not in plan_changes(kdeclare)["Topic/orders"]


def test_saved_plan_keeps_owner_and_description(kdeclare: CommandLine) -> None:
    declare(kdeclare, "orders", "owner: checkout, description: Orders of the shop.")
    assert kdeclare("plan", "--out", "saved.plan").code == 0
    page = kdeclare("show", "saved.plan", "--format", "html").out
    assert '"checkout"' in page
    assert '"Orders of the shop."' in page
    document = json.loads(kdeclare("show", "saved.plan", "--format", "json").out)
    assert document["changes"][0]["description"] == "Orders of the shop."
    assert kdeclare("apply", "saved.plan", "--yes").code == 0
    (summary,) = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    run = json.loads(kdeclare("history", summary["run_id"], "--format", "json").out)
    assert {step["owner"] for step in run["steps"]} == {"checkout"}


def test_show_manifest_shows_owner_and_its_source(kdeclare: CommandLine) -> None:
    declare(kdeclare, "orders", "owner: checkout, description: Orders of the shop.")
    out = kdeclare("show-manifest", "Topic/orders").out
    assert "owner: checkout" in out
    assert "description: Orders of the shop." in out.replace('"', "")


@pytest.mark.parametrize(("owner", "code"), [("owner: checkout", 0), ("labels: {tier: gold}", 3)])
def test_policies_see_owner(kdeclare: CommandLine, owner: str, code: int) -> None:
    declare(kdeclare, "orders", owner)
    (kdeclare.folder / "manifests" / "owned.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Policy\nmetadata: {name: owned}\n"
        "spec: {rule: resource.owner != '', message: Every topic needs an owner.}\n"
    )
    ran = kdeclare("plan")
    assert ran.code == code, ran.out + ran.err
