"""Canary secrets: values that tests plant where secrets are, and then search for everywhere else."""

import base64
import io
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow.parquet as pq

_PUNCTUATION = "/+\"\\&'%<é "
"""Characters that JSON, URLs, HTML, shells or Python escape: an escaped value differs from the value."""

_RECORDED = ("git", "ssh-keygen", "java")
"""Programs that kdeclare starts. Wrappers record their command lines and environments."""

_WRAPPER = """#!/bin/sh
record=$(mktemp {folder}/{name}-XXXXXX)
for word in "$@"; do printf '%s\\0' "$word"; done > "$record.words"
env -0 > "$record.environ"
exec {program} "$@"
"""


@dataclass(frozen=True)
class Canary:
    """A secret in one place.

    It consists of two random parts with punctuation between them. A search for either part finds the value in
    every escaped form, and values that were cut off or divided.
    """

    place: str
    value: str
    parts: tuple[str, str]

    @property
    def forms(self) -> tuple[bytes, ...]:
        """The texts that reveal a part of the value: plain, reversed, as hex, and in base64."""
        return tuple(form for part in self.parts for form in _list_forms(part))


def _list_descendants(pid: int) -> Iterator[int]:
    """Yield the ids of all processes that a process has started, directly or indirectly.

    On Linux, this reads a few files. psutil reads files of all processes, fifty times a second,
    which takes more CPU time than many of the commands.
    """
    if not Path(f"/proc/{pid}/task/{pid}/children").exists():
        yield from (child.pid for child in psutil.Process(pid).children(recursive=True))
        return
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            yield child
            yield from _list_descendants(child)


def make_canary(place: str, punctuation: str = _PUNCTUATION) -> Canary:
    """Return a new canary. punctuation: what is between the parts, if the place does not accept all of it."""
    parts = (f"Q{secrets.token_hex(6)}", f"{secrets.token_hex(6)}Q")
    return Canary(place, punctuation.join(parts), parts)


