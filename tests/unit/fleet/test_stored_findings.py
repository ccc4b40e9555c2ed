"""``fleet report``: the findings of stored audits, and what has changed between two of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from kdeclare.cli.main import main
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from tests.spark.real_fleet import SECRETS, RealFleet, accept_drift, make_real_fleet


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealFleet:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return make_real_fleet(tmp_path / "fleet", monkeypatch)


@pytest.fixture
def audited(fleet: RealFleet, capsys: pytest.CaptureFixture[str]) -> RealFleet:
    """Two audits: between them, the manifest of t.3 was deleted and the one of t.1 now has the live value."""
    audit(fleet)
    manifests = fleet.folder / "shop" / "manifests" / "all.yaml"
    documents = manifests.read_text().split("---\n")
    documents = [text for text in documents if "name: t.3," not in text]
    documents = [text.replace("1000", "5") if "name: t.1," in text else text for text in documents]
    manifests.write_text("---\n".join(documents))
    audit(fleet)
    capsys.readouterr()
    return fleet


def audit(fleet: RealFleet, *options: str) -> None:
    line = ["fleet", "audit", str(fleet.file), "--out", str(fleet.folder / "audits"), "--engine", "local"]
    assert main([*line, "--snapshot", str(fleet.snapshots), *options]) == 0


def report(fleet: RealFleet, *options: str) -> int:
    return main(["fleet", "report", "--out", str(fleet.folder / "audits"), *options])


def list_audit_ids(fleet: RealFleet) -> list[str]:
    return sorted(file.stem for file in (fleet.folder / "audits" / "audits").iterdir())


def identify(findings: Sequence[dict[str, Any]]) -> set[tuple[str, str, str | None]]:
    return {(f"{one['cluster']}:{one['name']}", one["finding"], one["path"]) for one in findings}


def test_report_lists_findings_of_latest_audit(
    audited: RealFleet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(audited, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, build_fleet_schemas()["fleet-report"])
    summary = json.loads((audited.folder / "audits" / "summary.json").read_text())
    assert document["audit_id"] == summary["audit_id"]
    assert len(document["findings"]) == sum(summary["found"].values())
    assert ("eu-1:t.3", "orphaned", None) in identify(document["findings"])
    assert document["since"] is None
    assert document["fixed"] == []


def test_report_compares_audits(audited: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = list_audit_ids(audited)
    assert report(audited, "--since", first, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, build_fleet_schemas()["fleet-report"])
    assert (document["audit_id"], document["since"]["audit_id"]) == (second, first)
    new = [one for one in document["findings"] if one["status"] == "new"]
    assert identify(new) == {
        ("eu-1:t.3", "orphaned", None),
        ("eu-2:t.3", "orphaned", None),
        ("eu-2:t.1", "pending", "configs.retention.ms"),
    }
    assert ("eu-1:t.1", "changed", "configs.retention.ms") in identify(document["fixed"])
    assert report(audited, "--since", first) == 0
    shown = capsys.readouterr().out
    assert f"Since audit {first}" in shown
    assert "2 × Topic" in shown.partition("New:")[2].partition("Fixed:")[0]
    assert "retention.ms" in shown.partition("Fixed:")[2]


def test_report_selects_findings(audited: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--where", "severity>=high, orphaned", "--cluster", "eu-1", "--team", "checkout"]
    assert report(audited, *options, "--format", "jsonl") == 0
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert findings
    assert {one["cluster"] for one in findings} == {"eu-1"}
    assert all(one["severity"] == "high" or one["finding"] == "orphaned" for one in findings)
    assert all(one["labels"]["team"] == "checkout" for one in findings)
    assert {one["audit_id"] for one in findings} == {list_audit_ids(audited)[1]}


def test_accepted_findings_are_neither_shown_nor_fixed(
    fleet: RealFleet, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(fleet)
    accept_drift(fleet)
    audit(fleet)
    first = list_audit_ids(fleet)[0]
    capsys.readouterr()
    assert report(fleet, "--since", first, "--cluster", "eu-1", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["fixed"] == []
    assert "Topic" not in {one["kind"] for one in document["findings"]}


def test_report_shows_no_secrets(audited: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    for format_ in ("text", "json", "jsonl"):
        assert report(audited, "--format", format_) == 0
        shown = capsys.readouterr().out
        assert "hmac$" not in shown
        assert "pbkdf2$" not in shown
        assert not any(secret in shown for secret in SECRETS.values())


def test_report_refuses_incomplete_table(audited: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    _, second = list_audit_ids(audited)
    for file in (audited.folder / "audits" / "findings" / f"audit_id={second}").glob("*.parquet"):
        file.unlink()
    assert report(audited) == 1
    assert "rows were written" in " ".join(capsys.readouterr().err.split())


def test_missing_audits_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", "--out", str(tmp_path)]) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "There is no audit in " in shown
    assert "Use --out to pass the folder that kdeclare fleet audit wrote." in shown


def test_unknown_audit_is_explained(audited: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(audited, "--audit", "yesterday") == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "There is no audit 'yesterday' in " in shown
    assert f"Use the id of a recent audit: {', '.join(list_audit_ids(audited))}." in shown
