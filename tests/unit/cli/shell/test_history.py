"""Which lines the history keeps, and where."""

from pathlib import Path

import pytest

from kdeclare.cli.interactive.session import LineHistory, get_history_path

SECRET = "config alter --broker 1 --add-config ssl.key.password=x"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history"


def later(file: Path) -> list[str]:
    """Return the lines that the next session finds, latest first."""
    return list(LineHistory(file).load_history_strings())


def test_lines_are_there_the_next_time(file: Path) -> None:
    history = LineHistory(file)
    for line in ("plan", "apply \\\n--yes", "status"):
        history.append_string(line)
    assert later(file) == ["status", "apply \\\n--yes", "plan"]


def test_nobody_else_can_read_them(file: Path) -> None:
    file.parent.mkdir()
    file.touch(0o644)
    LineHistory(file).append_string("plan")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("line", [" plan", "\tplan", "", "   "])
def test_what_is_not_kept_at_all(file: Path, line: str) -> None:
    history = LineHistory(file)
    history.append_string(line)
    assert history.get_strings() == []
    assert later(file) == []


@pytest.mark.parametrize("line", [SECRET, f"{SECRET} 'and more", SECRET.replace("=x", "='x y")])
def test_a_secret_is_not_written(file: Path, line: str) -> None:
    LineHistory(file).append_string(line)
    assert later(file) == []
    assert "=x" not in file.read_text()


def test_a_reference_to_a_secret_is_none(file: Path) -> None:
    line = SECRET.replace("=x", "=${env.PASSWORD}")
    LineHistory(file).append_string(line)
    assert later(file) == [line]


def test_where_no_file_can_be_made_lines_are_kept_for_this_use(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    history = LineHistory(tmp_path / "state" / "history")
    assert history.write_error is not None
    history.append_string("plan")
    assert history.get_strings() == ["plan"]


def test_a_file_that_cannot_be_written_any_more(file: Path) -> None:
    history = LineHistory(file)
    file.unlink()
    file.mkdir()
    history.append_string("plan")
    assert isinstance(history.write_error, IsADirectoryError)
    assert later(file) == []


def test_it_is_among_the_state_of_the_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert get_history_path() == tmp_path / "kdeclare" / "history"
