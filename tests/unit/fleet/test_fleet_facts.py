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


def test_facts_prove_absence_of_drift() -> None:
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
def test_facts_do_not_prove_row_with_other_declaration(other: dict[str, Any]) -> None:
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
def test_facts_do_not_prove_row_with_other_live_state(other: dict[str, Any]) -> None:
    assert not proves_no_drift(DECLARED, {**LIVE, **other})
