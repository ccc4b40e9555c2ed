"""Two teams with projects of their own share a real cluster: their rollouts, audits, snapshots and messages.

The tests continue each other in the order of this file. All topics are deleted at the end.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.http_servers import serve
from tests.kafka.fleet.fleet_folder import (
    FleetFolder,
    RunningClusters,
    build_topic_spec,
    dump_manifest,
    list_comparable,
    parse_valid_output,
    write_document,
)
from tests.thoroughness import pick
from tests.unit.fleet.test_incremental_audits import list_unchanged
from tests.unit.state.test_lock_file import hold_lock_in_process
from tests.webhooks import Hook, make_handler

pytestmark = [pytest.mark.kafka, pytest.mark.sampled]

RETENTION = "configs.retention.ms"
DAY, WEEK, BY_HAND = 86_400_000, 604_800_000, 3_600_000
ENTRIES = ("eu-1", "eu-1-checkout", "eu-2", "lab")
"""The entries of the fleet file. The first two have the same cluster."""
CHECK = """\
#!/bin/sh
echo "$KDECLARE_WAVE" >> waves
if [ "$KDECLARE_WAVE" = "$(cat pause-before)" ]; then
  PYTHON -m kdeclare fleet pause --out plans --reason "Consumers lag."
fi
"""


@dataclass
class Teams(FleetFolder):
    """The projects of the teams, and their webhook."""

    hook: Hook = field(default_factory=Hook)

    def declare(self, project: str, manifests: Mapping[str, dict[str, Any]]) -> None:
        """Write all manifests of a project."""
        documents = (dump_manifest(name, spec, project) for name, spec in manifests.items())
        (self.folder / project / "manifests" / "all.yaml").write_text("---\n".join(documents))

    def audit(self, *arguments: str, out: str = "audits", code: int = 0) -> dict[str, Any]:
        """Audit the fleet."""
        return self.fleet("audit", out, *arguments, code=code, HOOK_URL=self.hook.url)

    def refuse(self, *arguments: str) -> str:
        """Run `fleet apply`, which must refuse to start. Return the code of its error."""
        line = ("fleet", "apply", "fleet.yaml", "--out", "plans", "--yes", "--format", "json", *arguments)
        (diagnostic,) = json.loads(self.kdeclare(*line, code=3))["diagnostics"]
        return str(diagnostic["code"])

    def find(self, summary: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Return the findings of an audit by entry, resource and kind of finding."""
        rows = self.read_findings(summary["audit_id"])
        found = {(row["cluster"], f"{row['kind']}/{row['name']}", row["finding"]): row for row in rows}
        assert len(found) == len(rows)
        return found


