"""Bars on a terminal are shown for slow work, and hidden while text is written."""

import io
import sys
import time

import pytest

from kdeclare.cli import progress
from kdeclare.cli.progress import ProgressBars
from kdeclare.core.plans.run import MoveProgress, PendingPart
from tests.polling import wait_for


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Draw bars on a terminal. Not a fixture, because pytest restores stderr between fixtures and test."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return stream


def wait_for_text(text: str, terminal: io.StringIO) -> None:
    """Wait until the bar is drawn."""
    wait_for(lambda: text in terminal.getvalue(), every=0.02, problem=f"{text!r} is not shown")


def test_progress_bar_shows_current_step(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    bars = ProgressBars(is_shown=True, use_color=False)
    bars("Reading the cluster", 0, 0)
    wait_for_text("Reading the cluster", terminal)
    bars("Applying", 1234, 5000)
    wait_for_text("1,234/5,000", terminal)
    bars("Moving replicas, partitions left", 7, 0)
    wait_for_text("Moving replicas, partitions left", terminal)
    bars.hide()
    before = len(terminal.getvalue())
    time.sleep(0.2)
    assert len(terminal.getvalue()) == before, "hidden is hidden"
    bars("Applying", 17, 40)
    wait_for_text("17/40", terminal)
    bars.hide()


def test_progress_bar_stays_hidden_for_quick_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_S", 1.0)
    bars = ProgressBars(is_shown=True, use_color=False)
    bars("Applying", 1, 2)
    bars.hide()
    time.sleep(1.3)
    assert not terminal.getvalue()


def test_progress_bar_is_not_drawn_without_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    bars = ProgressBars(is_shown=False, use_color=False)
    bars("Applying", 1, 2)
    time.sleep(0.1)
    assert not terminal.getvalue()


def test_progress_log_line_reports_unavailable_broker(capsys: pytest.CaptureFixture[str]) -> None:
    bars = ProgressBars(is_shown=False, use_color=False, log_lines=True)
    waiting = (PendingPart("orders-0", (3,), down=(3,)),)
    bars("Moving replicas", 0, 1, MoveProgress(0, 1, 0, 100, waiting=waiting))
    assert capsys.readouterr().err.startswith("Moving replicas: ")
