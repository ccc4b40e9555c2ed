"""Lists of runs come from stored summaries, so that they cost the same after a thousand runs."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kdeclare.core.clock import SystemClock
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_damaged_state import apply_topics, list_run_folders, list_runs
from tests.unit.cli.test_state_abandon import kill_last_run


@contextmanager
def count_reads(kdeclare: CommandLine) -> Iterator[Counter[str]]:
    """Count the files of the state that commands read, by name."""
    reads: Counter[str] = Counter()
    read_bytes = Path.read_bytes

    def count(path: Path) -> bytes:
        reads[path.name] += 1
        return read_bytes(path)

    with kdeclare.monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", count)
        yield reads


def make_runs(kdeclare: CommandLine, count: int) -> None:
    """Make several runs, each of which changes a topic."""
    for number in range(count):
        kdeclare.topic("a", configs={"retention.ms": 1000 + number})
        assert kdeclare("apply", "--yes").code == 0


def test_history_reads_no_plan_and_no_journal(kdeclare: CommandLine) -> None:
    make_runs(kdeclare, 6)
    with count_reads(kdeclare) as reads:
        assert len(list_runs(kdeclare)) == 6
    assert (reads["summary.json"], reads["plan.json"], reads["journal.jsonl"]) == (6, 0, 0)


@pytest.mark.slow
def test_status_and_plan_read_as_much_after_many_runs_as_after_few(kdeclare: CommandLine) -> None:
    counts = []
    for count in (21, 9):  # `status` searches the last 20 plans for the run that started ongoing work
        make_runs(kdeclare, count)
        with kdeclare.monkeypatch.context() as patch, count_reads(kdeclare) as reads:
            # later than the time in which systems may not show changes yet
            patch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) + timedelta(hours=1))
            assert kdeclare("status").code == 0
            assert kdeclare("plan").code == 0
        counts.append(reads)
    assert counts[0] == counts[1]
    assert counts[0]["summary.json"] > 0


def test_history_is_the_same_with_and_without_summaries(kdeclare: CommandLine) -> None:
    make_runs(kdeclare, 2)
    assert kdeclare("rollback", "--yes").code == 0
    apply_topics(kdeclare, "b")
    kill_last_run(kdeclare, 3)
    assert kdeclare("apply", "--yes").code == 0  # recovers the killed run
    (kdeclare.folder / "manifests" / "b.yaml").unlink()
    assert kdeclare("apply", "--yes", "--forget", "Topic/b").code == 0
    files = [folder / "summary.json" for folder in list_run_folders(kdeclare)]
    assert all(file.exists() for file in files)
    texts = [kdeclare("history", "--format", "json").out, kdeclare("history").out, kdeclare("status").out]
    for file in files:
        file.unlink()
    assert [
        kdeclare("history", "--format", "json").out,
        kdeclare("history").out,
        kdeclare("status").out,
    ] == texts


@pytest.mark.parametrize("damage", ["cut", "version", "other run", "empty", "field"])
def test_unusable_summary_is_computed_again(kdeclare: CommandLine, damage: str) -> None:
    make_runs(kdeclare, 2)
    before = kdeclare("history", "--format", "json").out
    first, second = (folder / "summary.json" for folder in list_run_folders(kdeclare))
    document = json.loads(second.read_text())
    match damage:
        case "cut":
            second.write_text(second.read_text()[:-20])
        case "version":
            document["summary"] |= {"version": 2, "user": "someone@else"}
            second.write_text(json.dumps(document))
        case "other run":
            document["summary"] = json.loads(first.read_text())["summary"]
            second.write_text(json.dumps(document))
        case "empty":
            second.write_text("")
        case _:
            document["summary"]["counts"] = {"marvelous": 1}
            second.write_text(json.dumps(document))
    assert kdeclare("history", "--format", "json").out == before


def test_summary_decides_nothing(kdeclare: CommandLine) -> None:
    """A summary that claims that the last run finished does not prevent its recovery."""
    apply_topics(kdeclare, "a")
    folder = list_run_folders(kdeclare)[-1]
    summary = (folder / "summary.json").read_text()
    kill_last_run(kdeclare, 2)
    journal = folder / "journal.jsonl"
    document = json.loads(summary)
    document["files"][2:] = [journal.stat().st_size, journal.stat().st_mtime_ns]
    (folder / "summary.json").write_text(json.dumps(document))
    assert "Unfinished run was recovered" in kdeclare("apply", "--yes").err
    assert b"recovered" in journal.read_bytes()
