"""Errors in a fleet or a folder are reported before Spark is started, and leave no files."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.unit.cli.command_line import CommandLine, Ran

FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: shop}
spec:
  rollout: {canary: {tier: canary}}
  clusters:
    - {name: eu-1, labels: {tier: canary}, bootstrapServers: 'eu-1:9092', manifests: [manifests]}
    - {name: eu-2, labels: {tier: gold}, bootstrapServers: 'eu-2:9092', manifests: [manifests]}
"""
RECORD = "snapshots/snapshots/20261121T040000Z-1f3a.json"
EARLIER = {"summary.json": "{}", "report.html": "<html>"}


@pytest.fixture
def fleet(kdeclare: CommandLine) -> CommandLine:
    """A fleet file beside the project, and a folder with the report of an earlier audit."""
    (kdeclare.folder / "fleet.yaml").write_text(FLEET)
    for name, text in EARLIER.items():
        write(kdeclare.folder / "out" / name, text)

    def never(*_: object, **__: object) -> NoReturn:
        raise AssertionError("Spark was started")

    kdeclare.monkeypatch.setattr("kdeclare.fleet.spark.session.spark_session", never)
    return kdeclare


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def changed(old: str, new: str) -> Callable[[Path], None]:
    """Replace text in the fleet file."""

    def write_it(folder: Path) -> None:
        assert old in FLEET
        (folder / "fleet.yaml").write_text(FLEET.replace(old, new))

    return write_it


def record(text: str) -> Callable[[Path], None]:
    return lambda folder: write(folder / RECORD, text)


def as_it_is(folder: Path) -> None:
    """Leave the folder unchanged."""


def refused(ran: Ran, code: int = 1) -> str:
    """Return the error on one line, without a traceback; stdout is empty."""
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert "Traceback" not in ran.err
    assert "Internal error" not in ran.err
    assert "Spark was started" not in ran.err
    return " ".join(ran.err.split())


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["snapshot", "audit", "plan"])
@pytest.mark.parametrize(
    ("prepare", "options", "said"),
    [
        (
            changed("canary: {tier: canary}", "canary: {tier: cnary}"),
            "",
            [
                "fleet.yaml:5:22",
                "No cluster of the fleet has the label tier=cnary.",
                "Did you mean 'canary'?",
            ],
        ),
        (
            changed("canary: {tier: canary}", "canary: {teir: canary}"),
            "",
            ["fleet.yaml:5:22", "No cluster of the fleet has a label 'teir'.", "Did you mean 'tier'?"],
        ),
        (
            as_it_is,
            "--cluster-selector tier=silver",
            ["No cluster of the fleet has the label tier=silver.", "Use one of canary, gold."],
        ),
        (
            changed("eu-2,", "eu-1,"),
            "",
            ["fleet.yaml:8:14", "The cluster at fleet.yaml:7:14 is also named 'eu-1'.", "unique name"],
        ),
        (
            changed("'eu-2:9092', manifests: [manifests]", "'eu-2:9092', manifests: [manifest]"),
            "",
            [
                "fleet.yaml:8:85",
                "'manifest' does not exist.",
                "Correct the path, or create the file or folder.",
            ],
        ),
        (as_it_is, "--cluster eu-3", ["The fleet 'shop' has no cluster 'eu-3'.", "Did you mean 'eu-"]),
        (
            as_it_is,
            "--cluster eu-1 --cluster-selector tier=gold",
            ["None of the clusters eu-1 has all of the labels tier=gold."],
        ),
        (lambda folder: (folder / "fleet.yaml").unlink(), "", ["'fleet.yaml' cannot be read"]),
    ],
)
def test_a_fleet_that_is_wrong(
    fleet: CommandLine, command: str, prepare: Callable[[Path], None], options: str, said: list[str]
) -> None:
    prepare(fleet.folder)
    told = refused(fleet(*f"fleet {command} fleet.yaml --out out {options}".split()))
    for words in said:
        assert words in told
    assert files(fleet.folder / "out") == EARLIER


