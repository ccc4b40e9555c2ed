"""Times that kdeclare never writes, in journals, summaries and ids of runs."""

import json
from pathlib import Path

import pytest

from kdeclare.engine.state.journal_file import format_journal_line
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_damaged_state import apply_topics, contains_words, list_run_folders, list_runs

BAD_TIMES = [
    "",
    "NaN",
    "2026-01-01",
    "2026-02-30T00:00:00Z",
    "2026-01-01T00:00:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
]


def set_time(run: Path, event: str, key: str, time: str) -> None:
    """Replace a time in all lines of a journal about one event. The checksums stay right."""
    journal, lines = run / "journal.jsonl", list[bytes]()
    for number, line in enumerate(journal.read_bytes().splitlines(), start=1):
        entry = json.loads(line)["entry"]
        if entry["event"] == event:
            entry[key] = time
        lines.append(format_journal_line(number, entry))
    journal.write_bytes(b"".join(lines))
    (run / "summary.json").unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("time", BAD_TIMES)
@pytest.mark.parametrize(
    ("event", "key"),
    [("run", "at"), ("begin", "at"), ("begin", "deadline"), ("end", "at"), ("finish", "at")],
)
def test_run_with_impossible_time_is_unreadable(
    kdeclare: CommandLine, event: str, key: str, time: str
) -> None:
    apply_topics(kdeclare, "a", "b")
    first, second = list_run_folders(kdeclare)
    set_time(first, event, key, time)
    assert list_runs(kdeclare) == [(second.name, "done"), (first.name, "unreadable")]
    assert kdeclare("status").code == 0
    assert kdeclare("plan").code == 0
    detail = kdeclare("history", first.name)
    assert detail.code == 1
    assert contains_words(detail, "The journal cannot be read", "a time from 1970 to 8999") or contains_words(
        detail, "has an unknown format"
    )
    assert kdeclare("state", "prune", "--keep", "1", "--yes").code == 0


@pytest.mark.parametrize("time", BAD_TIMES)
def test_summary_with_impossible_time_is_computed_again(kdeclare: CommandLine, time: str) -> None:
    apply_topics(kdeclare, "a")
    file = list_run_folders(kdeclare)[0] / "summary.json"
    before = kdeclare("history").out
    file.write_text(json.dumps(json.loads(file.read_text()) | {"started": time}))
    assert kdeclare("history").out == before


@pytest.mark.parametrize(
    "run_id", ["backup", "20260228T000000", "20261301T000000Z-1a2b3c4d", "99990101T000000Z-x"]
)
def test_damaged_run_with_foreign_name_is_listed(kdeclare: CommandLine, run_id: str) -> None:
    apply_topics(kdeclare, "a")
    run = list_run_folders(kdeclare)[0]
    (run / "journal.jsonl").write_text("no journal\n" * 2)
    (run / "summary.json").unlink()
    run.rename(run.parent / run_id)
    listed = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert [(one["run_id"], one["started"], one["outcome"]) for one in listed] == [
        (run_id, None, "unreadable")
    ]
    assert contains_words(kdeclare("history"), run_id, "unknown time", "unreadable")
    assert contains_words(kdeclare("status"), run_id)
    assert kdeclare("state", "prune", "--keep", "1", "--yes").code == 0
    assert kdeclare("state", "abandon", run_id, "--yes").code == 0
    apply_topics(kdeclare, "b")
    assert [outcome for _, outcome in list_runs(kdeclare)] in (["done", "abandoned"], ["abandoned", "done"])
