"""Which lines the history keeps, and where."""

from pathlib import Path

import pytest

from kdeclare.cli.interactive.session import LineHistory, get_history_path

SECRET = "config alter --broker 1 --add-config ssl.key.password=x"


@pytest.fixture
def history_file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history"


def load_next_session(file: Path) -> list[str]:
    """Return the lines that the next session finds, latest first."""
    return list(LineHistory(file).load_history_strings())


def test_history_keeps_lines_for_next_session(history_file: Path) -> None:
    history = LineHistory(history_file)
    for line in ("plan", "apply \\\n--yes", "status"):
        history.append_string(line)
    assert load_next_session(history_file) == ["status", "apply \\\n--yes", "plan"]


def test_history_file_is_readable_by_owner_only(history_file: Path) -> None:
    history_file.parent.mkdir()
    history_file.touch(0o644)
    LineHistory(history_file).append_string("plan")
    assert history_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("line", [" plan", "\tplan", "", "   "])
def test_history_drops_blank_and_hidden_lines(history_file: Path, line: str) -> None:
    history = LineHistory(history_file)
    history.append_string(line)
    assert history.get_strings() == []
    assert load_next_session(history_file) == []


@pytest.mark.parametrize("line", [SECRET, f"{SECRET} 'and more", SECRET.replace("=x", "='x y")])
def test_history_does_not_write_secrets(history_file: Path, line: str) -> None:
    LineHistory(history_file).append_string(line)
    assert load_next_session(history_file) == []
    assert "=x" not in history_file.read_text()


def test_history_writes_references_to_secrets(history_file: Path) -> None:
    line = SECRET.replace("=x", "=${env.PASSWORD}")
    LineHistory(history_file).append_string(line)
    assert load_next_session(history_file) == [line]


def test_history_without_writable_file_stays_in_memory(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    history = LineHistory(tmp_path / "state" / "history")
    assert history.write_error is not None
    history.append_string("plan")
    assert history.get_strings() == ["plan"]


def test_history_reports_later_write_error(history_file: Path) -> None:
    history = LineHistory(history_file)
    history_file.unlink()
    history_file.mkdir()
    history.append_string("plan")
    assert isinstance(history.write_error, IsADirectoryError)
    assert load_next_session(history_file) == []


def test_history_path_is_in_xdg_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert get_history_path() == tmp_path / "kdeclare" / "history"
