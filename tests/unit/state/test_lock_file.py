"""The lock between processes: its holder, the death of its holder, and breaking it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.state import State
from kdeclare.engine.state.local_store import LocalStore

FIRST = State("lineage-1", 1, "cluster-1", {})

HOLD = """
import sys
from pathlib import Path
from kdeclare.engine.state.local_store import LocalStore
with LocalStore(Path(sys.argv[1])).lock("kdeclare apply"):
    print("held", flush=True)
    sys.stdin.readline()
"""

# Every process increments a number in a file; no increment is lost only if the lock excludes others.
COUNT = """
import sys, time
from pathlib import Path
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.engine.state.local_store import LocalStore
folder = Path(sys.argv[1])
store, number = LocalStore(folder / "s"), folder / "number"
done = 0
while done < 20:
    try:
        with store.lock("count"):
            value = int(number.read_text())
            store.read_holder()
            number.write_text(str(value + 1))
            done += 1
    except KdeclareError as error:
        assert error.diagnostics[0].code == "locked", error
        time.sleep(0.001)
"""


@contextmanager
def hold_lock_in_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_lock_held_by_other_process_names_holder(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with hold_lock_in_process(tmp_path) as process:
        holder = store.read_holder()
        assert holder is not None
        assert (holder.pid, holder.what) == (process.pid, "kdeclare apply")
        with pytest.raises(KdeclareError, match=f"pid {process.pid}") as caught, store.lock("mine"):
            pytest.fail("two holders")
        assert caught.value.exit_code is ExitCode.LOCKED
        process.communicate("\n", timeout=60)
        assert store.read_holder() is None


def test_lock_is_free_after_holder_is_killed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with hold_lock_in_process(tmp_path) as process:
        process.kill()
        process.wait(timeout=60)
        assert (tmp_path / "lock").read_text() != ""  # the info that it wrote is still there
        assert store.read_holder() is None
        with store.lock("mine"):
            pass


@pytest.mark.slow
def test_lock_serializes_processes(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("0")
    workers = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path)]) for _ in range(3)]
    try:
        assert [worker.wait(timeout=300) for worker in workers] == [0, 0, 0]
    finally:
        for worker in workers:
            worker.kill()
    assert (tmp_path / "number").read_text() == "60"


def test_writes_after_lost_lock_are_rejected(tmp_path: Path) -> None:
    mine, other = LocalStore(tmp_path), LocalStore(tmp_path)
    with mine.lock("mine"):
        journal = mine.begin_run("r1", "{}")
        mine.write(FIRST)
        holder = other.read_holder()
        assert holder is not None
        other.break_lock(holder)
        with other.lock("other"):
            uses = (
                lambda: journal.append(1),
                lambda: mine.begin_run("r2", "{}"),
                lambda: mine.write(replace(FIRST, serial=2)),
            )
            for use in uses:
                with pytest.raises(KdeclareError) as caught:
                    use()
                assert caught.value.diagnostics[0].code == "lock-lost"
            journal.close()
            other.write(replace(FIRST, serial=2))
            other.open_run("r1").close()
            assert other.entries("r1") == ()
    assert mine.read_holder() is None


def test_release_after_lost_lock_keeps_lock_of_next_holder(tmp_path: Path) -> None:
    mine, other = LocalStore(tmp_path), LocalStore(tmp_path)
    with mine.lock("mine"):
        holder = other.read_holder()
        assert holder is not None
        other.break_lock(holder)
        next_one = other.lock("other")
        next_one.__enter__()
    seen = LocalStore(tmp_path).read_holder()
    assert seen is not None
    assert seen.what == "other"
    next_one.__exit__(None, None, None)


def test_lock_with_unreadable_holder_is_still_held(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with hold_lock_in_process(tmp_path):
        (tmp_path / "lock").write_text("not json")
        holder = store.read_holder()
        assert holder is not None
        with pytest.raises(KdeclareError, match="unknown user"), store.lock("mine"):
            pytest.fail("two holders")
        store.break_lock(holder)
        with store.lock("mine"):
            pass
