"""Objects of a part of a system that was not read are unknown: not fixed, and not gone."""

from itertools import repeat
from pathlib import Path

import pytest

from tests.unit.fleet.outages import Outages, expect_nights


def test_objects_of_unread_endpoints_are_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expect_nights(Outages(tmp_path), repeat("local"), capsys)
