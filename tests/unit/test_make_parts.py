"""The parts of `make test` run each test with real brokers once."""

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("test-brokers", "test-connect", "test-many", "test-apart")


@cache
def list_pytest_arguments() -> list[list[str]]:
    """Return the arguments of pytest of each part, after the marker."""
    done = subprocess.run(
        ["make", "--dry-run", "--silent", *PARTS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stdout.splitlines() if "-m pytest -m kafka" in line]
    return [shlex.split(line.partition("-m kafka")[2]) for line in lines]


def is_below(test: str, place: str) -> bool:
    """Whether a file or one of its tests belongs to a file, folder or test that a command line names."""
    return re.match(re.escape(place.rstrip("/")) + r"(/|::|$)", test) is not None


def count_parts_of(test: str) -> int:
    """Return how many parts run a test."""
    count = 0
    for arguments in list_pytest_arguments():
        left_out = [a.removeprefix("--deselect=") for a in arguments if a.startswith("--deselect=")]
        places = [a for a in arguments if not a.startswith("--")]
        # pytest compares the beginnings of names, so a folder "connect" also leaves out "connectors"
        count += any(is_below(test, place) for place in places) and not test.startswith(tuple(left_out))
    return count


def test_each_file_with_brokers_is_in_one_part() -> None:
    examples = ROOT / "tests" / "kafka" / "test_examples.py"
    text = examples.read_text()
    folders = sorted(path.parent.name for path in (ROOT / "examples").glob("*/run.sh"))
    name = "test_example_succeeds_and_cleans_up"
    assert f"def {name}" in text
    tests = [f"{examples.relative_to(ROOT)}::{name}[{folder}]" for folder in folders]
    for folder in ("kafka", "contract", "conformance"):
        files = (ROOT / "tests" / folder).rglob("test_*.py")
        tests += [f"{file.relative_to(ROOT)}::" for file in files if file != examples]
    assert len(tests) > 50
    assert {test: count for test in tests if (count := count_parts_of(test)) != 1} == {}
