"""A fleet of two projects for one cluster, which declare client quotas and ACLs."""

import json
from pathlib import Path

import pytest

from kdeclare.cli.main import main
from kdeclare.core.jsontypes import JsonObject
from kdeclare.fleet.tables.row_builder import read_live_rows
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.spark.real_fleet import TAKEN_AT, RealFleet, write_snapshot

TEAMS = ("billing", "checkout")


def make_quota_fleet(folder: Path, monkeypatch: pytest.MonkeyPatch) -> RealFleet:
    """Apply two projects, whose quota ``both`` differs, and take a snapshot.

    Both projects own an ACL of one group under different names, and each has a quota and an ACL of its own.
    """
    cluster = MemoryCluster({1: "rack-a"})
    fleet = RealFleet(folder, dict.fromkeys(TEAMS, cluster))
    entries = [{"name": team, "project": f"{team}/kdeclare.yaml", "env": "lab"} for team in TEAMS]
    fleet.file.parent.mkdir(parents=True, exist_ok=True)
    fleet.file.write_text(_dump("Fleet", "shop", {"clusters": entries}))
    with monkeypatch.context() as patch:
        patch.setattr(connection, "connect_cluster", lambda *_: cluster)
        for number, team in enumerate(TEAMS):
            project = folder / team / "kdeclare.yaml"
            (project.parent / "manifests").mkdir(parents=True)
            environments: JsonObject = {"lab": {"bootstrapServers": "lab:9092"}}
            project.write_text(_dump("Project", team, {"environments": environments}))
            documents = (
                _dump_quota("both", 1000 * (number + 1)),
                _dump_quota(team, 5000),
                _dump_acl(f"readers-of-{team}", "shared"),
                _dump_acl(team, team),
            )
            (project.parent / "manifests" / "all.yaml").write_text("\n---\n".join(documents))
            assert main(["apply", "--yes", "--adopt", "--project", str(project)]) == 0
    rows = {team: list(read_live_rows(connections_to(cluster), team, {}, TAKEN_AT)) for team in TEAMS}
    write_snapshot(fleet.snapshots, rows)
    return fleet


def _dump(kind: str, name: str, spec: JsonObject) -> str:
    return json.dumps({"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})


def _dump_quota(name: str, limit: int) -> str:
    spec: JsonObject = {"entity": {"user": name}, "limits": {"producer_byte_rate": limit}}
    return _dump("ClientQuota", name, spec)


def _dump_acl(name: str, topic: str) -> str:
    return _dump("Acl", name, {"principal": "User:x", "consume": {"topics": [topic], "groups": [topic]}})
