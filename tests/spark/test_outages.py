"""Spark treats the objects of a part of a system that was not read like the local engine."""

from itertools import cycle, repeat
from pathlib import Path

import pytest

from tests.unit.fleet.outages import Outages, expect_nights

pytestmark = pytest.mark.spark


@pytest.mark.thorough
def test_objects_of_unread_endpoints_are_unknown(
    in_shared_spark: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect_nights(Outages(tmp_path), repeat("spark"), capsys)


def test_engines_continue_audits_with_unread_endpoints(
    in_shared_spark: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect_nights(Outages(tmp_path), cycle(("spark", "local")), capsys)
