"""`kdeclare state abandon`: a run that cannot be finished never takes a command away."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdeclare.engine.state.journal_file import format_journal_line
from kdeclare.report.run.documents import build_run_schemas
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_damaged_state import (
    apply_topics,
    contains_words,
    damage,
    get_state_folder,
    list_owned,
    list_run_folders,
    list_runs,
    read_state,
)


def kill_last_run(kdeclare: CommandLine, lines: int) -> Path:
    """Keep only the first lines of the last run's journal. Return the folder of the run."""
    last = list_run_folders(kdeclare)[-1]
    journal = last / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:lines]))
    return last


def restore_earlier_state(kdeclare: CommandLine) -> None:
    """Replace the state with its backup: the state before the last run."""
    folder = get_state_folder(kdeclare)
    (folder / "state.json").write_bytes((folder / "state.json.backup").read_bytes())


def damage_line(journal: Path, number: int) -> None:
    """Change a byte in the middle of one line."""
    lines = journal.read_bytes().splitlines(keepends=True)
    line = bytearray(lines[number - 1])
    line[len(line) // 2] ^= 1
    lines[number - 1] = bytes(line)
    journal.write_bytes(b"".join(lines))


def test_abandoned_run_stops_no_command(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    last = list_run_folders(kdeclare)[-1]
    damage(last / "journal.jsonl")
    before = {path: path.read_bytes() for path in last.iterdir()}
    kdeclare.topic("c")
    for command in (["apply", "--yes"], ["rollback", "--yes"], ["topic", "create", "d", "--yes"]):
        refused = kdeclare(*command)
        assert (refused.code, contains_words(refused, f"kdeclare state abandon {last.name}")) == (1, True)
    ran = kdeclare("state", "abandon", last.name, answer="yes\n")
    assert ran.code == 0, ran.err
    assert contains_words(ran, "Abandon this run?", "checksum does not match", "topic.create Topic/b")
    assert {path: path.read_bytes() for path in before} == before
    assert kdeclare("status").err == ""
    assert kdeclare("plan").err == ""
    assert kdeclare("topic", "create", "d", "--yes").code == 0
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("rollback", "--yes").code == 0
    assert "c" not in kdeclare.topics
    outcomes = [outcome for _, outcome in list_runs(kdeclare)]
    assert outcomes == ["done", "done", "done", "abandoned", "done"]


def test_history_names_who_abandoned_a_run(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    last = kill_last_run(kdeclare, 2)
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0
    stored = json.loads((last / "abandoned.json").read_text())
    assert stored["unsettled"] == ["topic.create:Topic/a"]
    run = json.loads(kdeclare("history", "--format", "json").out)["runs"][0]
    assert (run["outcome"], run["abandoned_by"]) == ("abandoned", stored["who"])
    assert run["abandoned_at"][:19] == stored["at"][:19]
    assert contains_words(kdeclare("history"), f"abandoned by {stored['who']} at ")
    assert contains_words(kdeclare("history", last.name), f"abandoned by {stored['who']} at ")
    status = json.loads(kdeclare("status", "--format", "json").out)
    assert (status["unfinished"], status["last"]) == ([], None)


def test_damaged_abandonment_still_counts(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    last = kill_last_run(kdeclare, 2)
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0
    (last / "abandoned.json").write_text("{")
    assert list_runs(kdeclare) == [(last.name, "abandoned")]
    assert kdeclare("plan").err == ""


def test_abandon_shows_operations_of_partly_damaged_journal(kdeclare: CommandLine) -> None:
    kdeclare.topic("a")
    apply_topics(kdeclare, "b")
    last = kill_last_run(kdeclare, 3)
    damage_line(last / "journal.jsonl", 1)
    ran = kdeclare("state", "abandon", last.name, "--yes", "--format", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    Draft202012Validator(build_run_schemas()["state-abandon"]).validate(document)
    assert (document["abandoned"], document["journal_complete"]) == (True, False)
    assert {(step["resource"], step["status"]) for step in document["operations"]} == {
        ("Topic/a", "done"),
        ("Topic/b", "done"),
    }


def test_abandon_shows_operations_in_unknown_lines(kdeclare: CommandLine) -> None:
    """A newer version of kdeclare can add fields to journal lines."""
    apply_topics(kdeclare, "a")
    last = kill_last_run(kdeclare, 1)
    entry = {"event": "begin", "at": "2026-11-28T10:00:00Z", "ids": ["x.create:X/x"], "color": "red"}
    with (last / "journal.jsonl").open("ab") as journal:
        journal.write(format_journal_line(2, entry))
    refused = kdeclare("apply", "--yes")
    assert (refused.code, contains_words(refused, "state abandon", "Another version of kdeclare")) == (
        1,
        True,
    )
    ran = kdeclare("state", "abandon", last.name, "--yes")
    assert contains_words(ran, "unknown      x.create X/x")
    assert kdeclare("apply", "--yes").code == 0


@pytest.mark.parametrize("content", ["{", None])
def test_unfinished_run_with_unreadable_plan_does_not_block_reads(
    kdeclare: CommandLine, content: str | None
) -> None:
    apply_topics(kdeclare, "a")
    last = kill_last_run(kdeclare, 2)
    if content is None:
        (last / "plan.json").unlink()
    else:
        (last / "plan.json").write_text(content)
    for command in ("status", "plan", "history"):
        ran = kdeclare(command)
        assert ran.code == 0, ran.err
        assert command == "history" or contains_words(ran, f"kdeclare state abandon {last.name}")
    assert kdeclare("apply", "--yes").code == 1
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0
    assert kdeclare("apply", "--yes").code == 0


def test_finished_run_cannot_be_abandoned(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    last = list_run_folders(kdeclare)[-1]
    refused = kdeclare("state", "abandon", last.name, "--yes")
    assert (refused.code, contains_words(refused, "The run is finished")) == (1, True)
    assert kdeclare("state", "abandon", "20260101T000000Z-00000000", "--yes").code == 1
    assert list_runs(kdeclare) == [(last.name, "done")]


def test_abandon_requires_confirmation(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    last = kill_last_run(kdeclare, 2)
    assert kdeclare("state", "abandon", last.name).code == 64
    assert kdeclare("state", "abandon", last.name, answer="no\n").code == 1
    assert not (last / "abandoned.json").exists()
    assert kdeclare("state", "abandon", last.name, answer="yes\n").code == 0
    again = kdeclare("state", "abandon", last.name, "--yes")
    assert (again.code, contains_words(again, "The run is abandoned")) == (1, True)


def test_abandoned_run_cannot_be_rolled_back(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    last = kill_last_run(kdeclare, 2)
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0
    refused = kdeclare("rollback", last.name, "--yes")
    assert (refused.code, contains_words(refused, "The run is abandoned")) == (1, True)
    assert kdeclare("rollback", "--yes").code == 0  # undoes the run before
    assert "a" not in kdeclare.topics


def test_run_with_unreachable_system_can_be_abandoned(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a")
    last = kill_last_run(kdeclare, 2)

    def refuse(*_: object) -> None:
        raise AssertionError("the command connected to a system")

    kdeclare.monkeypatch.setattr("kdeclare.providers.kafka.connection.connect_cluster", refuse)
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0


@pytest.mark.parametrize("file", ["journal.jsonl", "plan.json"])
def test_damaged_run_does_not_block_update_of_old_state(kdeclare: CommandLine, file: str) -> None:
    apply_topics(kdeclare, "a")
    state = get_state_folder(kdeclare) / "state.json"
    old = state.read_bytes()
    apply_topics(kdeclare, "b", "c")
    serial = json.loads(state.read_text())["serial"]
    damage(list_run_folders(kdeclare)[1] / file)
    state.write_bytes(old)
    ran = kdeclare("plan")
    assert ran.code == 0 or "adopt" in ran.out, ran.err
    assert contains_words(ran, "older than the recorded runs", "Ownership changes are unknown")
    assert contains_words(ran, list_run_folders(kdeclare)[1].name)
    assert list_owned(kdeclare) == {"Topic/a", "Topic/c"}
    assert json.loads(state.read_text())["serial"] == serial
    assert "older than" not in kdeclare("plan").err


def test_abandoned_run_is_ignored_when_old_state_is_updated(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b", "c")
    last = kill_last_run(kdeclare, 2)
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0
    folder = get_state_folder(kdeclare)
    for _ in range(2):
        restore_earlier_state(kdeclare)
    old = read_state(kdeclare)
    old["serial"], old["resources"] = 1, {"Topic/a": old["resources"]["Topic/a"]}
    (folder / "state.json").write_text(json.dumps(old))
    ran = kdeclare("plan")
    assert contains_words(ran, "older than the recorded runs")
    assert "Ownership changes are unknown" not in ran.err
    assert list_owned(kdeclare) == {"Topic/a", "Topic/b"}


def test_state_is_lost_if_only_damaged_old_runs_exist(kdeclare: CommandLine) -> None:
    apply_topics(kdeclare, "a", "b")
    first, last = list_run_folders(kdeclare)
    damage(first / "journal.jsonl")
    damage(last / "journal.jsonl")
    (get_state_folder(kdeclare) / "state.json").unlink()
    assert contains_words(kdeclare("plan"), "State is missing")
    assert kdeclare("state", "abandon", last.name, "--yes").code == 0
    assert contains_words(kdeclare("apply", "--yes"), "State is missing")
    assert kdeclare("state", "abandon", first.name, "--yes").code == 0
    assert kdeclare("apply", "--yes").code == 0