@pytest.mark.parametrize(
    ("prepare", "options", "said"),
    [
        (
            as_it_is,
            "--since 20200101T000000Z-0000",
            ["There is no audit '20200101T000000Z-0000' in ", "the folder has no audits yet."],
        ),
        (as_it_is, "--since latest", ["There is no audit to compare with in "]),
        (
            as_it_is,
            "--snapshot snapshots",
            ["There is no snapshot in ", "Run kdeclare fleet snapshot to take one."],
        ),
        (
            record("{}"),
            "--snapshot snapshots --snapshot-id 1",
            ["There is no snapshot '1' in ", "Use the id of a recent snapshot: 20261121T040000Z-1f3a."],
        ),
        (
            record('{"format_version": "7.0"}'),
            "--snapshot snapshots",
            [
                f"{RECORD} has format version 7.0, but this version of kdeclare reads 1.0.",
                "Take a new snapshot",
            ],
        ),
        (
            record("{"),
            "--snapshot snapshots",
            [f"{RECORD} does not have the format that 'kdeclare fleet snapshot' writes."],
        ),
        (
            record('{"format_version": "1.0", "snapshot_id": "1"}'),
            "--snapshot snapshots",
            [f"{RECORD} does not have the format that 'kdeclare fleet snapshot' writes."],
        ),
        (
            lambda folder: write(folder / "snapshots", "a file"),
            "--snapshot snapshots",
            ["Cannot read", "snapshots/snapshots: Not a directory."],
        ),
    ],
)
def test_what_an_audit_cannot_begin_with(
    fleet: CommandLine, prepare: Callable[[Path], None], options: str, said: list[str]
) -> None:
    prepare(fleet.folder)
    told = refused(fleet(*f"fleet audit fleet.yaml --out out {options}".split()))
    for words in said:
        assert words in told
    assert files(fleet.folder / "out") == EARLIER


@pytest.mark.parametrize("command", ["snapshot", "audit", "plan"])
@pytest.mark.parametrize("records", ["snapshots", "audits"])
def test_the_folder_of_another_fleet(fleet: CommandLine, command: str, records: str) -> None:
    write(fleet.folder / "out" / records / "20261120T040000Z-1f3a.json", '{"fleet": "shop"}')
    write(fleet.folder / "out" / records / "20261121T040000Z-1f3a.json", '{"fleet": "other"}')
    before = files(fleet.folder / "out")
    told = refused(fleet(*f"fleet {command} fleet.yaml --out out".split()))
    assert f"out/{records}/20261121T040000Z-1f3a.json belongs to the fleet 'other', not to 'shop'." in told
    assert files(fleet.folder / "out") == before


@pytest.mark.parametrize("command", ["snapshot", "audit", "plan"])
def test_a_file_in_place_of_the_folder(fleet: CommandLine, command: str) -> None:
    (fleet.folder / "results").write_text("mine")
    told = refused(fleet("fleet", command, "fleet.yaml", "--out", "results"))
    assert "Not a directory." in told
    assert str(fleet.folder / "results") in told or " results" in told
    assert (fleet.folder / "results").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--fail-on chnged", ["'chnged' is not a kind of finding.", "Did you mean 'changed'?"]),
        ("--fail-on changed,", ["'' is not a kind of finding.", "unreachable"]),
        ("--snapshot-id 1", ["requires --snapshot DIR."]),
        ("--conf spark", ["--conf"]),
        ("--cluster-selector tier", ["--cluster-selector"]),
    ],
)
def test_options_that_mean_nothing(fleet: CommandLine, options: str, said: list[str]) -> None:
    told = refused(fleet(*f"fleet audit fleet.yaml --out out {options}".split()), 64)
    for words in said:
        assert words in told
    assert files(fleet.folder / "out") == EARLIER


def test_as_json_it_is_one_document(fleet: CommandLine) -> None:
    line = "fleet audit fleet.yaml --out out --since latest --format json"
    ran = fleet(*line.split())
    assert ran.code == 1
    (item,) = json.loads(ran.out)["diagnostics"]
    assert item["code"] == "no-audit"


def test_the_fleet_is_checked_as_a_whole(fleet: CommandLine) -> None:
    """All errors in a fleet file are reported at once."""
    (fleet.folder / "fleet.yaml").write_text(
        textwrap.dedent("""\
            apiVersion: kdeclare/v1
            kind: Fleet
            metadata: {name: shop}
            spec:
              clusters:
                - {name: eu-1, project: none.yaml}
                - {name: eu-2, bootstrapServers: 'eu-2:9092', manifests: [nowhere], overlays: [neither]}
            """)
    )
    told = refused(fleet("fleet", "audit", "fleet.yaml", "--out", "out"))
    for words in ("'none.yaml' cannot be read", "'nowhere' does not exist", "'neither' does not exist"):
        assert words in told
