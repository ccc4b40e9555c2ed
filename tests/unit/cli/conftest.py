"""The command line as a fixture."""

from pathlib import Path

import pytest

from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def kdeclare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """A command line in an empty project called ``shop``."""
    return CommandLine(tmp_path, capsys, monkeypatch)
