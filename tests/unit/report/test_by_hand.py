"""What commands by hand say of each resource: text, JSON and exit code."""

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.exits import ExitCode
from kdeclare.core.run import RunResult
from kdeclare.report.by_hand_json import hand_document
from kdeclare.report.by_hand_schema import by_hand_schema
from kdeclare.report.by_hand_text import hand_text
from kdeclare.report.by_hand_views import GOOD, Came, HandView, Item, Seen, hand_exit_code
from tests.unit.report.golden_files import check_golden, check_schema
from tests.unit.report.sample_runs import RUNS

DONE = RUNS["done"]
SEEN = Seen(partitions=3, factors=(2, 3), replicas=8, in_sync=7, leaderless=1)
ITEMS = tuple(
    Item(
        f"Topic/{came.value}",
        came,
        "" if came in GOOD else "Kafka's words.",
        seen=SEEN if came in (Came.ALTERED, Came.MOVING) else None,
    )
    for came in Came
)
UNSEEN = Item("Topic/late\x1b[2J", Came.CREATED, unlike=("topic", "configs"))
EVERYTHING = HandView(DONE, (*ITEMS, UNSEEN), verified_s=30.0, written=("manifests/orders.yaml",))


def view(*came: Came, run: RunResult | None = DONE) -> HandView:
    return HandView(run, tuple(Item(f"Topic/{n}", each) for n, each in enumerate(came)))


def test_all_that_can_come_of_it() -> None:
    check_golden("by-hand", hand_text(EVERYTHING))


def test_all_of_it_fits_the_schema() -> None:
    for each in (EVERYTHING, view(Came.FAILED, run=None)):
        Draft202012Validator(by_hand_schema()).validate(json.loads(json.dumps(hand_document(each, 1.5))))
    check_schema("by-hand", by_hand_schema())


@pytest.mark.parametrize(
    ("came", "code"),
    [
        ((Came.CREATED, Came.UNCHANGED, Came.LEFT_OUT), ExitCode.OK),
        ((Came.CREATED, Came.FAILED), ExitCode.PARTIAL),
        ((Came.UNCHANGED, Came.FAILED), ExitCode.PARTIAL),
        ((Came.FAILED, Came.FAILED), ExitCode.PARTIAL),  # of each, something was done
        ((Came.LEFT_OUT,), ExitCode.OK),
    ],
)
def test_the_exit_code_of_a_run_that_went_well(came: tuple[Came, ...], code: ExitCode) -> None:
    assert hand_exit_code(view(*came)) is code


def test_what_was_denied_failed_or_was_not_seen() -> None:
    assert hand_exit_code(view(Came.DENIED, run=RUNS["denied"])) is ExitCode.DENIED
    assert hand_exit_code(view(Came.FAILED, run=RUNS["all-failed"])) is ExitCode.ERROR
    assert hand_exit_code(view(Came.FAILED, run=None)) is ExitCode.ERROR
    assert hand_exit_code(view(Came.DENIED, Came.FAILED, run=RUNS["denied"])) is ExitCode.PARTIAL
    assert hand_exit_code(replace(view(), items=(UNSEEN,))) is ExitCode.PARTIAL
    assert hand_exit_code(view(Came.NOT_BEGUN, run=RUNS["interrupted"])) is ExitCode.INTERRUPTED


def test_failures_that_were_told_before_are_not_told_twice() -> None:
    assert hand_text(view(Came.FAILED, run=None)) == ""
    assert "left out" in hand_text(view(Came.FAILED, Came.LEFT_OUT, run=None))
