"""A journal after crashes and damage: only the last line may be torn."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonObject
from kdeclare.engine.state.journal_file import format_journal_line, parse_journal, salvage_journal
from kdeclare.engine.state.local_store import LocalStore

ENTRIES: tuple[JsonObject, ...] = ({"begin": ["a"]}, {"end": "a", "note": "é\n"}, {"begin": ["b"]})
DATA = b"".join(format_journal_line(number, entry) for number, entry in enumerate(ENTRIES, start=1))
ENDS = [0, *(i + 1 for i, byte in enumerate(DATA) if byte == 0x0A)]


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(len(DATA) + 1))
def test_parse_journal_truncated_anywhere_returns_whole_entries(tmp_path: Path, cut: int) -> None:
    whole = sum(end <= cut for end in ENDS) - 1
    assert parse_journal(DATA[:cut], "j") == (ENTRIES[:whole], ENDS[whole])


def test_open_run_after_truncation_appends_cleanly(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.begin_run("r1", "{}").close()
    path = tmp_path / "runs" / "r1" / "journal.jsonl"
    for cut in range(ENDS[1], ENDS[2]):
        path.write_bytes(DATA[:cut])
        with store.open_run("r1") as journal:
            assert path.stat().st_size == cut  # reading changes nothing
            journal.append("x")
        assert store.entries("r1") == (ENTRIES[0], "x")


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
@example(ENDS[2] - 1, 1)
@example(ENDS[2] + 4, DATA[ENDS[2] + 4] ^ 0x0A)
@example(ENDS[3] - 2, DATA[ENDS[3] - 2] ^ 0x0A)
def test_parse_journal_detects_flipped_byte(at: int, mask: int) -> None:
    damaged = DATA[:at] + bytes([DATA[at] ^ mask]) + DATA[at + 1 :]
    if at >= ENDS[2] and damaged[at] == 0x0A:  # a line break splits the last line: its first half is not last
        # depending on where it is split, the first half is too short for a line or has a wrong checksum
        with pytest.raises(KdeclareError, match=r"j, line 3: it(s checksum| is not a journal line)"):
            parse_journal(damaged, "j")
    elif at >= ENDS[2] - 1:  # in the last line, or the line break that joins it with the previous line
        whole = 2 if at >= ENDS[2] else 1
        assert parse_journal(damaged, "j") == (ENTRIES[:whole], ENDS[whole])
    else:
        with pytest.raises(KdeclareError, match=r"j, line [12]: ") as caught:
            parse_journal(damaged, "j")
        assert caught.value.diagnostics[0].code == "state-corrupt"


@given(st.binary(max_size=40).filter(lambda tail: b"\n" not in tail))
def test_parse_journal_drops_torn_last_line(tail: bytes) -> None:
    assert parse_journal(DATA + tail, "j") == (ENTRIES, len(DATA))
    assert parse_journal(DATA + tail + b"\n", "j") == (ENTRIES, len(DATA))


def test_parse_journal_rejects_missing_and_repeated_lines(tmp_path: Path) -> None:
    first, second, third = (format_journal_line(n, e) for n, e in enumerate(ENTRIES, start=1))
    for lines, number in (((first, third, third), 2), ((first, first, third), 2), ((second, third), 1)):
        with pytest.raises(KdeclareError, match=f"line {number}: it is not the next in sequence"):
            parse_journal(b"".join(lines), "j")


def test_damaged_journal_error_names_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.begin_run("r1", "{}").close()
    path = tmp_path / "runs" / "r1" / "journal.jsonl"
    path.write_bytes(b"oops\n" + DATA)
    for use in (store.entries, store.open_run):
        with pytest.raises(KdeclareError) as caught:
            use("r1")
        assert f"{path}, line 1" in caught.value.diagnostics[0].detail
    assert path.read_bytes() == b"oops\n" + DATA


def test_every_undamaged_line_is_salvaged() -> None:
    data = b"".join(format_journal_line(number, number) for number in (1, 2, 3))
    assert salvage_journal(data) == ((1, 2, 3), True)
    assert salvage_journal(data[:-5]) == ((1, 2), True)  # a crash leaves an incomplete last line
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        entries, is_complete = salvage_journal(bytes(damaged))
        assert set(entries) <= {1, 2, 3}
        assert len(entries) >= 1
        assert not is_complete or set(entries) >= set(parse_journal(bytes(damaged), "")[0])


@pytest.mark.parametrize("body", [b'"seq":1,"other":2}', b'"seq":1,"entry":}', b'"seq":1,"entry":"\xff"}'])
def test_line_with_matching_checksum_and_no_entry_is_damage(body: bytes) -> None:
    """Found by fuzzing: whoever can write the file can also write a checksum."""
    line = b'{"sum":"%s",%s\n' % (hashlib.sha256(body).hexdigest()[:16].encode(), body)
    with pytest.raises(KdeclareError) as caught:
        parse_journal(line, "journal")
    assert caught.value.diagnostics[0].code == "state-corrupt"
    assert salvage_journal(line) == ((), False)
