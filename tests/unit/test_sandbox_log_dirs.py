"""A sandbox whose brokers have several log directories, without starting it."""

from dataclasses import replace
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox.broker_properties import broker_properties
from kdeclare.sandbox.layout import BrokerFiles, Marker, read_marker, resolve_layout, write_marker
from kdeclare.sandbox.settings import SandboxSettings, validate_settings

MARKER = Marker(brokers=3, racks=3, port=19092, cluster_id="abc", kafka="4.3.1", formatted=True)


def test_first_log_dir_is_data_folder() -> None:
    files = BrokerFiles(Path("/s/1"))
    assert files.log_dirs(1) == (files.data,)
    assert files.log_dirs(3) == (files.data, Path("/s/1/data-2"), Path("/s/1/data-3"))


def test_broker_properties_list_all_log_dirs() -> None:
    made = broker_properties(SandboxSettings(Path("/s"), log_dirs=2), 1, Path("/s/a"), Path("/s/b"))
    assert made["log.dirs"] == "/s/a,/s/b"


@pytest.mark.parametrize("count", [0, 11])
def test_number_of_log_dirs_is_limited(count: int) -> None:
    with pytest.raises(KdeclareError, match=f"1 to 10 log directories, not {count}"):
        validate_settings(SandboxSettings(Path("/s"), log_dirs=count))


def test_marker_stores_number_of_log_dirs(tmp_path: Path) -> None:
    layout = resolve_layout(tmp_path)
    write_marker(layout, replace(MARKER, log_dirs=2))
    found = read_marker(layout)
    assert found is not None
    assert found.settings(tmp_path).log_dirs == 2


def test_old_marker_means_one_log_dir(tmp_path: Path) -> None:
    layout = resolve_layout(tmp_path)
    write_marker(layout, MARKER)
    text = layout.marker.read_text().replace(',\n  "log_dirs": 1', "")
    assert "log_dirs" not in text
    layout.marker.write_text(text)
    assert read_marker(layout) == MARKER
