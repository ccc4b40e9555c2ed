"""A damaged, outdated, lost or read-only state folder: what still works, and which hints are given."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine, CommandResult


def get_state_folder(kdeclare: CommandLine) -> Path:
    """Return the folder of the state."""
    return kdeclare.folder / "state" / "shop" / "lab"


def list_run_folders(kdeclare: CommandLine) -> list[Path]:
    """Return the folders of the runs, oldest first."""
    return sorted((get_state_folder(kdeclare) / "runs").iterdir())


def apply_topics(kdeclare: CommandLine, *names: str) -> None:
    """Make one run per topic."""
    for name in names:
        kdeclare.topic(name)
        assert kdeclare("apply", "--yes").code == 0


def damage(path: Path) -> None:
    """Change a byte in the middle of the first line."""
    data = bytearray(path.read_bytes())
    data[len(data.split(b"\n")[0]) // 2] ^= 1
    path.write_bytes(bytes(data))


def read_state(kdeclare: CommandLine, name: str = "state.json") -> dict[str, Any]:
    """Return a stored state without its checksum, so that a changed state can be written."""
    document: dict[str, Any] = json.loads((get_state_folder(kdeclare) / name).read_text())
    del document["checksum"]
    return document


def list_owned(kdeclare: CommandLine) -> set[str]:
    """Return the resources in the state."""
    return set(json.loads((get_state_folder(kdeclare) / "state.json").read_text())["resources"])


def list_runs(kdeclare: CommandLine, *options: str) -> list[tuple[str, str]]:
    """Return the runs and their outcomes."""
    ran = kdeclare("history", "--format", "json", *options)
    assert ran.code == 0, ran.err
    return [(run["run_id"], run["outcome"]) for run in json.loads(ran.out)["runs"]]


def contains_words(ran: CommandResult, *words: str) -> bool:
    """Return whether the output contains all words."""
    return all(word in ran.out + ran.err for word in words)


@pytest.mark.parametrize("file", ["journal.jsonl", "plan.json"])
def test_damaged_old_run_is_listed_and_blocks_nothing(kdeclare: CommandLine, file: str) -> None:
    apply_topics(kdeclare, "a", "b", "c")
    damage(list_run_folders(kdeclare)[0] / file)
    assert [outcome for _, outcome in list_runs(kdeclare)] == ["done", "done", "unreadable"]
    ran = kdeclare("history")
    assert contains_words(ran, list_run_folders(kdeclare)[0].name, "unreadable")
    assert kdeclare("status").code == 0
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    apply_topics(kdeclare, "d")
    assert kdeclare("rollback", "--yes").code == 0
    one = kdeclare("history", list_run_folders(kdeclare)[0].name)
    assert one.code == 1
    name = list_run_folders(kdeclare)[0].name
    assert contains_words(one, f"runs/{name}", f"kdeclare state abandon {name}")


def test_run_of_future_version_is_listed_and_blocks_nothing(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    plan = list_run_folders(kdeclare)[0] / "plan.json"
    plan.write_text(plan.read_text().replace('"format_version": "2.0"', '"format_version": "9.0"'))
    assert [outcome for _, outcome in list_runs(kdeclare)] == ["done", "unreadable"]
    assert kdeclare("status").code == 0


@pytest.mark.parametrize("file", ["journal.jsonl", "plan.json"])
def test_damaged_last_run_allows_reads_and_blocks_apply_with_hint(kdeclare: CommandLine, file: str) -> None:
    apply_topics(kdeclare, "a", "b")
    last = list_run_folders(kdeclare)[-1]
    damage(last / file)
    assert [outcome for _, outcome in list_runs(kdeclare)] == ["unreadable", "done"]
    for command in (["status"], ["plan"]):
        ran = kdeclare(*command)
        assert ran.code == 0, ran.err
    kdeclare.topic("c")
    refused = kdeclare("apply", "--yes")
    if file == "journal.jsonl":
        assert refused.code == 1
        assert contains_words(refused, "A recorded run cannot be read", f"kdeclare state abandon {last.name}")
        assert "c" not in kdeclare.topics
        assert kdeclare("state", "abandon", last.name, "--yes").code == 0
        assert kdeclare("apply", "--yes").code == 0
    assert "c" in kdeclare.topics
    assert list_owned(kdeclare) == {"Topic/a", "Topic/b", "Topic/c"}


def test_restored_backup_is_updated_from_journals(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b", "c")
    state = get_state_folder(kdeclare) / "state.json"
    before = state.read_text()
    state.write_text("{")
    refused = kdeclare("plan")
    assert refused.code == 1
    assert contains_words(refused, "state.json.backup")
    shutil.copy(get_state_folder(kdeclare) / "state.json.backup", state)
    assert "Topic/c" not in list_owned(kdeclare)
    ran = kdeclare("plan", "--detailed-exitcode")
    assert (ran.code, contains_words(ran, "older than the recorded runs")) == (0, True)
    assert json.loads(state.read_text()) == json.loads(before)
    assert kdeclare("plan", "--detailed-exitcode").err == ""


def test_state_several_runs_behind_is_updated(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    state = get_state_folder(kdeclare) / "state.json"
    old = state.read_text()
    apply_topics(kdeclare, "b", "c")
    (kdeclare.folder / "manifests" / "b.yaml").unlink()
    assert kdeclare("apply", "--yes", "--forget", "Topic/b").code == 0
    before = json.loads(state.read_text())
    state.write_text(old)
    assert kdeclare("apply", "--yes").code == 0
    assert json.loads(state.read_text()) == before


def test_state_of_other_lineage_is_not_merged_with_old_runs(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    state = get_state_folder(kdeclare) / "state.json"
    foreign = read_state(kdeclare) | {"lineage": "another", "serial": 1, "resources": {}}
    state.write_text(json.dumps(foreign))
    assert kdeclare("plan").code in (0, 3)
    assert json.loads(state.read_text())["serial"] == 1


def test_lost_state_is_reported_and_blocks_apply(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    state = get_state_folder(kdeclare) / "state.json"
    state.unlink()
    assert contains_words(kdeclare("status"), "State is missing")
    assert contains_words(kdeclare("plan"), "State is missing")
    kdeclare.topic("c")
    refused = kdeclare("apply", "--yes")
    assert (refused.code, contains_words(refused, "state.json.backup")) == (1, True)
    assert "c" not in kdeclare.topics
    shutil.copy(get_state_folder(kdeclare) / "state.json.backup", state)
    assert kdeclare("apply", "--yes").code == 0
    assert list_owned(kdeclare) == {"Topic/a", "Topic/b", "Topic/c"}


def test_apply_works_after_moving_runs_aside_as_hinted(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    (get_state_folder(kdeclare) / "state.json").unlink()
    shutil.move(get_state_folder(kdeclare) / "runs", kdeclare.folder / "aside")
    assert kdeclare("apply", "--yes").code == 0
    assert list_owned(kdeclare) == {"Topic/a"}


def test_status_reports_throttle_unknown_to_lost_state(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic("t", None, None, {0: (1, 2)}, {})])
    kdeclare.cluster.tick_on_poll = False
    kdeclare.cluster.move_ticks = 100
    kdeclare.write(
        "manifests/move.yaml",
        "Reassignment",
        "move",
        partitions=[{"topic": "t", "partition": 0, "replicas": [1, 3]}],
        throttle=1000,
    )
    assert kdeclare("apply", "--yes", "--no-wait").code == 0
    (get_state_folder(kdeclare) / "state.json").unlink()
    kdeclare.cluster.tick(200)
    ran = kdeclare("status")
    assert contains_words(ran, "a throttle of finished moves is still set")
    assert "Idle" not in ran.out


def cut_last_line(journal: Path) -> None:
    """Remove the last line, as if the process had been killed before it was written."""
    *lines, _, _ = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("problem", [28, 30, 13])
def test_unrecoverable_unfinished_run_does_not_block_reads(kdeclare: CommandLine, problem: int) -> None:
    """A full disk (28), a read-only file system (30), and no write permission (13)."""
    apply_topics(kdeclare, "a", "b")
    cut_last_line(list_run_folders(kdeclare)[-1] / "journal.jsonl")
    opened = os.open

    def is_in_state_folder(path: str | Path) -> bool:
        return str(get_state_folder(kdeclare)) in str(Path(path).absolute())

    def refuse_writes(path: str | Path, flags: int, *more: int, **named: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and str(get_state_folder(kdeclare)) in str(
            Path(path).absolute()
        ):
            raise OSError(problem, os.strerror(problem), str(path))
        return opened(path, flags, *more, **named)

    with kdeclare.monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse_writes)
        for command in (["status"], ["plan"]):
            ran = kdeclare(*command)
            assert (ran.code, contains_words(ran, "cannot be recovered")) == (0, True), ran.err
        assert kdeclare("apply", "--yes").code == 1
    assert kdeclare("apply", "--yes").code == 0


def test_history_limit_counts_omitted_runs(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b", "c")
    ran = kdeclare("history", "--limit", "2")
    assert contains_words(ran, "1 older run not shown. Pass --limit 0 to see all.")
    assert len(list_runs(kdeclare, "--limit", "2")) == 2
    assert len(list_runs(kdeclare, "--limit", "0")) == 3
    assert "older" not in kdeclare("history").out


def test_history_and_status_read_latest_run_only(kdeclare: CommandLine) -> None:
    """Reading the latest run needs no other runs."""
    apply_topics(kdeclare, "a", "b", "c")
    for old in list_run_folders(kdeclare)[:-1]:
        (old / "plan.json").unlink()
        (old / "journal.jsonl").unlink()
    assert len(list_runs(kdeclare, "--limit", "1")) == 1
    assert kdeclare("status").code == 0