def _list_forms(part: str) -> Iterator[bytes]:
    data = part.encode()
    yield data
    yield data[::-1]
    yield data.hex().encode()
    for before in range(3):  # the position in a longer text determines the characters
        padded = b"\0" * before + data
        encoded = base64.b64encode(padded[: len(padded) // 3 * 3])
        yield encoded[(before * 8 + 5) // 6 :]


def find_canaries(data: bytes, canaries: Iterable[Canary]) -> set[str]:
    """Return the places of the canaries that a text reveals, also in compressed data."""
    texts = [data, *_unpack(data)]
    return {
        canary.place for canary in canaries if any(form in text for text in texts for form in canary.forms)
    }


def _unpack(data: bytes) -> Iterator[bytes]:
    if data[:4] == b"PAR1":
        rows = pq.read_table(io.BytesIO(data), partitioning=None).to_pylist()
        yield json.dumps(rows, default=str, ensure_ascii=False).encode()
    elif data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                yield content
                yield from _unpack(content)
    elif data[:1] == b"\x78":  # a loose object of git
        try:
            yield zlib.decompress(data)
        except zlib.error:
            return


def search_files(
    folders: Iterable[Path], canaries: Sequence[Canary], inputs: Iterable[Path] = ()
) -> list[tuple[str, str]]:
    """Return the place and the path of each canary in files and their names. inputs: files to leave out."""
    excluded = {path.resolve() for path in inputs}
    findings = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.resolve() in excluded:
                continue
            if path.is_file() and not path.is_symlink():
                findings += [(place, str(path)) for place in find_canaries(path.read_bytes(), canaries)]
            findings += [(place, f"the name {path}") for place in find_canaries(os.fsencode(path), canaries)]
    return findings


def search_git_objects(repository: Path, canaries: Sequence[Canary]) -> list[tuple[str, str]]:
    """Return the place and the id of each canary in the objects of a git repository, also in packs."""
    command = ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"tree " in objects, "the repository has no commits"
    return [(place, f"objects of {repository}") for place in find_canaries(objects, canaries)]


@dataclass(frozen=True)
class CanaryRun:
    """A command that ended, with all that it printed."""

    command: str
    code: int
    out: bytes
    err: bytes

    def __str__(self) -> str:
        return f"{self.command}: exit code {self.code}\n{self.out.decode()}\n{self.err.decode()}"


@dataclass
class CanaryRunner:
    """Runs kdeclare with canaries in its environment, and records what other users of the machine can see.

    folder: its files: the home and temporary folder of the commands, their output, and the records.
    environ: the environment variables of the commands.
    """

    folder: Path
    environ: Mapping[str, str]
    runs: list[CanaryRun] = field(default_factory=list)
    _command_lines: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for path in (self.home, self.temporary, self.records, self.output, self.programs):
            path.mkdir(parents=True)
        for name in _RECORDED:
            program = shutil.which(name)
            if program is not None:
                wrapper = self.programs / name
                text = _WRAPPER.format(folder=shlex.quote(str(self.records)), name=name, program=program)
                wrapper.write_text(text)
                wrapper.chmod(0o755)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def records(self) -> Path:
        """Command lines and environments of programs that kdeclare started."""
        return self.folder / "records"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    def run(
        self, folder: Path, *arguments: str, code: int | None = 0, environ: Mapping[str, str] | None = None
    ) -> CanaryRun:
        """Run kdeclare in a folder. code: the expected exit code; None accepts every code.

        environ: further environment variables.
        """
        variables = {
            **self.environ,
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "TMPDIR": str(self.temporary),
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            **(environ or {}),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "kdeclare", *arguments],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(process.pid, ended))
        watcher.start()
        try:
            out, err = process.communicate(timeout=600)
        finally:
            ended.set()
            watcher.join()
            process.kill()
        run = CanaryRun(shlex.join(arguments), process.returncode, out, err)
        self.runs.append(run)
        (self.output / f"{len(self.runs):02}").write_bytes(str(run).encode())
        assert code is None or run.code == code, str(run)
        return run

    def _watch(self, pid: int, ended: threading.Event) -> None:
        while not ended.wait(0.02):
            try:
                for one in (pid, *_list_descendants(pid)):
                    self._command_lines.add("\0".join(psutil.Process(one).cmdline()))
            except (psutil.Error, OSError):
                continue

    def search(
        self, folders: Iterable[Path], canaries: Sequence[Canary], inputs: Iterable[Path]
    ) -> list[tuple[str, str]]:
        """Return the place of each canary that is in a file, in output, or visible in the process list."""
        findings = search_files([self.home, self.temporary, self.output, *folders], canaries, inputs)
        for line in self._command_lines:
            findings += [(place, f"process list: {line}") for place in find_canaries(line.encode(), canaries)]
        return findings + self._search_records(canaries)

    def _search_records(self, canaries: Sequence[Canary]) -> list[tuple[str, str]]:
        findings = []
        for path in self.records.iterdir():
            program, data = path.name.partition("-")[0], path.read_bytes()
            if path.suffix == ".words":
                found = find_canaries(data, canaries)
                findings += [(place, f"command line of {program}: {data!r}") for place in found]
            elif path.suffix == ".environ":
                for entry in data.decode(errors="surrogateescape").split("\0"):
                    name, _, value = entry.partition("=")
                    # The user's own variables are passed on, but not those that only kdeclare needs.
                    if self.environ.get(name) == value and not name.startswith("KDECLARE_"):
                        continue
                    found = find_canaries(os.fsencode(value), canaries)
                    if program == "git" and name.startswith("GIT_CONFIG_VALUE_"):
                        found -= {"KDECLARE_STATE_TOKEN"}  # git's own login
                    findings += [(place, f"environment of {program}: {name}") for place in found]
        return findings
