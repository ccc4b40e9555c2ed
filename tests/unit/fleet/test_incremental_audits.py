"""Audits that carry over the findings of unchanged clusters find the same as full audits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdeclare.core.policies.policy_request import RULE_TOO_SLOW
from kdeclare.core.provider.installed_providers import list_providers
from kdeclare.fleet.local.tables import read_rows
from kdeclare.fleet.local.unchanged import build_fingerprints
from kdeclare.fleet.tables.rows import FINDINGS
from kdeclare.fleet.tables.storage import LocalStorage
from tests.unit.fleet.changing_fleet import SHARED, ChangingFleet, make_changing_fleet

ROUNDS = 8


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangingFleet:
    return make_changing_fleet(tmp_path / "fleet", monkeypatch, 1)


def list_unchanged(summary: dict[str, Any]) -> list[str]:
    return [cluster["name"] for cluster in summary["clusters"] if cluster["unchanged"]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_incremental_audits_of_changing_fleet_equal_full_audits(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = make_changing_fleet(tmp_path / "fleet", monkeypatch, seed)
    carried = 0
    for _ in range(ROUNDS):
        fleet.take_snapshot()
        incremental, full = fleet.audit("incremental", "local"), fleet.audit("full", "local", "--full")
        fleet.expect_same(incremental, full)
        assert not list_unchanged(full)
        carried += len(list_unchanged(incremental))
        for _ in range(fleet.chance.choice((0, 1, 1, 2))):
            fleet.change_something()
    assert carried > 4


def test_unchanged_clusters_are_not_compared(fleet: ChangingFleet) -> None:
    fleet.take_snapshot()
    assert list_unchanged(fleet.audit("incremental", "local")) == []
    fleet.take_snapshot()
    assert list_unchanged(fleet.audit("incremental", "local")) == ["plain", "ready", "ruled", "shared"]


def prepare(fleet: ChangingFleet, *options: str) -> None:
    """Audit the fleet in both folders, and take another snapshot."""
    fleet.take_snapshot()
    for out in ("incremental", "full"):
        fleet.audit(out, "local", *options)
    fleet.take_snapshot()


def audit_again(fleet: ChangingFleet, *options: str) -> list[str]:
    """Compare an incremental audit with a full one, and return the clusters that were not compared again."""
    incremental = fleet.audit("incremental", "local", *options)
    fleet.expect_same(incremental, fleet.audit("full", "local", "--full", *options))
    return list_unchanged(incremental)


@pytest.mark.slow
def test_change_of_policy_compares_clusters_again(fleet: ChangingFleet) -> None:
    prepare(fleet)
    fleet.limits["ruled"] = 2
    fleet.write_fleet()
    assert audit_again(fleet) == ["plain", "ready"]


def test_change_in_one_of_two_entries_of_a_cluster_compares_both_again(fleet: ChangingFleet) -> None:
    prepare(fleet)
    fleet.remove_manifest(SHARED, "t0")
    assert audit_again(fleet) == ["plain", "ready"]


@pytest.mark.slow
def test_policies_with_custom_code_are_always_evaluated(fleet: ChangingFleet) -> None:
    """Custom code can read files or the clock, so that its verdicts can change although no cluster has."""
    prepare(fleet)
    fleet.word.write_text("t3")
    assert audit_again(fleet) == ["plain", "ready", "ruled", "shared"]
    path = f"findings/audit_id={fleet.read_summary('incremental')['audit_id']}"
    rows = read_rows(LocalStorage(fleet.folder / "incremental"), path, FINDINGS)
    assert {row["cluster"] for row in rows if "the file names this topic" in row["message"]} == {"custom"}


@pytest.mark.slow
def test_different_options_compare_all_clusters_again(fleet: ChangingFleet) -> None:
    prepare(fleet)
    assert audit_again(fleet, "--no-unmanaged-configs") == []
    assert audit_again(fleet, "--no-unmanaged-configs") == ["plain", "ready", "ruled", "shared"]


@pytest.mark.slow
def test_other_versions_compare_all_clusters_again(
    fleet: ChangingFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(fleet)
    with monkeypatch.context() as patch:
        upgraded = [replace(item, version="9.9") for item in list_providers()]
        patch.setattr("kdeclare.fleet.tables.comparison_options.list_providers", lambda: upgraded)
        assert audit_again(fleet) == []
    with monkeypatch.context() as patch:
        patch.setattr("kdeclare.fleet.tables.fingerprints.VERSION", "9.9")
        assert audit_again(fleet) == []
    with monkeypatch.context() as patch:
        patch.setattr("kdeclare.fleet.tables.comparison_options.version", lambda _: "9.9")
        assert audit_again(fleet) == []


@pytest.mark.slow
def test_other_code_of_same_version_compares_all_clusters_again(
    fleet: ChangingFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(fleet)
    with monkeypatch.context() as patch:
        patch.setattr("kdeclare.fleet.tables.comparison_options.hash_package", lambda name: name)
        assert audit_again(fleet) == []


@pytest.mark.slow
def test_cluster_is_compared_again_if_its_stored_findings_were_altered(fleet: ChangingFleet) -> None:
    """The number of rows is still the same, so that the audit accepts the table."""
    fleet.create_topic("plain")
    fleet.create_topic("ready")
    prepare(fleet)
    (file,) = (fleet.folder / "incremental" / "findings").rglob("*.parquet")
    table = pq.read_table(file)
    altered = [
        row | {"message": "Nothing to see." if row["cluster"] == "plain" else row["message"]}
        for row in table.to_pylist()
    ]
    assert [row["cluster"] for row in altered if row["message"] == "Nothing to see."]
    pq.write_table(pa.Table.from_pylist(altered, table.schema), file)
    assert audit_again(fleet) == ["ready", "ruled", "shared"]


@pytest.mark.slow
def test_record_without_fingerprints_compares_all_clusters_again(fleet: ChangingFleet) -> None:
    """Earlier versions recorded none."""
    prepare(fleet)
    (file,) = (fleet.folder / "incremental" / "audits").glob("*.json")
    record = json.loads(file.read_text())
    for cluster in record["clusters"]:
        del cluster["fingerprints"], cluster["unchanged"]
    file.write_text(json.dumps(record))
    assert audit_again(fleet) == []


@pytest.mark.slow
def test_unreadable_cluster_is_compared_as_soon_as_it_can_be_read(fleet: ChangingFleet) -> None:
    fleet.down.add("plain")
    prepare(fleet)
    assert audit_again(fleet) == ["ready", "ruled", "shared"]
    fleet.down.clear()
    fleet.take_snapshot()
    assert audit_again(fleet) == ["ready", "ruled", "shared"]


def test_findings_of_a_rule_that_was_too_slow_are_not_carried_over() -> None:
    finding: dict[str, Any] = dict.fromkeys(FINDINGS.names) | {"cluster": "eu", "finding": "policy"}
    fingerprints = {"eu": ("declared", "live")}
    assert build_fingerprints(fingerprints, [finding | {"message": "too many partitions"}])
    slow = f"The rule cannot be evaluated for this request: {RULE_TOO_SLOW}."
    assert not build_fingerprints(fingerprints, [finding | {"message": slow}])
