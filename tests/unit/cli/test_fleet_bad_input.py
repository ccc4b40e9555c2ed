"""Errors in a fleet or a folder are reported before Spark is started, and leave no files."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.unit.cli.command_line import CommandLine, CommandResult

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
def fleet_project(kdeclare: CommandLine) -> CommandLine:
    """A fleet file beside the project, and a folder with the report of an earlier audit."""
    (kdeclare.folder / "fleet.yaml").write_text(FLEET)
    for name, text in EARLIER.items():
        write_file(kdeclare.folder / "out" / name, text)

    def fail_if_called(*_: object, **__: object) -> NoReturn:
        raise AssertionError("Spark was started")

    kdeclare.monkeypatch.setattr("kdeclare.fleet.spark.session.spark_session", fail_if_called)
    return kdeclare


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def replace_in_fleet(old: str, new: str) -> Callable[[Path], None]:
    """Replace text in the fleet file."""

    def write_replaced(folder: Path) -> None:
        assert old in FLEET
        (folder / "fleet.yaml").write_text(FLEET.replace(old, new))

    return write_replaced


def write_record(text: str) -> Callable[[Path], None]:
    return lambda folder: write_file(folder / RECORD, text)


def leave_unchanged(folder: Path) -> None:
    """Leave the folder unchanged."""


def read_refusal(ran: CommandResult, code: int = 1) -> str:
    """Return the error on one line, without a traceback; stdout is empty."""
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert "Traceback" not in ran.err
    assert "Internal error" not in ran.err
    assert "Spark was started" not in ran.err
    return " ".join(ran.err.split())


def read_files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["snapshot", "audit", "plan"])
@pytest.mark.parametrize(
    ("prepare", "options", "said"),
    [
        (
            replace_in_fleet("canary: {tier: canary}", "canary: {tier: cnary}"),
            "",
            [
                "fleet.yaml:5:22",
                "No cluster of the fleet has the label tier=cnary.",
                "Did you mean 'canary'?",
            ],
        ),
        (
            replace_in_fleet("canary: {tier: canary}", "canary: {teir: canary}"),
            "",
            ["fleet.yaml:5:22", "No cluster of the fleet has a label 'teir'.", "Did you mean 'tier'?"],
        ),
        (
            leave_unchanged,
            "--cluster-selector tier=silver",
            ["No cluster of the fleet has the label tier=silver.", "Use one of canary, gold."],
        ),
        (
            replace_in_fleet("eu-2,", "eu-1,"),
            "",
            ["fleet.yaml:8:14", "The cluster at fleet.yaml:7:14 is also named 'eu-1'.", "unique name"],
        ),
        (
            replace_in_fleet("'eu-2:9092', manifests: [manifests]", "'eu-2:9092', manifests: [manifest]"),
            "",
            [
                "fleet.yaml:8:85",
                "'manifest' does not exist.",
                "Correct the path, or create the file or folder.",
            ],
        ),
        (leave_unchanged, "--cluster eu-3", ["The fleet 'shop' has no cluster 'eu-3'.", "Did you mean 'eu-"]),
        (
            leave_unchanged,
            "--cluster eu-1 --cluster-selector tier=gold",
            ["None of the clusters eu-1 has all of the labels tier=gold."],
        ),
        (lambda folder: (folder / "fleet.yaml").unlink(), "", ["'fleet.yaml' cannot be read"]),
        (lambda folder: (folder / "fleet.yaml").write_text(f"{FLEET}spec: [a]\n"), "", ["'spec'"]),
        (lambda folder: (folder / "fleet.yaml").write_text(f"{FLEET}spec: a\n"), "", ["'spec'"]),
    ],
)
def test_fleet_commands_reject_invalid_fleet_file(
    fleet_project: CommandLine, command: str, prepare: Callable[[Path], None], options: str, said: list[str]
) -> None:
    prepare(fleet_project.folder)
    told = read_refusal(fleet_project(*f"fleet {command} fleet.yaml --out out {options}".split()))
    for words in said:
        assert words in told
    assert read_files(fleet_project.folder / "out") == EARLIER


@pytest.mark.parametrize(
    ("prepare", "options", "said"),
    [
        (
            leave_unchanged,
            "--since 20200101T000000Z-0000",
            ["There is no audit '20200101T000000Z-0000' in ", "the folder has no audits yet."],
        ),
        (leave_unchanged, "--since latest", ["There is no audit to compare with in "]),
        (
            leave_unchanged,
            "--snapshot snapshots",
            ["There is no snapshot in ", "Run kdeclare fleet snapshot to take one."],
        ),
        (
            write_record("{}"),
            "--snapshot snapshots --snapshot-id 1",
            ["There is no snapshot '1' in ", "Use the id of a recent snapshot: 20261121T040000Z-1f3a."],
        ),
        (
            write_record('{"format_version": "7.0"}'),
            "--snapshot snapshots",
            [
                f"{RECORD} has format version 7.0, but this kdeclare reads only 1.0.",
                "Take a new snapshot",
            ],
        ),
        (
            write_record("{"),
            "--snapshot snapshots",
            [f"{RECORD} was not written by 'kdeclare fleet snapshot', or is damaged."],
        ),
        (
            write_record('{"format_version": "1.0", "snapshot_id": "1"}'),
            "--snapshot snapshots",
            [f"{RECORD} was not written by 'kdeclare fleet snapshot', or is damaged."],
        ),
        (
            lambda folder: write_file(folder / "snapshots", "a file"),
            "--snapshot snapshots",
            ["Cannot read", "snapshots/snapshots: Not a directory."],
        ),
    ],
)
def test_audit_rejects_unusable_input(
    fleet_project: CommandLine, prepare: Callable[[Path], None], options: str, said: list[str]
) -> None:
    prepare(fleet_project.folder)
    told = read_refusal(fleet_project(*f"fleet audit fleet.yaml --out out {options}".split()))
    for words in said:
        assert words in told
    assert read_files(fleet_project.folder / "out") == EARLIER


@pytest.mark.parametrize("command", ["snapshot", "audit", "plan"])
@pytest.mark.parametrize("records", ["snapshots", "audits"])
def test_fleet_commands_reject_folder_of_other_fleet(
    fleet_project: CommandLine, command: str, records: str
) -> None:
    write_file(fleet_project.folder / "out" / records / "20261120T040000Z-1f3a.json", '{"fleet": "shop"}')
    write_file(fleet_project.folder / "out" / records / "20261121T040000Z-1f3a.json", '{"fleet": "other"}')
    before = read_files(fleet_project.folder / "out")
    told = read_refusal(fleet_project(*f"fleet {command} fleet.yaml --out out".split()))
    assert f"out/{records}/20261121T040000Z-1f3a.json belongs to the fleet 'other', not to 'shop'." in told
    assert read_files(fleet_project.folder / "out") == before


@pytest.mark.parametrize("command", ["snapshot", "audit", "plan"])
def test_fleet_commands_reject_file_as_output_folder(fleet_project: CommandLine, command: str) -> None:
    (fleet_project.folder / "results").write_text("mine")
    told = read_refusal(fleet_project("fleet", command, "fleet.yaml", "--out", "results"))
    assert "Not a directory." in told
    assert str(fleet_project.folder / "results") in told or " results" in told
    assert (fleet_project.folder / "results").read_text() == "mine"


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
def test_audit_rejects_invalid_options(fleet_project: CommandLine, options: str, said: list[str]) -> None:
    told = read_refusal(fleet_project(*f"fleet audit fleet.yaml --out out {options}".split()), 64)
    for words in said:
        assert words in told
    assert read_files(fleet_project.folder / "out") == EARLIER


def test_audit_errors_as_json_are_one_document(fleet_project: CommandLine) -> None:
    line = "fleet audit fleet.yaml --out out --since latest --format json"
    ran = fleet_project(*line.split())
    assert ran.code == 1
    (item,) = json.loads(ran.out)["diagnostics"]
    assert item["code"] == "no-audit"


def test_fleet_file_errors_are_reported_together(fleet_project: CommandLine) -> None:
    """All errors in a fleet file are reported at once."""
    (fleet_project.folder / "fleet.yaml").write_text(
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
    told = read_refusal(fleet_project("fleet", "audit", "fleet.yaml", "--out", "out"))
    for words in ("'none.yaml' cannot be read", "'nowhere' does not exist", "'neither' does not exist"):
        assert words in told
