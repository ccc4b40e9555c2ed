"""`kdeclare state prune` removes old runs, and keeps every run that a command can still need."""

import json
from datetime import UTC, datetime, timedelta

from jsonschema import Draft202012Validator

from kdeclare.core.clock import SystemClock
from kdeclare.report.run.documents import build_run_schemas
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_damaged_state import (
    apply_topics,
    contains_words,
    damage,
    get_state_folder,
    list_owned,
    list_run_folders,
)
from tests.unit.cli.test_state_abandon import kill_last_run


def move_clock(kdeclare: CommandLine, shift: timedelta) -> None:
    """Let commands run later by ``shift``."""
    kdeclare.monkeypatch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) + shift)


def list_names(kdeclare: CommandLine) -> list[str]:
    """Return the ids of the runs, oldest first."""
    return [folder.name for folder in list_run_folders(kdeclare)]


def test_prune_keeps_latest_runs(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b", "c", "d")
    names = list_names(kdeclare)
    move_clock(kdeclare, timedelta(days=1))
    ran = kdeclare("state", "prune", "--keep", "2", "--yes", "--format", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    Draft202012Validator(build_run_schemas()["state-prune"]).validate(document)
    assert (document["runs"], document["kept"], document["removed"]) == (names[:2], 2, True)
    assert list_names(kdeclare) == names[2:]
    assert list(get_state_folder(kdeclare).glob("runs/.*")) == []
    assert list_owned(kdeclare) == {"Topic/a", "Topic/b", "Topic/c", "Topic/d"}
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    assert kdeclare("rollback", "--yes").code == 0


def test_prune_by_age_keeps_young_runs_and_the_last(kdeclare: CommandLine) -> None:
    move_clock(kdeclare, timedelta(days=-100))
    apply_topics(kdeclare, "a", "b")
    move_clock(kdeclare, timedelta(days=-10))
    apply_topics(kdeclare, "c")
    move_clock(kdeclare, timedelta())
    names = list_names(kdeclare)
    assert contains_words(kdeclare("state", "prune", "--older-than", "101d", "--yes"), "No run to remove")
    assert contains_words(
        kdeclare("state", "prune", "--older-than", "90d", "--keep", "2", "--yes"), "1 run removed"
    )
    assert list_names(kdeclare) == names[1:]
    assert kdeclare("state", "prune", "--older-than", "5d", "--yes").code == 0
    assert list_names(kdeclare) == names[2:]


def test_prune_keeps_recent_runs(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    assert contains_words(kdeclare("state", "prune", "--keep", "1", "--yes"), "No run to remove; 2 runs kept")


def test_prune_keeps_runs_that_kept_runs_undo(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    assert kdeclare("rollback", "--yes").code == 0
    assert kdeclare("rollback", "--yes").code == 0
    _, second, undo, redo = list_names(kdeclare)
    move_clock(kdeclare, timedelta(days=1))
    assert kdeclare("state", "prune", "--keep", "1", "--yes").code == 0
    assert list_names(kdeclare) == [second, undo, redo]
    assert kdeclare("rollback", undo, "--out", "undo.plan").code == 0


def test_prune_keeps_unfinished_and_damaged_runs(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b", "c", "d", "e")
    names = list_names(kdeclare)
    damage(list_run_folders(kdeclare)[1] / "journal.jsonl")
    kill_last_run(kdeclare, 2)
    move_clock(kdeclare, timedelta(days=1))
    assert kdeclare("state", "prune", "--keep", "1", "--yes").code == 0
    assert list_names(kdeclare) == [names[1], names[3], names[4]]
    assert kdeclare("state", "abandon", names[1], "--yes").code == 0
    assert kdeclare("state", "prune", "--keep", "1", "--yes").code == 0
    assert list_names(kdeclare) == names[3:]


def test_prune_keeps_runs_that_the_state_lacks(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    state = get_state_folder(kdeclare) / "state.json"
    old = state.read_bytes()
    apply_topics(kdeclare, "b", "c")
    names = list_names(kdeclare)
    current, _ = state.read_bytes(), state.write_bytes(old)
    move_clock(kdeclare, timedelta(days=1))
    assert kdeclare("state", "prune", "--keep", "1", "--yes").code == 0
    assert list_names(kdeclare) == names[1:]
    assert "older than the recorded runs" in kdeclare("plan").err
    assert json.loads(state.read_bytes()) == json.loads(current)
    state.unlink()
    refused = kdeclare("state", "prune", "--keep", "1", "--yes")
    assert (refused.code, contains_words(refused, "There is no state")) == (1, True)
    assert list_names(kdeclare) == names[1:]


def test_prune_requires_a_limit_and_confirmation(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    move_clock(kdeclare, timedelta(days=1))
    for options in ([], ["--keep", "0"], ["--older-than", "soon"], ["--older-than", "9" * 400 + "d"]):
        assert kdeclare("state", "prune", "--yes", *options).code == 64
    assert kdeclare("state", "prune", "--keep", "1").code == 64
    declined = kdeclare("state", "prune", "--keep", "1", answer="no\n")
    assert (declined.code, contains_words(declined, "1 run to remove", "Remove these runs?")) == (1, True)
    assert len(list_names(kdeclare)) == 2
    assert kdeclare("state", "prune", "--keep", "1", answer="yes\n").code == 0
    assert len(list_names(kdeclare)) == 1
