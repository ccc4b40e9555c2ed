"""A run's journal as a file: one checksummed JSON line an entry, on disk before `append` returns."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kdeclare.core.jsontypes import Json
from kdeclare.core.scrubber import SCRUBBER
from kdeclare.engine.state.durable import write_all
from kdeclare.engine.state.problems import corrupt, explained

_HINT = "Restore the file from a copy."


def line(seq: int, entry: Json) -> bytes:
    """One line: ``{"sum": …, "seq": …, "entry": …}``; the sum is over all that follows it.

    ASCII only: an entry may hold whatever a broker said, and must never fail to be recorded.
    """
    rest = f'"seq":{seq},"entry":{json.dumps(entry, separators=(",", ":"))}}}'.encode()
    return b'{"sum":"%s",%s\n' % (_sum(rest), rest)


def parse(data: bytes, where: str) -> tuple[tuple[Json, ...], int]:
    """The entries in a journal's bytes, and how many bytes they take.

    What comes after those bytes is a torn last line. A crash can tear only that one, since every line
    is on disk before the next: raises KdeclareError, naming the line, for a bad one before it.
    """
    *lines, tail = data.split(b"\n")
    entries: list[Json] = []
    good = 0
    for number, text in enumerate(lines, start=1):
        reason = _fault(text, number)
        if reason is None:
            entries.append(json.loads(text)["entry"])
            good += len(text) + 1
        elif number < len(lines) or tail:
            raise corrupt(f"{where}, line {number}", reason, _HINT)
    return tuple(entries), good


def _fault(text: bytes, number: int) -> str | None:
    if text[:8] != b'{"sum":"' or text[24:26] != b'",':
        return "it is not a journal line"
    rest = text[26:]
    if _sum(rest) != text[8:24]:
        return "its checksum does not match"
    if not rest.startswith(b'"seq":%d,' % number):
        return "it is not the next in sequence: lines were removed, added or reordered"
    return None


def _sum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest()[:16].encode()


class FileJournal:
    """The port `Journal` on one file; ``guard`` raises when the lock is no longer held."""

    def __init__(self, path: Path, run_id: str, guard: Callable[[], None]) -> None:
        """Open an existing journal, without the torn last line that a crash may have left.

        Raises KdeclareError when it cannot be opened or a line other than the last is bad.
        """
        self._path = path
        self._run_id = run_id
        self._guard = guard
        self._fd: int | None = None
        with explained("read", path):
            entries, self._end = parse(path.read_bytes(), str(path))
        self._seq = len(entries)
        with explained("write", path):
            self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        # the file may hold more than what counts: a torn line, or an append that failed half-way
        self._torn = True

    @property
    def run_id(self) -> str:
        """The run that it records."""
        return self._run_id

    def append(self, entry: Json) -> None:
        """See `Journal.append`."""
        if self._fd is None:
            raise ValueError("the journal is closed")
        self._guard()
        data = line(self._seq + 1, SCRUBBER.scrub_json(entry))
        with explained("write", self._path):
            if self._torn:
                self._cut(self._fd)
            self._torn = True
            try:
                write_all(self._fd, data)
                os.fsync(self._fd)
            except BaseException:
                with suppress(OSError):  # the next append tries again
                    self._cut(self._fd)
                raise
        self._torn = False
        self._seq += 1
        self._end += len(data)

    def _cut(self, fd: int) -> None:
        os.ftruncate(fd, self._end)
        os.lseek(fd, self._end, os.SEEK_SET)

    def close(self) -> None:
        """See `Journal.close`."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