@pytest.fixture(scope="module")
def teams(clusters: RunningClusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    teams = Teams(clusters, tmp_path_factory.mktemp("teams"))
    for project, names in (("payments", ("eu-1", "eu-2")), ("checkout", ("eu-1",))):
        environments = {name: {"bootstrapServers": teams.bootstrap(name)} for name in names}
        spec = {"manifests": ["manifests"], "environments": environments}
        write_document(teams.folder / project / "kdeclare.yaml", "Project", spec, project)
        (teams.folder / project / "manifests").mkdir()
    (teams.folder / "lab" / "manifests").mkdir(parents=True)
    write_fleet(teams)
    declare_all(teams)
    check = teams.folder / "check.sh"
    check.write_text(CHECK.replace("PYTHON", sys.executable))
    check.chmod(0o755)
    (teams.folder / "pause-before").write_text("never")
    with serve(make_handler(teams.hook), ("POST",)) as url:
        teams.hook.url = f"{url}/services/a-secret"
        yield teams
    remaining = {"eu-1": ("events", "carts"), "eu-2": ("events",), "lab": ("experiment",)}
    for cluster, topics in remaining.items():
        with teams.open_other_client(cluster) as client:
            client.delete(*topics)


def write_fleet(teams: Teams, **more: Any) -> None:
    """Write the fleet file: two projects in one cluster, one in another, and a cluster without a project."""
    entries = [
        {"name": "eu-1", "project": "payments/kdeclare.yaml", "env": "eu-1"},
        {"name": "eu-1-checkout", "project": "checkout/kdeclare.yaml", "env": "eu-1"},
        {"name": "eu-2", "project": "payments/kdeclare.yaml", "env": "eu-2"},
        {"name": "lab", "bootstrapServers": teams.bootstrap("lab"), "manifests": ["lab/manifests"]},
    ]
    health = {"checks": {"offline-partitions": 0}, "command": ["./check.sh"], "timeout": "30s"}
    rollout = {"health": health, "batchSize": 1}
    notification = {"name": "platform", "url": "${env.HOOK_URL}", "format": "json"}
    spec = {"clusters": entries, "rollout": rollout, "notifications": [notification]} | more
    write_document(teams.folder / "fleet.yaml", "Fleet", spec)


def declare_all(teams: Teams) -> None:
    """Both teams declare the topic events, differently, and the same quota."""
    quota = {"entity": {"user": "app"}, "limits": {"producer_byte_rate": 1_000_000}}
    payments = {name: build_topic_spec(retention_ms=WEEK) for name in ("orders", "refunds", "events")}
    teams.declare("payments", payments | {"ClientQuota/app": quota})
    teams.declare("checkout", build_checkout_topics() | {"ClientQuota/app": quota})
    teams.declare("lab", {"experiment": build_topic_spec(retention_ms=DAY)})


def build_checkout_topics() -> dict[str, dict[str, Any]]:
    return {"carts": build_topic_spec(retention_ms=WEEK), "events": build_topic_spec(retention_ms=DAY)}


def test_rollout_is_paused_by_its_health_command_and_continues(teams: Teams) -> None:
    """The command that checks the clusters before each wave runs `fleet pause`."""
    with teams.open_other_client("lab") as client:
        client.create("experiment", 1, retention_ms=str(BY_HAND))
    teams.fleet("plan", "plans", "--adopt", "--cluster", "eu-1", "--cluster", "eu-2", "--cluster", "lab")
    (teams.folder / "pause-before").write_text("2")
    options = ("--yes", "--adopt")
    run = teams.fleet("apply", "plans", *options, code=5)
    assert {c["name"]: c["status"] for c in run["clusters"]} == {
        "eu-1": "done",
        "eu-2": "not-begun",
        "lab": "not-begun",
    }
    assert teams.refuse("--adopt") == "rollout-paused"
    teams.kdeclare("fleet", "resume", "--out", "plans")
    (teams.folder / "pause-before").write_text("never")
    run = teams.fleet("apply", "plans", *options)
    assert {c["status"] for c in run["clusters"]} == {"skipped", "done"}
    assert (teams.folder / "waves").read_text().split() == ["1", "2", "2", "3"]


def test_resources_of_two_projects_are_contested(teams: Teams) -> None:
    """A topic of one team is not unmanaged for the other one."""
    teams.fleet("plan", "plans", "--adopt", "--cluster", "eu-1-checkout")
    teams.fleet("apply", "plans", "--yes", "--adopt", "--skip-health-checks")
    found = teams.find(teams.audit())
    assert found.keys() == {
        ("eu-1", "Topic/events", "contested"),
        ("eu-1", "Topic/events", "changed"),
        ("eu-1", "ClientQuota/app", "contested"),
        ("eu-1-checkout", "Topic/events", "contested"),
        ("eu-1-checkout", "ClientQuota/app", "contested"),
    }
    events = found["eu-1", "Topic/events", "contested"]
    assert events["severity"] == "high"
    assert "eu-1-checkout (declares it differently, checkout/manifests/all.yaml:" in events["message"]
    quota = found["eu-1-checkout", "ClientQuota/app", "contested"]
    assert quota["severity"] == "medium"
    assert "eu-1 (declares it, too, payments/manifests/all.yaml:" in quota["message"]


def test_contradiction_within_a_project_is_found(teams: Teams) -> None:
    moved = {"partitions": [{"topic": "experiment", "partition": 0, "replicas": [1, 2]}]}
    experiment = {"experiment": build_topic_spec(retention_ms=DAY)}
    teams.declare("lab", experiment | {"Reassignment/grow": moved})
    found = teams.find(teams.audit("--fail-on", "severity>=high and contested", code=2))
    conflict = found["lab", "Topic/experiment", "contested"]
    assert conflict["severity"] == "high"
    assert conflict["message"].startswith("Topic/experiment conflicts with Reassignment/grow")
    teams.declare("lab", experiment)


def test_unchanged_clusters_are_not_compared_again(teams: Teams) -> None:
    """The findings that an audit carries over equal those of a full audit, thoroughly on Spark."""
    teams.audit()
    teams.fleet("snapshot", "snapshots")
    assert list_unchanged(teams.audit("--snapshot", "snapshots")) == list(ENTRIES)
    with teams.open_other_client("eu-2") as client:
        client.delete("orders")
        client.create("orders", 1, retention_ms=str(WEEK))
        client.set("refunds", "retention.ms", str(BY_HAND))
    teams.fleet("snapshot", "snapshots")
    incremental = teams.audit("--snapshot", "snapshots")
    assert list_unchanged(incremental) == ["eu-1", "eu-1-checkout", "lab"]
    full = teams.audit("--snapshot", "snapshots", "--full", "--engine", pick("local", "spark"), out="full")
    assert list_unchanged(full) == []
    assert incremental["found"] == full["found"]
    carried_over = teams.read_findings(incremental["audit_id"])
    assert list_comparable(carried_over) == list_comparable(teams.read_findings(full["audit_id"], "full"))


def test_recreated_topic_is_found(teams: Teams) -> None:
    """Its configs are those of its manifest, so that a plan would not change it."""
    found = teams.find(teams.read_summary())
    recreated = found["eu-2", "Topic/orders", "changed"]
    assert (recreated["severity"], recreated["path"], recreated["op"]) == ("high", "topicId", None)
    assert "The records of the deleted topic are gone." in recreated["message"]
    assert found["eu-2", "Topic/refunds", "changed"]["path"] == RETENTION


def test_snapshots_differ_by_what_happened_between_them(teams: Teams) -> None:
    printed = teams.kdeclare(
        "fleet", "diff", "--out", "snapshots", "--format", "json", "--detailed-exitcode", code=2
    )
    document = parse_valid_output("fleet-diff", printed)
    changes = {(one["cluster"], one["name"]): one for one in document["changes"]}
    assert changes.keys() == {("eu-2", "orders"), ("eu-2", "refunds")}
    assert {field["path"] for field in changes["eu-2", "orders"]["fields"]} == {"id"}
    assert document["unknown"] == []
    (retention,) = changes["eu-2", "refunds"]["fields"]
    assert retention == {"path": RETENTION, "before": str(WEEK), "after": str(BY_HAND)}


def test_history_names_the_run_that_changed_a_topic(teams: Teams) -> None:
    """kdeclare made the change that repairs the topic, and another client made the change before."""
    teams.fleet("plan", "plans", "--cluster", "eu-2")
    teams.fleet("apply", "plans", "--yes", "--skip-health-checks")
    teams.fleet("snapshot", "snapshots")
    options = ("--out", "snapshots", "--audits", "audits", "--format", "json")
    printed = teams.kdeclare("fleet", "history", "fleet.yaml", "eu-2", "refunds", *options)
    document = parse_valid_output("fleet-history", printed)
    turns = [turn for turn in document["history"] if turn["turn"] != "appeared"]
    assert [(turn["turn"], turn["fields"][0]["after"]) for turn in turns] == [
        ("changed", str(BY_HAND)),
        ("changed", str(WEEK)),
    ]
    assert [[origin["run_id"] is None for origin in turn["origins"]] for turn in turns] == [[True], [False]]
    (finding,) = document["findings"]
    assert (finding["finding"], finding["path"], finding["status"]) == ("changed", RETENTION, "open")


def test_webhook_receives_new_findings_once(teams: Teams) -> None:
    assert teams.hook.messages == []
    teams.audit("--notify")
    (message,) = teams.hook.messages
    assert message["headline"] == "Fleet shop: 2 fixed."
    fixed = {(f["cluster"], f["name"], f["path"]) for f in message["fixed"]}
    assert fixed == {("eu-2", "orders", "topicId"), ("eu-2", "refunds", RETENTION)}
    assert message["open"] == {"high": 3, "medium": 2}
    teams.audit("--notify")
    assert len(teams.hook.messages) == 1


def test_accepted_drift_comes_back_when_it_expires(teams: Teams) -> None:
    spec = {
        "reason": "Restored from the archive.",
        "owner": "payments",
        "expires": "2999-12-31",
        "clusters": ["eu-1"],
        "resources": [{"kind": "Topic", "names": ["events"]}],
    }
    write_document(teams.folder / "accepted.yaml", "AcceptedDrift", spec, "restored")
    write_fleet(teams, acceptedDrift=["accepted.yaml"])
    summary = teams.audit()
    assert {a["name"]: a["count"] for a in summary["accepted"]} == {"restored": 2}
    assert teams.find(summary)["eu-1", "Topic/events", "changed"]["accepted"] == "restored"
    spec["expires"] = "2020-01-01"
    write_document(teams.folder / "accepted.yaml", "AcceptedDrift", spec, "restored")
    assert teams.find(teams.audit())["eu-1", "Topic/events", "changed"]["accepted"] is None


def test_deletes_of_all_projects_are_limited_together(teams: Teams) -> None:
    """Both projects delete the same quota. The plan of the second one is stale then."""
    teams.declare("payments", {"events": build_topic_spec(retention_ms=WEEK)})
    teams.declare("checkout", build_checkout_topics())
    plan = teams.fleet("plan", "plans", "--allow-deletes")
    assert [c["summary"]["delete"] for c in plan["clusters"]] == [3, 1, 3, 0]
    options = ("--yes", "--skip-health-checks", "--max-failures", "1")
    assert teams.refuse("--max-deletes", "6") == "max-deletes"
    run = teams.fleet("apply", "plans", *options, "--max-deletes", "7", code=5)
    assert {c["name"]: c["status"] for c in run["clusters"]} == {
        "eu-1": "done",
        "eu-1-checkout": "stale",
        "eu-2": "done",
        "lab": "nothing",
    }
    plan = teams.fleet("plan", "plans", "--cluster", "eu-1-checkout")
    counts = plan["clusters"][0]["summary"]
    assert (counts["delete"], counts["orphaned"], counts["update"]) == (0, 0, 1), "events, and no quota"
    teams.fleet("apply", "plans", *options)
    assert [c["topics"] for c in teams.audit()["clusters"]] == [2, 2, 1, 1]


def test_locked_cluster_continues_with_the_named_command(teams: Teams) -> None:
    """Someone else works on eu-2 during the rollout."""
    teams.declare("payments", {name: build_topic_spec(retention_ms=WEEK) for name in ("events", "returns")})
    clusters = ("--cluster", "eu-1", "--cluster", "eu-2")
    teams.fleet("plan", "plans", *clusters)
    line = ("fleet", "apply", "fleet.yaml", "--out", "plans", "--yes", "--max-failures", "1")
    with hold_lock_in_process(teams.folder / "payments" / "state" / "payments" / "eu-2"):
        printed = teams.kdeclare(*line, code=5)
    assert "eu-2  locked by another command" in printed
    command = printed.partition("next: Run the same command again to continue with eu-2: kdeclare ")[2]
    assert "eu-2  done" in teams.kdeclare(*command.split())


def test_aborted_rollout_needs_new_plans(teams: Teams) -> None:
    teams.declare("payments", {"events": build_topic_spec(retention_ms=DAY)})
    options = ("plan", "plans", "--allow-deletes", "--cluster", "eu-1", "--cluster", "eu-2")
    teams.fleet(*options)
    teams.kdeclare("fleet", "abort", "--out", "plans", "--reason", "The wrong week.")
    assert teams.refuse() == "rollout-aborted"
    teams.fleet(*options)
    run = teams.fleet("apply", "plans", "--yes")
    assert [c["status"] for c in run["clusters"] if c["status"] != "nothing"] == ["done", "done"]
