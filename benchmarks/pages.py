"""``python -m benchmarks.pages``: render a large plan and its run as HTML, and compare the time with JSON."""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from benchmarks.synthetic.plans import big_plan
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import Status
from kdeclare.engine.planning.plan_document import build_plan_document
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page, render_run_page
from kdeclare.report.run.views import RunDetail, RunStep

_NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--changes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chromium", metavar="FILE", help="also scroll the plan's page in this browser")
    options = parser.parse_args()
    gc.set_threshold(500_000)  # as the command does
    plan = big_plan(options.changes)
    run = _run(plan)
    ways: tuple[tuple[str, Callable[[], str]], ...] = (
        ("the plan as JSON", lambda: json.dumps(build_plan_document(plan))),
        ("the plan as Markdown", lambda: plan_markdown(plan)),
        ("the plan as HTML", lambda: render_plan_page(plan)),
        ("its run as HTML", lambda: render_run_page(run)),
    )
    print("| changes | operations | output | s | × JSON | kB |\n|---:|---:|---|---:|---:|---:|")
    size = f"| {len(plan.changes):,} | {len(plan.operations):,} "
    least = 0.0
    for name, make in ways:
        seconds, text = _measured(make, options.rounds)
        least = least or seconds
        kilobytes = len(text.encode()) / 1000
        print(f"{size}| {name} | {seconds:.2f} | {seconds / least:.1f} | {kilobytes:,.0f} |")
    if options.chromium:
        _scroll(options.chromium, render_plan_page(plan))


def _scroll(chromium: str, page: str) -> None:
    """Print a table of the scrolling speed of the page, at the width of a desktop and of a phone."""
    from benchmarks.scrolling import browser, scrolled  # Playwright only if a browser is requested

    print("\n| width | px per second | frames per second | 95 % within ms | main thread ms per frame |")
    print("|---:|---:|---:|---:|---:|")
    with browser(chromium) as opened:
        for width in (1440, 390):
            for speed in (6000, 36000):
                found = scrolled(opened, page, width, speed)
                frames = f"{found.frames_per_second:.0f} | {found.most_ms:.0f} | {found.main_thread_ms:.0f}"
                print(f"| {width:,} | {speed:,} | {frames} |")


def _measured(make: Callable[[], str], rounds: int) -> tuple[float, str]:
    """Return the median CPU seconds and the result."""
    taken, text = [], ""
    for _ in range(rounds):
        begun = time.process_time()
        text = make()
        taken.append(time.process_time() - begun)
    return statistics.median(taken), text


def _run(plan: Plan) -> RunDetail:
    """Build a run in which all operations are done. Each request has 500 operations and takes one second."""
    moments = [_NOON + timedelta(seconds=n // 500) for n in range(len(plan.operations))]
    steps = tuple(
        RunStep(op.id, op.verb, str(op.resource), Status.DONE, at, at + timedelta(seconds=1))
        for op, at in zip(plan.operations, moments, strict=True)
    )
    end = moments[-1] + timedelta(seconds=1)
    return RunDetail(
        "run",
        _NOON,
        end,
        "done",
        "me@here",
        "kdeclare apply",
        "",
        summary=plan.summary,
        operations=len(steps),
        counts={Status.DONE: len(steps)},
        plan=plan,
        steps=steps,
    )


if __name__ == "__main__":
    main()
