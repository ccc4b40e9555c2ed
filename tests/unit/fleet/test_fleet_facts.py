"""The rule for skipping the diff of rows: null never proves anything."""

from typing import Any

import pytest

from kdeclare.fleet.in_process_audit import proves_no_drift

DECLARED: dict[str, Any] = {
    "alone": True,
    "always": False,
    "need": [1, 2],
    "forbid": [9],
    "keys": [5, 6],
}
LIVE: dict[str, Any] = {
    "error": None,
    "has": [1, 2, 3],
    "keys": [5],
}


def test_facts_prove_that_a_row_is_in_order() -> None:
    assert proves_no_drift(DECLARED, LIVE)


@pytest.mark.parametrize(
    "other",
    [
        {"alone": False},
        {"alone": None},
        {"always": True},
        {"always": None},
        {"need": [4]},
        {"need": None},
        {"forbid": [3]},
        {"forbid": None},
        {"keys": [6]},
        {"keys": None},
    ],
)
def test_what_is_declared_otherwise_is_left_to_the_diff(other: dict[str, Any]) -> None:
    assert not proves_no_drift({**DECLARED, **other}, LIVE)


@pytest.mark.parametrize(
    "other",
    [
        {"error": "timed out"},
        {"has": None},
        {"has": [1]},
        {"keys": None},
    ],
)
def test_what_is_live_otherwise_is_left_to_the_diff(other: dict[str, Any]) -> None:
    assert not proves_no_drift(DECLARED, {**LIVE, **other})
