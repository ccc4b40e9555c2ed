"""What a sandbox does before any broker starts, and which files it never deletes."""

import socket
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox import SandboxSettings, is_free, kill_broker, reset, start, status, stop
from kdeclare.sandbox.layout import Marker, read_marker, resolve_layout, write_marker
from kdeclare.sandbox.readiness import read_last_lines

MARKER = Marker(brokers=3, racks=3, port=19092, cluster_id="abc", kafka="4.3.1", formatted=True)


def refused(settings: SandboxSettings) -> KdeclareError:
    """Return the error of a start that must fail before it looks for Java."""
    with pytest.raises(KdeclareError) as failed:
        start(settings, lambda _: None)
    assert len(failed.value.diagnostics) == 1
    assert failed.value.diagnostics[0].hint
    return failed.value


def sandbox_in(folder: Path) -> Path:
    """Create the files of a stopped sandbox."""
    layout = resolve_layout(folder)
    layout.broker(1).data.mkdir(parents=True)
    (layout.broker(1).data / "meta.properties").write_text("node.id=1\n")
    write_marker(layout, MARKER)
    return folder


def test_the_marker_survives_a_round_trip(tmp_path: Path) -> None:
    layout = resolve_layout(tmp_path)
    assert read_marker(layout) is None
    write_marker(layout, MARKER)
    assert read_marker(layout) == MARKER


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kdeclare_sandbox": 2}', '{"kdeclare_sandbox": 1}'])
def test_a_marker_of_somebody_else_is_an_error(tmp_path: Path, text: str) -> None:
    resolve_layout(tmp_path).marker.write_text(text)
    with pytest.raises(KdeclareError) as failed:
        status(tmp_path)
    assert failed.value.diagnostics[0].code == "sandbox-unreadable"


def test_where_there_is_no_sandbox_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for act in (status, stop, reset):
        assert not act(tmp_path).exists
        assert not act(tmp_path / "absent").exists
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_stopped_sandbox_is_shown_with_its_addresses(tmp_path: Path) -> None:
    now = status(sandbox_in(tmp_path))
    assert now.exists
    assert not now.running
    assert not now.ready
    assert now.bootstrap == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"
    assert [b.rack for b in now.brokers] == ["rack-a", "rack-b", "rack-c"]


def test_reset_deletes_the_folder_of_a_sandbox(tmp_path: Path) -> None:
    folder = sandbox_in(tmp_path / "s")
    assert not reset(folder).exists
    assert not folder.exists()


def test_reset_leaves_what_is_not_the_sandboxs(tmp_path: Path) -> None:
    folder = sandbox_in(tmp_path / "s")
    (folder / "notes.txt").write_text("mine")
    reset(folder)
    assert [p.name for p in folder.iterdir()] == ["notes.txt"]


def test_a_folder_with_other_content_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt" in str(refused(SandboxSettings(tmp_path)))
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_as_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert refused(SandboxSettings(tmp_path / "file")).diagnostics[0].code == "sandbox-folder"


def test_other_settings_are_refused(tmp_path: Path) -> None:
    failure = refused(SandboxSettings(sandbox_in(tmp_path), brokers=1, racks=1))
    assert failure.diagnostics[0].code == "sandbox-differs"
    assert "reset" in failure.diagnostics[0].hint


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        failure = refused(SandboxSettings(tmp_path / "s", 1, 1, port))
    assert failure.diagnostics[0].code == "port-taken"
    assert str(port) in failure.diagnostics[0].detail
    assert is_free(port)


def test_a_broker_that_is_not_there_cannot_be_killed(tmp_path: Path) -> None:
    sandbox_in(tmp_path)
    for folder, broker_id in ((tmp_path, 9), (tmp_path / "absent", 1)):
        with pytest.raises(KdeclareError) as failed:
            kill_broker(folder, broker_id)
        assert failed.value.diagnostics[0].code == "sandbox-missing"


def test_the_last_lines_of_a_log_are_its_messages(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert read_last_lines(log, 2) == []
    log.write_text("one\ntwo\n\tat a.b(C.java:1)\nthree\n")
    assert read_last_lines(log, 2) == ["two", "three"]


def test_start_that_is_refused_leaves_no_folder_behind(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refused(SandboxSettings(tmp_path / "deep" / "s", 1, 1, port))
    assert not (tmp_path / "deep").exists()
    (tmp_path / "mine").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        refused(SandboxSettings(tmp_path / "mine", 1, 1, server.getsockname()[1]))
    assert (tmp_path / "mine").is_dir(), "what was there before stays"


def test_taken_port_of_a_controller_is_called_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        failure = refused(SandboxSettings(tmp_path / "s", 1, 1, port - 100))
    assert f"{port} (controller 1)" in failure.diagnostics[0].detail
