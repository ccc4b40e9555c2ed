"""Bars on a terminal: for what takes long, and out of the way when something is said."""

import io
import sys
import time

import pytest

from kdeclare.cli import progress
from kdeclare.cli.progress import Bars


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Where bars are drawn."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return stream


def test_a_bar_shows_what_is_done_right_now(terminal: io.StringIO) -> None:
    bars = Bars(shown=True, colours=False)
    bars("Reading the cluster", 0, 0)
    time.sleep(0.5)
    bars("Applying", 1234, 5000)
    time.sleep(0.3)
    bars("Moving replicas, partitions left", 7, 0)
    time.sleep(0.3)
    bars.hide()
    said = terminal.getvalue()
    assert "Reading the cluster" in said
    assert "1,234/5,000" in said
    assert "Moving replicas, partitions left" in said
    before = len(said)
    time.sleep(0.2)
    assert len(terminal.getvalue()) == before, "hidden is hidden"
    bars("Applying", 1, 2)
    time.sleep(0.3)
    bars.hide()
    assert len(terminal.getvalue()) > before, "and it comes back"


def test_what_is_quick_shows_nothing(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.3)
    bars = Bars(shown=True, colours=False)
    bars("Applying", 1, 2)
    bars.hide()
    time.sleep(0.5)
    assert not terminal.getvalue()


def test_nobody_looks(terminal: io.StringIO) -> None:
    bars = Bars(shown=False, colours=False)
    bars("Applying", 1, 2)
    time.sleep(0.1)
    assert not terminal.getvalue()
