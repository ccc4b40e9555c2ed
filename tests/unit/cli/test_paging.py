"""When output goes through a pager, and through which one."""

import os
import signal
import sys
from pathlib import Path

import pytest

from kdeclare.cli.pager import Pager, find_pager, fits
from kdeclare.core.diagnostics import KdeclareError
from tests.unit.cli.command_line import Terminal


@pytest.mark.parametrize(
    ("text", "columns", "lines", "expected"),
    [
        ("", 80, 2, True),
        ("a\nb\n", 80, 3, True),
        ("a\nb\n", 80, 2, False),
        ("abcdef\n", 3, 3, True),
        ("abcdef\n", 3, 2, False),
        ("\x1b[1mabc\x1b[0m\n", 3, 2, True),
        ("漢字\n", 3, 2, False),
    ],
)
def test_fits_reserves_line_for_prompt(text: str, columns: int, lines: int, expected: bool) -> None:
    assert fits(text, columns, lines) is expected


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({"PAGER": "more"}, ("more",)),
        ({"PAGER": "more", "KDECLARE_PAGER": "less -S"}, ("less", "-S")),
        ({"PAGER": "more", "KDECLARE_PAGER": ""}, None),
        ({"PAGER": ""}, None),
        ({"PAGER": "more", "TERM": "dumb"}, None),
        ({"PATH": "/nowhere"}, None),
    ],
)
def test_find_pager_follows_environment(environ: dict[str, str], command: tuple[str, ...] | None) -> None:
    found = find_pager({"TERM": "xterm"} | environ)
    assert (found and found.command) == command


def test_find_pager_rejects_unreadable_command() -> None:
    with pytest.raises(KdeclareError, match="No closing quotation"):
        find_pager({"TERM": "xterm", "PAGER": "less '"})


def run_pager(text: str, *command: str) -> bool:
    """Return whether a pager shows the text on a small screen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", Terminal())
        patch.setenv("COLUMNS", "80")
        patch.setenv("LINES", "3")
        patch.delenv("LESS", raising=False)
        return Pager(command).shows(text)


def test_pager_shows_long_text_only(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    pager = ("sh", "-c", f"cat > {seen}; env | grep ^LESS= >> {seen}")
    assert not run_pager("a\nb\n", *pager)
    assert not seen.exists()
    assert run_pager("a\nb\nc\n", *pager)
    assert seen.read_text() == "a\nb\nc\nLESS=FRX\n"


def test_ctrl_c_is_left_to_pager() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert run_pager("a\n" * 9, "sh", "-c", f"kill -INT {os.getpid()}")
    assert signal.getsignal(signal.SIGINT) is before


def test_pager_closed_early_is_no_error() -> None:
    assert run_pager("a long line of text\n" * 100_000, "true")


def test_missing_pager_is_reported() -> None:
    with pytest.raises(KdeclareError, match="no-such-pager: No such file") as raised:
        run_pager("a\n" * 9, "no-such-pager")
    assert "KDECLARE_PAGER" in raised.value.diagnostics[0].hint


def test_pager_is_skipped_without_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert not Pager(("false",)).shows("a\n" * 1000)
