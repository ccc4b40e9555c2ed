"""The timeline of the operations of a run."""

from dataclasses import replace
from datetime import timedelta

import pytest

from kdeclare.core.plans.run import Status
from kdeclare.report.plan.plan_page import build_waterfall, compute_operation_seconds
from kdeclare.report.run.views import RunDetail, RunStep
from tests.unit.report.sample_runs import DETAIL, START


def make_step(
    id_: str, begun: float | None, ended: float | None, verb: str = "v", status: Status | None = None
) -> RunStep:
    def add_seconds(seconds: float | None) -> object:
        return None if seconds is None else START + timedelta(seconds=seconds)

    return RunStep(id_, verb, f"Topic/{id_}", status, add_seconds(begun), add_seconds(ended))  # type: ignore[arg-type]


def make_detail(*steps: RunStep, seconds: float | None = 10) -> RunDetail:
    ended = None if seconds is None else START + timedelta(seconds=seconds)
    return replace(DETAIL, started=START, ended=ended, steps=steps)


def test_waterfall_groups_steps_of_one_request() -> None:
    done = Status.DONE
    found = build_waterfall(
        make_detail(
            make_step("c", 2, 3, status=done),
            make_step("a", 0, 1, status=done),
            make_step("b", 0, 1, status=done),
        )
    )
    assert [(bar.begun, bar.ended, bar.steps) for bar in found.bars] == [(0, 1, (1, 2)), (2, 3, (0,))]
    assert found.seconds == 10


def test_waterfall_separates_verbs_and_statuses() -> None:
    steps = (
        make_step("a", 0, 1, status=Status.DONE),
        make_step("b", 0, 1, status=Status.FAILED),
        make_step("c", 0, 1, "w", Status.DONE),
    )
    assert [bar.steps for bar in build_waterfall(make_detail(*steps)).bars] == [(0,), (1,), (2,)]


def test_waterfall_puts_unfinished_steps_last() -> None:
    found = build_waterfall(
        make_detail(
            make_step("a", 0, None),
            make_step("b", 0, 5, status=Status.DONE),
            make_step("c", None, None),
            seconds=None,
        )
    )
    assert [(bar.ended, bar.status) for bar in found.bars] == [(5, Status.DONE), (None, Status.UNKNOWN)]
    assert found.seconds == 5


def test_waterfall_extends_to_later_recovery() -> None:
    assert build_waterfall(make_detail(make_step("a", 0, 90, status=Status.DONE), seconds=10)).seconds == 90


def test_waterfall_clips_times_before_start() -> None:
    found = build_waterfall(make_detail(make_step("a", -5, -3, status=Status.DONE)))
    assert (found.bars[0].begun, found.bars[0].ended) == (0, 0)


def test_waterfall_clips_end_before_begin() -> None:
    [bar] = build_waterfall(make_detail(make_step("a", 5, 3, status=Status.DONE))).bars
    assert (bar.begun, bar.ended) == (5, 5)


def test_waterfall_gives_unfinished_steps_width() -> None:
    found = build_waterfall(
        make_detail(make_step("a", 0, 20, status=Status.DONE), make_step("b", 20, None), seconds=None)
    )
    assert found.seconds == 20
    assert found.span == pytest.approx(22)
    assert build_waterfall(make_detail(make_step("a", 0, 20, status=Status.DONE))).span == 20


def test_waterfall_omits_steps_not_started() -> None:
    assert build_waterfall(make_detail(make_step("a", None, None))).bars == ()


def test_operation_seconds_are_computed_for_finished_steps() -> None:
    assert compute_operation_seconds(
        make_detail(make_step("a", 1, 3.5), make_step("b", 1, None), make_step("c", None, None))
    ) == {"a": 2.5}
