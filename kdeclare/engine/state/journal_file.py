"""A journal in a file: one line per entry, each with a checksum."""

import itertools
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonValue, as_object, parse_json
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.engine.state.checksum import compute_checksum
from kdeclare.engine.state.durable_files import write_all
from kdeclare.engine.state.port import Journal
from kdeclare.engine.state.problems import build_corruption_error, explain_os_errors

_JOURNAL_HINT = "Restore the file from a backup."


def format_journal_line(seq: int, entry: JsonValue) -> bytes:
    """Return one line: ``{"sum": …, "seq": …, "entry": …}``. ``sum`` is a checksum of the rest of the line.

    The line is pure ASCII, so that an entry with any text from a broker can be written.
    """
    body = f'"seq":{seq},"entry":{json.dumps(entry, separators=(",", ":"))}}}'.encode()
    return b'{"sum":"%s",%s\n' % (compute_checksum(body), body)


def parse_journal(data: bytes, location: str) -> tuple[tuple[JsonValue, ...], int]:
    """Return the entries in a journal, and the number of bytes that the entries take.

    Any further bytes are an incomplete last line. A crash can leave only the last line incomplete, because
    each line is on disk before the next one is written. Raises KdeclareError, with the line number, for an
    invalid earlier line.
    """
    *lines, tail = data.split(b"\n")
    entries: list[JsonValue] = []
    valid_length = 0
    for number, text in enumerate(lines, start=1):
        reason = _find_line_error(text, number)
        parsed = [] if reason is not None else _parse_entries(text)
        if parsed:
            entries += parsed
            valid_length += len(text) + 1
        elif reason is None:  # the checksum matches, so no crash left this line behind
            raise build_corruption_error(
                f"{location}, line {number}", "it is not an entry in JSON", _JOURNAL_HINT
            )
        elif number < len(lines) or tail:
            raise build_corruption_error(f"{location}, line {number}", reason, _JOURNAL_HINT)
    return tuple(entries), valid_length


def _parse_entries(text: bytes) -> list[JsonValue]:
    """Return a list with the entry of a line; an empty list if the line is not JSON or has no entry."""
    try:
        return [as_object(parse_json(text))["entry"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def salvage_journal(data: bytes) -> tuple[tuple[JsonValue, ...], bool]:
    """Return the entries of all intact lines, and whether `parse_journal` accepts the whole journal."""
    bodies = (text[26:] for text in data.split(b"\n") if _is_intact(text))
    entries = tuple(entry for body in bodies for entry in _parse_entries(b"{" + body))
    try:
        return entries, bool(parse_journal(data, ""))
    except KdeclareError:
        return entries, False


def _find_line_error(text: bytes, number: int) -> str | None:
    if text[:8] != b'{"sum":"' or text[24:26] != b'",':
        return "it is not a journal line"
    if not _is_intact(text):
        return "its checksum does not match"
    if not text[26:].startswith(b'"seq":%d,' % number):
        return "it is not the next in sequence: lines were removed, added or reordered"
    return None


def _is_intact(text: bytes) -> bool:
    """Whether the checksum of a line matches, which shows that the line is intact."""
    return compute_checksum(text[26:]) == text[8:24]


class FileJournal(Journal):
    """A `Journal` in a file. ``guard`` raises an error if this process no longer holds the lock."""

    def __init__(self, path: Path, run_id: str, guard: Callable[[], None]) -> None:
        """Open an existing journal. Ignore an incomplete last line, which a crash can leave.

        Raises KdeclareError if the journal cannot be opened or an earlier line is invalid.
        """
        self._path = path
        self._run_id = run_id
        self._check_lock = guard
        self._fd: int | None = None
        with explain_os_errors("read", path):
            entries, self._end = parse_journal(path.read_bytes(), str(path))
        self._seq = len(entries)
        with explain_os_errors("write", path):
            self._fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        # The file can contain more than the valid lines: an incomplete line, or an append that failed
        # halfway.
        self._torn = True

    @property
    def run_id(self) -> str:
        """The id of the run that the journal records."""
        return self._run_id

    def append_all(self, entries: Sequence[JsonValue]) -> None:
        """See `Journal.append_all`."""
        if self._fd is None:
            raise ValueError("the journal is closed")
        self._check_lock()
        scrubbed_entries = map(SCRUBBER.scrub_json, entries)
        data = b"".join(map(format_journal_line, itertools.count(self._seq + 1), scrubbed_entries))
        with explain_os_errors("write", self._path):
            if self._torn:
                self._truncate(self._fd)
            self._torn = True
            try:
                write_all(self._fd, data)
                os.fsync(self._fd)
            except BaseException:
                with suppress(OSError):  # the next append tries again
                    self._truncate(self._fd)
                raise
        self._torn = False
        self._seq += len(entries)
        self._end += len(data)

    def _truncate(self, fd: int) -> None:
        os.ftruncate(fd, self._end)
        os.lseek(fd, self._end, os.SEEK_SET)

    def close(self) -> None:
        """See `Journal.close`."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
