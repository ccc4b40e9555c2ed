"""A short soak: random commands, kills, faults and changes of another client, on a cluster of its own."""

import os
from pathlib import Path

import pytest

from tests.soak.soak import run_soak
from tests.soak.stores import STORES

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

SECONDS = 60.0
SEED = int(os.environ.get("KDECLARE_TEST_SEED", "0")) or 8
"""The same choices in each run, so that a failure belongs to a change. `make soak` makes other choices."""


def test_nothing_is_lost_in_short_soak(tmp_path: Path) -> None:
    """KDECLARE_TEST_SEED repeats the choices; when something happens is up to the machine."""
    store = STORES[SEED % len(STORES)]
    print(f"KDECLARE_TEST_SEED={SEED}, store {store}")
    report = run_soak(tmp_path, SECONDS, SEED, store)
    print(report)
    assert not report.violations, f"KDECLARE_TEST_SEED={SEED}\n{report}"
    assert report.steps > 0
