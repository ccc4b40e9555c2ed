"""The timeline of the operations of a run."""

from dataclasses import replace
from datetime import timedelta

import pytest

from kdeclare.core.plans.run import Status
from kdeclare.report.plan.plan_page import build_waterfall, compute_operation_seconds
from kdeclare.report.run.views import RunDetail, RunStep
from tests.unit.report.sample_runs import DETAIL, START


def step(
    id_: str, begun: float | None, ended: float | None, verb: str = "v", status: Status | None = None
) -> RunStep:
    def at(seconds: float | None) -> object:
        return None if seconds is None else START + timedelta(seconds=seconds)

    return RunStep(id_, verb, f"Topic/{id_}", status, at(begun), at(ended))  # type: ignore[arg-type]


def detail(*steps: RunStep, seconds: float | None = 10) -> RunDetail:
    ended = None if seconds is None else START + timedelta(seconds=seconds)
    return replace(DETAIL, started=START, ended=ended, steps=steps)


def test_what_went_in_one_request_is_one_bar() -> None:
    done = Status.DONE
    found = build_waterfall(
        detail(step("c", 2, 3, status=done), step("a", 0, 1, status=done), step("b", 0, 1, status=done))
    )
    assert [(bar.begun, bar.ended, bar.steps) for bar in found.bars] == [(0, 1, (1, 2)), (2, 3, (0,))]
    assert found.seconds == 10


def test_another_verb_or_another_end_is_another_bar() -> None:
    steps = (
        step("a", 0, 1, status=Status.DONE),
        step("b", 0, 1, status=Status.FAILED),
        step("c", 0, 1, "w", Status.DONE),
    )
    assert [bar.steps for bar in build_waterfall(detail(*steps)).bars] == [(0,), (1,), (2,)]


def test_what_has_no_end_is_unknown_and_comes_after_what_has_one() -> None:
    found = build_waterfall(
        detail(step("a", 0, None), step("b", 0, 5, status=Status.DONE), step("c", None, None), seconds=None)
    )
    assert [(bar.ended, bar.status) for bar in found.bars] == [(5, Status.DONE), (None, Status.UNKNOWN)]
    assert found.seconds == 5


def test_what_was_settled_later_makes_the_run_longer() -> None:
    assert build_waterfall(detail(step("a", 0, 90, status=Status.DONE), seconds=10)).seconds == 90


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    found = build_waterfall(detail(step("a", -5, -3, status=Status.DONE)))
    assert (found.bars[0].begun, found.bars[0].ended) == (0, 0)


def test_a_clock_that_was_set_back_meanwhile_makes_no_negative_time() -> None:
    [bar] = build_waterfall(detail(step("a", 5, 3, status=Status.DONE))).bars
    assert (bar.begun, bar.ended) == (5, 5)


def test_what_has_no_end_has_a_width() -> None:
    found = build_waterfall(detail(step("a", 0, 20, status=Status.DONE), step("b", 20, None), seconds=None))
    assert found.seconds == 20
    assert found.span == pytest.approx(22)
    assert build_waterfall(detail(step("a", 0, 20, status=Status.DONE))).span == 20


def test_nothing_begun_is_no_bar() -> None:
    assert build_waterfall(detail(step("a", None, None))).bars == ()


def test_how_long_operations_took() -> None:
    assert compute_operation_seconds(
        detail(step("a", 1, 3.5), step("b", 1, None), step("c", None, None))
    ) == {"a": 2.5}
