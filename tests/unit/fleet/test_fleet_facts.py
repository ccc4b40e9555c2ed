"""The rule by which rows are passed over: null never proves anything."""

from typing import Any

import pytest

from kdeclare.fleet.facts import proves_order

DECLARED: dict[str, Any] = {
    "alone": True,
    "always": False,
    "partitions": 3,
    "factor": None,
    "topic_id": None,
    "need": [1, 2],
    "forbid": [9],
    "keys": [5, 6],
    "mine": [2],
}
LIVE: dict[str, Any] = {
    "error": None,
    "partitions": 3,
    "factor": -1,
    "topic_id": "t",
    "has": [1, 2, 3],
    "keys": [5],
}


def test_facts_prove_that_a_row_is_in_order() -> None:
    assert proves_order(DECLARED, LIVE)
    assert proves_order({**DECLARED, "partitions": None}, {**LIVE, "partitions": None})


@pytest.mark.parametrize(
    "other",
    [
        {"alone": False},
        {"alone": None},
        {"always": True},
        {"always": None},
        {"partitions": 4},
        {"factor": 2},
        {"topic_id": "another"},
        {"need": [4]},
        {"need": None},
        {"forbid": [3]},
        {"forbid": None},
        {"keys": [6]},
        {"keys": None},
        {"mine": [2, 3]},
        {"mine": None},
    ],
)
def test_what_is_declared_otherwise_is_left_to_the_diff(other: dict[str, Any]) -> None:
    assert not proves_order({**DECLARED, **other}, LIVE)


@pytest.mark.parametrize(
    "other",
    [
        {"error": "timed out"},
        {"partitions": None},
        {"partitions": 2},
        {"has": None},
        {"has": [1]},
        {"keys": None},
    ],
)
def test_what_is_live_otherwise_is_left_to_the_diff(other: dict[str, Any]) -> None:
    assert not proves_order(DECLARED, {**LIVE, **other})
