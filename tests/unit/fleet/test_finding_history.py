"""``fleet history --audits``: how long the findings about a resource were open."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from kdeclare.cli.main import main
from kdeclare.fleet.history.finding_history import EpisodeStatus, ResourceAudit, list_episodes
from kdeclare.report.fleet.finding_history_text import render_finding_history_text
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from tests.browser.sample_audits import NOON
from tests.spark.real_fleet import SECRETS, RealFleet, make_real_fleet
from tests.unit.fleet.test_notified_changes import make_row
from tests.unit.report.golden_files import check_golden

DAY = timedelta(days=1)


def make_audits(*nights: Sequence[dict[str, Any]] | None) -> list[ResourceAudit]:
    """Build one audit for each night; rows with the key ``unseen`` were not checked."""
    audits = []
    for number, rows in enumerate(nights):
        if rows is not None:
            open_rows = [row for row in rows if "unseen" not in row]
            unseen_rows = [row for row in rows if "unseen" in row]
            audits.append(ResourceAudit(NOON + number * DAY, open_rows, unseen_rows))
    return audits


STORY = make_audits(
    [make_row("orders")],
    [make_row("orders"), make_row("orders", finding="policy", path=None, message="Too few replicas.")],
    [make_row("orders", before='"5"')],
    [make_row("orders", before='"5"', unseen=True)],
    [],
    [make_row("orders", first_seen=NOON + 5 * DAY, severity="high")],
    [make_row("orders", first_seen=NOON + 5 * DAY, accepted="sale")],
    [
        make_row("orders", first_seen=NOON + 5 * DAY, accepted="sale"),
        make_row("orders", finding="unmanaged", path="configs.flush.ms", first_seen=NOON + 7 * DAY),
    ],
)


def test_episodes_match_golden_file() -> None:
    check_golden("finding-history", render_finding_history_text(list_episodes(STORY)))


def test_finding_that_comes_back_is_another_episode() -> None:
    first, _, second, _ = list_episodes(STORY)
    assert (first.status, first.first_seen) == (EpisodeStatus.FIXED, NOON)
    assert (first.last_seen, first.fixed_by) == (NOON + 2 * DAY, NOON + 4 * DAY), "night 3 did not check it"
    assert first.before == '"5"', "the latest value"
    assert (second.status, second.accepted) == (EpisodeStatus.ACCEPTED, "sale")


def test_unseen_finding_is_not_fixed() -> None:
    (episode,) = list_episodes(make_audits([make_row("orders")], [make_row("orders", unseen=True)]))
    assert (episode.status, episode.last_seen, episode.fixed_by) == (EpisodeStatus.UNSEEN, NOON, None)


def test_no_findings() -> None:
    assert render_finding_history_text(list_episodes(make_audits([], []))) == "No findings in any audit.\n"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealFleet:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return make_real_fleet(tmp_path / "fleet", monkeypatch)


def audit(fleet: RealFleet) -> None:
    line = ["fleet", "audit", str(fleet.file), "--out", str(fleet.folder / "audits"), "--engine", "local"]
    assert main([*line, "--snapshot", str(fleet.snapshots)]) == 0


def test_history_shows_findings_of_resource(fleet: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    audit(fleet)
    manifests = fleet.folder / "shop" / "manifests" / "all.yaml"
    documents = manifests.read_text().split("---\n")
    documents = [text.replace("1000", "5") if "name: t.1," in text else text for text in documents]
    manifests.write_text("---\n".join(documents))
    audit(fleet)
    capsys.readouterr()
    line = ["fleet", "history", "eu-1", "t.1", "--out", str(fleet.snapshots)]
    line += ["--audits", str(fleet.folder / "audits")]
    assert main([*line, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, build_fleet_schemas()["fleet-history"])
    (episode,) = (one for one in document["findings"] if one["path"] == "configs.retention.ms")
    assert (episode["finding"], episode["status"]) == ("changed", "fixed")
    assert main(line) == 0
    assert "changed  retention.ms  5 → 1000 (1 s)" in capsys.readouterr().out
    assert main([*line[:3], "nowhere", *line[4:]]) == 1


def test_history_shows_no_secrets(fleet: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    audit(fleet)
    capsys.readouterr()
    line = ["fleet", "history", "eu-1", "BrokerConfig/1", "--out", str(fleet.snapshots)]
    for options in ([], ["--format", "json"]):
        assert main([*line, "--audits", str(fleet.folder / "audits"), *options]) == 0
        shown = capsys.readouterr().out
        assert "hmac$" not in shown
        assert not any(secret in shown for secret in SECRETS.values())


def test_missing_audits_are_explained(fleet: RealFleet, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["fleet", "history", "eu-1", "t.1", "--out", str(fleet.snapshots)]
    assert main([*line, "--audits", str(fleet.folder / "none")]) == 1
    assert "There is no audit in" in " ".join(capsys.readouterr().err.split())
