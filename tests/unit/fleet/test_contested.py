"""Resources that several entries of a fleet declare or own in the same cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from kdeclare.cli.main import main
from kdeclare.core.resources.ids import ResourceId
from kdeclare.fleet.contested import (
    CONTRADICTION_PATH,
    Relation,
    Rival,
    build_contested_finding,
    find_sharing,
)
from kdeclare.fleet.findings import FindingSeverity
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import LocalStorage
from tests.spark.quota_fleet import make_quota_fleet
from tests.spark.real_fleet import SECRETS, SHARED, RealFleet, make_real_fleet

ORDERS = ResourceId("Topic", "orders")


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealFleet:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return make_real_fleet(tmp_path / "fleet", monkeypatch, is_shared=True)


def audit(fleet: RealFleet, *options: str) -> dict[str, Any]:
    line = ["fleet", "audit", str(fleet.file), "--out", str(fleet.folder / "audits"), "--engine", "local"]
    assert main([*line, "--snapshot", str(fleet.snapshots), *options]) in (0, 2)
    summary: dict[str, Any] = json.loads((fleet.folder / "audits" / "summary.json").read_text())
    return summary


def read_found(fleet: RealFleet, summary: dict[str, Any], finding: str) -> dict[tuple[str, str], Any]:
    path = f"findings/audit_id={summary['audit_id']}"
    rows = read_rows(LocalStorage(fleet.folder / "audits"), path, FINDINGS)
    return {
        (row["cluster"], row["name"]): row
        for row in rows
        if row["finding"] == finding and row["path"] != CONTRADICTION_PATH
    }


def test_sharing_ignores_clusters_without_id() -> None:
    ids = {"a": "1", "b": "1", "c": "2", "d": None, "e": None, "f": "1"}
    assert find_sharing(ids) == {
        "a": frozenset("bf"),
        "b": frozenset("af"),
        "f": frozenset("ab"),
    }


def test_contested_topic_is_reported_for_each_project(fleet: RealFleet) -> None:
    found = read_found(fleet, audit(fleet), "contested")
    assert found.keys() == {(name, topic) for name in ("eu-1", SHARED) for topic in ("t.3", "t.4")}
    equal, different = found["eu-1", "t.3"], found[SHARED, "t.4"]
    assert equal["message"] == (
        "Other projects of this cluster also manage this resource: "
        "eu-1-billing (declares it, too, billing/all.yaml:4:18)."
    )
    assert different["message"] == (
        "Other projects of this cluster also manage this resource: eu-1 (declares it differently, "
        "shop/manifests/all.yaml:24:18). Each project's apply undoes the other's changes."
    )
    assert (equal["severity"], different["severity"]) == ("medium", "high")
    assert different["source"] == "billing/all.yaml:9:18"
    assert different["labels"] == {"team": "checkout"}


def test_topic_of_another_project_is_not_unmanaged(fleet: RealFleet) -> None:
    found = read_found(fleet, audit(fleet), "unmanaged")
    assert ("eu-2", "Loud") in found
    assert ("eu-1", "Loud") not in found


def test_owned_topic_is_contested_after_its_manifest_moved(fleet: RealFleet) -> None:
    """The first project still owns the topic, and would delete it with --allow-deletes."""
    manifests = fleet.folder / "shop" / "manifests" / "all.yaml"
    documents = manifests.read_text().split("---\n")
    manifests.write_text("---\n".join(text for text in documents if "name: t.3," not in text))
    row = read_found(fleet, audit(fleet), "contested")[SHARED, "t.3"]
    assert "eu-1 (owns it, but no longer declares it)" in row["message"]
    assert row["severity"] == "medium"


def test_quotas_and_acls_of_projects_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = make_quota_fleet(tmp_path / "fleet", monkeypatch)
    summary = audit(fleet)
    assert "unmanaged" not in summary["found"]
    found = read_found(fleet, summary, "contested")
    assert found.keys() == {
        ("billing", "both"),
        ("checkout", "both"),
        ("billing", "readers-of-billing"),
        ("checkout", "readers-of-checkout"),
    }
    assert found["billing", "both"]["severity"] == "high"
    assert "checkout (declares it differently" in found["billing", "both"]["message"]
    assert "checkout as Acl/readers-of-checkout" in found["billing", "readers-of-billing"]["message"]


def test_contradiction_within_a_project_is_a_finding(fleet: RealFleet) -> None:
    """A plan reports it as an error."""
    summary = audit(fleet)
    rows = read_rows(
        LocalStorage(fleet.folder / "audits"), f"findings/audit_id={summary['audit_id']}", FINDINGS
    )
    (row,) = (row for row in rows if row["path"] == CONTRADICTION_PATH)
    assert (row["cluster"], row["finding"], row["severity"]) == (SHARED, "contested", "high")
    assert row["message"].startswith("Topic/t.4 conflicts with Reassignment/shrink")
    again = audit(fleet, "--cluster", SHARED)
    assert again["found"]["contested"] == 1, "contradictions concern only one project"


def test_audit_of_some_clusters_keeps_contested_findings(fleet: RealFleet) -> None:
    """Without the other project, the audit cannot know whether the topic is still contested."""
    audit(fleet)
    again = audit(fleet, "--cluster", "eu-1")
    assert again["unseen"]["contested"] == 5, "with the contradiction in the other project"
    assert "contested" not in again["found"]
    assert audit(fleet)["since"]["new"] == 0


def test_contested_finding_can_fail_the_audit(fleet: RealFleet) -> None:
    line = ["fleet", "audit", str(fleet.file), "--out", str(fleet.folder / "audits"), "--engine", "local"]
    line += ["--snapshot", str(fleet.snapshots)]
    assert main([*line, "--fail-on", "contested and severity>=high"]) == 2
    (fleet.folder / "billing" / "all.yaml").unlink()
    assert main([*line, "--fail-on", "contested"]) == 0


def test_finding_names_few_projects_and_the_worst_relation() -> None:
    rivals = [
        Rival(cluster, "Topic", name, None, str(relation))
        for cluster, name, relation in (
            ("d", "orders", Relation.OWNED),
            ("b", "orders", Relation.DECLARED),
            ("a", "old-orders", Relation.DECLARED),
            ("c", "orders", Relation.DECLARED),
            ("b", "orders", Relation.DIFFERENT),
        )
    ]
    finding = build_contested_finding(ORDERS, "o.yaml:1:1", rivals)
    assert finding.message == (
        "Other projects of this cluster also manage this resource: a as Topic/old-orders (declares it, too), "
        "b (declares it differently), c (declares it, too), and 1 more. "
        "Each project's apply undoes the other's changes."
    )
    assert finding.severity is FindingSeverity.HIGH
