"""``python -m benchmarks.previews``: render a plan with thousands of changes as text and Markdown."""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping

from benchmarks.changes import changes
from kdeclare.core.plans.plan import Plan
from kdeclare.engine.planning.plan_document import build_plan_document
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_text import plan_text

FORMATS: Mapping[str, Callable[[Plan], str]] = {"text": plan_text, "markdown": plan_markdown}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    plan, _, _ = changes(options.topics)
    document = build_plan_document(plan)
    bare, length = _measured(lambda _: json.dumps(document), plan, options.rounds)
    print("| changes | format | s | characters | × json.dumps |\n|---:|---|---:|---:|---:|")
    print(f"| {options.topics:,} | `json.dumps` of its document | {bare:.3f} | {length:,} | 1.0 |")
    for name, render in FORMATS.items():
        seconds, length = _measured(render, plan, options.rounds)
        print(f"| {options.topics:,} | {name} | {seconds:.3f} | {length:,} | {seconds / bare:.1f} |")


def _measured(render: Callable[[Plan], str], plan: Plan, rounds: int) -> tuple[float, int]:
    """Return the median CPU seconds and the number of characters."""
    taken = []
    text = ""
    for _ in range(rounds):
        begun = time.process_time()
        text = render(plan)
        taken.append(time.process_time() - begun)
    return statistics.median(taken), len(text)


if __name__ == "__main__":
    main()
