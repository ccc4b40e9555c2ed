"""What a sandbox does before any broker starts, and which files it never deletes."""

import socket
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox import SandboxSettings, is_free, kill_broker, reset, start, status, stop
from kdeclare.sandbox.layout import Marker, read_marker, resolve_layout, write_marker
from kdeclare.sandbox.readiness import read_last_lines

MARKER = Marker(brokers=3, racks=3, port=19092, cluster_id="abc", kafka="4.3.1", formatted=True)


def catch_start_error(settings: SandboxSettings) -> KdeclareError:
    """Return the error of a start that must fail before it looks for Java."""
    with pytest.raises(KdeclareError) as failed:
        start(settings, lambda _: None)
    assert len(failed.value.diagnostics) == 1
    assert failed.value.diagnostics[0].hint
    return failed.value


def create_sandbox(folder: Path) -> Path:
    """Create the files of a stopped sandbox."""
    layout = resolve_layout(folder)
    layout.broker(1).data.mkdir(parents=True)
    (layout.broker(1).data / "meta.properties").write_text("node.id=1\n")
    write_marker(layout, MARKER)
    return folder


def test_marker_round_trips(tmp_path: Path) -> None:
    layout = resolve_layout(tmp_path)
    assert read_marker(layout) is None
    write_marker(layout, MARKER)
    assert read_marker(layout) == MARKER


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kdeclare_sandbox": 2}', '{"kdeclare_sandbox": 1}'])
def test_unreadable_marker_is_rejected(tmp_path: Path, text: str) -> None:
    resolve_layout(tmp_path).marker.write_text(text)
    with pytest.raises(KdeclareError) as failed:
        status(tmp_path)
    assert failed.value.diagnostics[0].code == "sandbox-unreadable"


def test_commands_without_sandbox_do_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for act in (status, stop, reset):
        assert not act(tmp_path).exists
        assert not act(tmp_path / "absent").exists
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_status_of_stopped_sandbox_has_addresses(tmp_path: Path) -> None:
    now = status(create_sandbox(tmp_path))
    assert now.exists
    assert not now.running
    assert not now.ready
    assert now.bootstrap == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"
    assert [b.rack for b in now.brokers] == ["rack-a", "rack-b", "rack-c"]


def test_reset_deletes_sandbox_folder(tmp_path: Path) -> None:
    folder = create_sandbox(tmp_path / "s")
    assert not reset(folder).exists
    assert not folder.exists()


def test_reset_keeps_other_files(tmp_path: Path) -> None:
    folder = create_sandbox(tmp_path / "s")
    (folder / "notes.txt").write_text("mine")
    reset(folder)
    assert [p.name for p in folder.iterdir()] == ["notes.txt"]


def test_start_rejects_folder_with_other_content(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt" in str(catch_start_error(SandboxSettings(tmp_path)))
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_start_rejects_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert catch_start_error(SandboxSettings(tmp_path / "file")).diagnostics[0].code == "sandbox-folder"


def test_start_rejects_different_settings(tmp_path: Path) -> None:
    failure = catch_start_error(SandboxSettings(create_sandbox(tmp_path), brokers=1, racks=1))
    assert failure.diagnostics[0].code == "sandbox-differs"
    assert "reset" in failure.diagnostics[0].hint


def test_start_names_taken_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        failure = catch_start_error(SandboxSettings(tmp_path / "s", 1, 1, port))
    assert failure.diagnostics[0].code == "port-taken"
    assert str(port) in failure.diagnostics[0].detail
    assert is_free(port)


def test_kill_broker_rejects_missing_broker(tmp_path: Path) -> None:
    create_sandbox(tmp_path)
    for folder, broker_id in ((tmp_path, 9), (tmp_path / "absent", 1)):
        with pytest.raises(KdeclareError) as failed:
            kill_broker(folder, broker_id)
        assert failed.value.diagnostics[0].code == "sandbox-missing"


def test_read_last_lines_skips_stack_traces(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert read_last_lines(log, 2) == []
    log.write_text("one\ntwo\n\tat a.b(C.java:1)\nthree\n")
    assert read_last_lines(log, 2) == ["two", "three"]


def test_rejected_start_leaves_no_folder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        catch_start_error(SandboxSettings(tmp_path / "deep" / "s", 1, 1, port))
    assert not (tmp_path / "deep").exists()
    (tmp_path / "mine").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        catch_start_error(SandboxSettings(tmp_path / "mine", 1, 1, server.getsockname()[1]))
    assert (tmp_path / "mine").is_dir(), "what was there before stays"


def test_start_names_taken_controller_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        failure = catch_start_error(SandboxSettings(tmp_path / "s", 1, 1, port - 100))
    assert f"{port} (controller 1)" in failure.diagnostics[0].detail
