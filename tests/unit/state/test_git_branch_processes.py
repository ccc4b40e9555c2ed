"""Processes that write to the same branch, and processes that are killed while they write."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.store import SharedStore
from tests.git_remotes import BRANCH, SETUP_ENVIRON, create_remote, open_git_objects, run_git, write_script
from tests.state_stores import FIRST

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

# Ten times, adds a number to a list that all processes share, and creates an object of its own. Before the
# first number, it waits for a line after it has read the list, so that all processes write to one version.
WRITER = """
import json, sys
from kdeclare.core.storage.conditional_objects import ObjectConflict
from tests.git_remotes import open_git_objects

url, name = sys.argv[1:]
objects = open_git_objects(url)
conflicts = 0
for number in range(10):
    objects.create(f"plans/{name}-{number}.json", b"{}")
    while True:
        stored = objects.get("state.json")
        if number == conflicts == 0:
            print("ready", flush=True)
            sys.stdin.readline()
        entries = [] if stored is None else json.loads(stored.data)
        data = json.dumps([*entries, f"{name}-{number}"]).encode()
        try:
            objects.create("state.json", data) if stored is None else objects.replace(
                "state.json", data, stored.version
            )
        except ObjectConflict:
            conflicts += 1
            continue
        break
objects.close()
print(conflicts)
"""

# Holds the lease, writes a state, and is killed in the middle of the write of the next one.
VICTIM = """
import sys
from dataclasses import replace
from pathlib import Path
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.store import SharedStore
from tests.git_remotes import open_git_objects
from tests.state_stores import FIRST

url, trap = sys.argv[1:]
store = SharedStore(lambda: open_git_objects(url), LeaseTiming(3.0, starts_renewals=False))
with store.lock("kdeclare apply"):
    store.write(FIRST)
    Path(trap).touch()
    store.write(replace(FIRST, serial=2))
"""

# Ends as the command does, while objects that hold the local repository still exist.
READER = """
import sys
from kdeclare.cli import main
from tests.git_remotes import open_git_objects

objects = open_git_objects(sys.argv[1])
assert objects.list_keys("") == ("state.json",)
main.main = lambda arguments: 0
main.run()
"""


def start(
    program: str, *arguments: str, environ: Mapping[str, str] = SETUP_ENVIRON
) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, text=True)


@pytest.mark.thorough
def test_writes_of_concurrent_processes_are_all_kept(tmp_path: Path) -> None:
    remote = create_remote(tmp_path / "state.git")
    url = f"git+file://{remote}"
    writers = [start(WRITER, url, name) for name in "abcd"]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    conflicts = [int(writer.communicate(timeout=600)[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert sum(conflicts) >= 3, "only one process can have created the list"
    objects = open_git_objects(url)
    stored = objects.get("state.json")
    assert stored is not None
    expected = [f"{name}-{number}" for name in "abcd" for number in range(10)]
    assert sorted(json.loads(stored.data)) == expected
    assert objects.list_keys("plans/") == tuple(f"plans/{name}.json" for name in expected)
    objects.close()
    assert run_git(remote, "rev-list", "--count", BRANCH) == "80\n", "one commit for each write"


def kill_during_push(tmp_path: Path, *, is_pushed: bool) -> SharedStore:
    """Kill a process before or after the push of a state's second version. Return a store for the rest."""
    remote = create_remote(tmp_path / "state.git")
    url = f"git+file://{remote}"
    trap = tmp_path / "trap"
    push = '"$git" "$@" > /dev/null' if is_pushed else ":"
    write_script(
        tmp_path / "bin" / "git",
        f"git={shutil.which('git')}",
        f'if [ "$1" = push ] && [ -e {trap} ]; then',
        # the second push after the trap is set: the first one writes the backup of the state
        f"  if [ -e {trap}-again ]; then {push}; kill -9 $PPID; sleep 0.2; exit 1; fi",
        f"  touch {trap}-again",
        "fi",
        'exec "$git" "$@"',
    )
    environ = {**SETUP_ENVIRON, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{SETUP_ENVIRON['PATH']}"}
    victim = start(VICTIM, url, str(trap), environ={**environ, "TMPDIR": str(tmp_path)})
    victim.communicate(timeout=300)
    assert victim.returncode == -signal.SIGKILL
    return SharedStore(lambda: open_git_objects(url), LeaseTiming(3.0))


def test_state_of_process_killed_before_push_is_the_earlier_one(tmp_path: Path) -> None:
    store = kill_during_push(tmp_path, is_pushed=False)
    state = store.read()
    assert state == FIRST
    check_takeover(store, 1)


def test_state_of_process_killed_after_push_is_kept(tmp_path: Path) -> None:
    store = kill_during_push(tmp_path, is_pushed=True)
    check_takeover(store, 2)


def check_takeover(store: SharedStore, serial: int) -> None:
    """Check that the next process waits for the lease of the dead one, and then writes the next state."""
    state = store.read()
    assert state is not None
    assert state.serial == serial
    holder = store.read_holder()
    assert holder is not None
    store.break_lock(holder)
    with store.lock("kdeclare apply"):
        assert store.is_takeover
        store.write(replace(state, serial=serial + 1))
    final = store.read()
    assert final is not None
    assert final.serial == serial + 1
    store.close()


def test_command_leaves_no_temporary_files(tmp_path: Path) -> None:
    remote, temporary = create_remote(tmp_path / "state.git"), tmp_path / "temporary"
    url = f"git+file://{remote}"
    objects = open_git_objects(url)
    objects.create("state.json", b"{}")
    objects.close()
    temporary.mkdir()
    reader = start(READER, url, environ={**SETUP_ENVIRON, "TMPDIR": str(temporary)})
    reader.communicate(timeout=300)
    assert reader.returncode == 0
    assert list(temporary.iterdir()) == []
