"""Several clusters in one folder: their settings, and what is rejected before any broker starts."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox import (
    GroupSettings,
    SandboxSettings,
    group_settings,
    group_status,
    reset_group,
    start,
    start_group,
    stop_group,
)
from kdeclare.sandbox.broker_properties import broker_properties
from kdeclare.sandbox.group import _write_group_marker
from kdeclare.sandbox.layout import Marker, resolve_layout, write_marker
from kdeclare.sandbox.settings import MAX_BROKERS, MAX_CLUSTERS, validate_group

MADE = {"kdeclare_sandboxes": 1, "clusters": 2, "brokers": 1, "racks": 1, "port": 19092}


def create_group(folder: Path) -> GroupSettings:
    """Create the files of two stopped clusters."""
    folder.mkdir(exist_ok=True)
    resolve_layout(folder).group_marker.write_text(json.dumps(MADE))
    settings = GroupSettings(folder, 2, 1, 1)
    for number, member in enumerate(settings.members, start=1):
        layout = resolve_layout(member.folder)
        layout.broker(1).data.mkdir(parents=True)
        write_marker(layout, Marker(1, 1, member.port, f"id-{number}", "4.3.1", formatted=True))
    return settings


def catch_start_error(settings: GroupSettings) -> KdeclareError:
    """Return the error of a start that must fail before it looks for Java."""
    with pytest.raises(KdeclareError) as failed:
        start_group(settings, lambda _: None)
    assert failed.value.diagnostics[0].hint
    return failed.value


def test_each_cluster_of_group_has_own_folder() -> None:
    first, second = GroupSettings(Path("/s"), 2, 1, 1, 20000).members
    assert (first.folder, first.bootstrap) == (Path("/s/cluster-1"), "127.0.0.1:20000")
    assert (second.folder, second.bootstrap) == (Path("/s/cluster-2"), "127.0.0.1:20200")


def test_group_is_read_as_it_was_written(tmp_path: Path) -> None:
    settings = GroupSettings(tmp_path, 2, 1, 1, 20000, connect_workers=1, secure=True)
    _write_group_marker(resolve_layout(tmp_path), settings)
    assert group_settings(tmp_path) == settings
    assert {(one.connect_workers, one.secure) for one in settings.members} == {(1, True)}


@given(clusters=st.integers(1, MAX_CLUSTERS), brokers=st.integers(1, MAX_BROKERS))
def test_ports_of_group_are_distinct(clusters: int, brokers: int) -> None:
    settings = GroupSettings(Path("/s"), clusters, brokers, 1)
    validate_group(settings)
    ports = [port for one in settings.members for i in one.broker_ids for port in one.ports(i)]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (GroupSettings(Path("/s"), 0), "1 to 20 clusters, not 0"),
        (GroupSettings(Path("/s"), 21), "1 to 20 clusters, not 21"),
        (GroupSettings(Path("/s"), 2, 2, 3), "not 3"),
        (GroupSettings(Path("/s"), 3, port=65100), "needs ports 65500 to 65602"),
    ],
)
def test_start_group_rejects_impossible_settings(settings: GroupSettings, message: str) -> None:
    assert message in str(catch_start_error(settings))


def test_internal_topics_of_one_broker_have_one_replica() -> None:
    made = broker_properties(GroupSettings(Path("/s"), 3, 1, 1).members[2], 1, Path("/s/data"))
    factors = {key: value for key, value in made.items() if key.endswith(("replication.factor", "min.isr"))}
    assert len(factors) == 5
    assert set(factors.values()) == {"1"}


def test_status_of_stopped_group_has_addresses(tmp_path: Path) -> None:
    settings = create_group(tmp_path)
    assert group_settings(tmp_path) == settings
    for now in (group_status(settings), stop_group(settings)):
        assert [one.bootstrap for one in now.clusters] == ["127.0.0.1:19092", "127.0.0.1:19292"]
        assert not now.running
        assert not now.ready


def test_status_of_group_with_missing_cluster(tmp_path: Path) -> None:
    settings = create_group(tmp_path)
    resolve_layout(settings.members[0].folder).marker.unlink()
    assert [one.exists for one in group_status(settings).clusters] == [False, True]


def test_reset_group_deletes_only_its_clusters(tmp_path: Path) -> None:
    settings = create_group(tmp_path / "s")
    reset_group(settings)
    assert not (tmp_path / "s").exists()
    settings = create_group(tmp_path / "s")
    (tmp_path / "s" / "notes.txt").write_text("mine")
    reset_group(settings)
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["notes.txt"]


def test_start_group_rejects_different_number_of_clusters(tmp_path: Path) -> None:
    failure = catch_start_error(replace(create_group(tmp_path), clusters=3))
    assert failure.diagnostics[0].code == "sandbox-differs"
    assert "2 clusters of 1 broker(s)" in str(failure)
    assert "not 3 clusters" in str(failure)


def test_start_group_rejects_folder_of_single_sandbox(tmp_path: Path) -> None:
    write_marker(resolve_layout(tmp_path), Marker(1, 1, 19092, "id", "4.3.1", formatted=True))
    failure = catch_start_error(GroupSettings(tmp_path, 2, 1, 1))
    assert failure.diagnostics[0].code == "sandbox-differs"
    assert not resolve_layout(tmp_path).group_marker.exists()


def test_start_rejects_folder_of_group(tmp_path: Path) -> None:
    create_group(tmp_path)
    with pytest.raises(KdeclareError) as failed:
        start(SandboxSettings(tmp_path), lambda _: None)
    assert failed.value.diagnostics[0].code == "sandbox-folder"


def test_start_group_rejects_folder_with_other_content(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt" in str(catch_start_error(GroupSettings(tmp_path, 2)))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kdeclare_sandboxes": 2}', '{"kdeclare_sandboxes": 1}'])
def test_unreadable_group_marker_is_rejected(tmp_path: Path, text: str) -> None:
    resolve_layout(tmp_path).group_marker.write_text(text)
    with pytest.raises(KdeclareError) as failed:
        group_settings(tmp_path)
    assert failed.value.diagnostics[0].code == "sandbox-unreadable"


def test_start_group_names_taken_port_before_it_creates_anything(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        failure = catch_start_error(GroupSettings(tmp_path / "s", 2, 1, 1, taken - 200))
    assert failure.diagnostics[0].code == "port-taken"
    assert str(taken) in str(failure)
    assert not any((tmp_path / "s" / name).exists() for name in ("cluster-1/brokers", "cluster-2/brokers"))
