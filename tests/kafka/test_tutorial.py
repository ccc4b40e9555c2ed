"""Run docs/tutorial.md and compare the output."""

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import free_port
from tests.startup_cache import path_with
from tests.unit.docs.written import ROOT, list_code_blocks

TUTORIAL = ROOT / "docs" / "tutorial.md"
PORT = "19092"
ANYTHING = "…"


@dataclass(frozen=True)
class Typed:
    """A command, and the lines of its expected output."""

    command: str
    promised: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """A file of the tutorial."""

    name: str
    text: str


def read_steps(port: str) -> Iterator[Typed | Written]:
    """Yield the steps of the tutorial, with another port."""
    for language, text in list_code_blocks(TUTORIAL):
        told = text.replace(PORT, port)
        if language == "yaml":
            name = told.partition("\n")[0].removeprefix("# ")
            yield Written(name, told)
        elif language == "console":
            for part in told.removeprefix("$ ").split("\n$ "):
                command, *promised = part.rstrip("\n").split("\n")
                started = command.replace("sandbox start", f"sandbox start --port {port}")
                yield Typed(started, tuple(promised))


class Shell:
    """One shell for all commands, so that ``$?`` works."""

    def __init__(self, folder: Path) -> None:
        own = {k: v for k, v in os.environ.items() if not k.startswith("KDECLARE_")}
        self._end = uuid.uuid4().hex
        self._process = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=own | {"PATH": path_with(Path(sys.executable).parent), "COLUMNS": "110", "NO_COLOR": "1"},
            cwd=folder,
            text=True,
        )

    def type(self, command: str) -> list[str]:
        """Run a command and return its output on both streams."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        ended = f"code=$?; echo; echo {self._end}; (exit $code)"
        self._process.stdin.write(f"{command} </dev/null\n{ended}\n")
        self._process.stdin.flush()
        said = []
        while (line := self._process.stdout.readline()) != f"{self._end}\n":
            assert line, f"the shell has ended: {command}"
            said.append(line)
        return "".join(said).rstrip("\n").splitlines()

    def close(self) -> None:
        """End the shell."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def find_broken_promise(promised: Sequence[str], said: Sequence[str]) -> str | None:
    """Return the first expected line that is missing; a line with only ``…`` matches any number of lines."""
    rest = list(said)
    free = False
    for line in promised:
        if line == ANYTHING:
            free = True
            continue
        like = re.compile(".*".join(map(re.escape, line.split(ANYTHING))))
        place = next((n for n, one in enumerate(rest) if like.fullmatch(one)), None)
        if place is None or (place > 0 and not free):
            return line
        rest, free = rest[place + 1 :], False
    return None if free or not rest else f"nothing more than this, and not: {rest[0]}"


@pytest.mark.kafka
def test_tutorial_commands_have_documented_output(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        for step in read_steps(str(free_port(3))):
            if isinstance(step, Written):
                file = tmp_path / step.name
                file.parent.mkdir(exist_ok=True)
                file.write_text(step.text)
                continue
            said = shell.type(step.command)
            broken = find_broken_promise(step.promised, said)
            assert broken is None, "\n".join([f"$ {step.command}", f"promised: {broken}", "said:", *said])
    finally:
        shell.type("kdeclare sandbox reset --yes")
        shell.close()


def test_tutorial_steps_are_all_run() -> None:
    """Every block with commands is run, and the first files are the expected ones."""
    found = list(read_steps(PORT))
    commands = [step.command for step in found if isinstance(step, Typed)]
    assert len(commands) == TUTORIAL.read_text().count("\n$ ")
    assert commands[0] == f"kdeclare sandbox start --port {PORT}"
    assert "sandbox reset" in commands[-1]
    assert [step.name for step in found if isinstance(step, Written)][:2] == [
        "kdeclare.yaml",
        "manifests/orders.yaml",
    ]
    assert {language for language, _ in list_code_blocks(TUTORIAL)} == {"sh", "yaml", "console"}


@pytest.mark.parametrize(
    ("promised", "said", "broken"),
    [
        (["a"], ["a"], None),
        (["a", "…"], ["a", "b", "c"], None),
        (["…", "c"], ["a", "b", "c"], None),
        (["…", "b", "…"], ["a", "b", "c"], None),
        (["Run …", "x … y"], ["Run 7", "x 5 y"], None),
        (["b"], ["a", "b"], "b"),
        (["a", "c"], ["a", "b", "c"], "c"),
        (["…", "c", "a"], ["a", "b", "c"], "a"),
        (["a"], ["a", "b"], "nothing more than this, and not: b"),
        ([], ["error"], "nothing more than this, and not: error"),
        (["x … y"], ["x 5 z"], "x … y"),
    ],
)
def test_broken_promise_finds_missing_lines(promised: list[str], said: list[str], broken: str | None) -> None:
    assert find_broken_promise(promised, said) == broken
