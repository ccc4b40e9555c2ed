"""What came of a command by hand, for scripts."""

from dataclasses import asdict
from typing import Any

from kdeclare.engine.planning.plan_document import diagnostic_document
from kdeclare.report.by_hand_views import HandView, Item, hand_exit_code
from kdeclare.report.json_output import FORMAT_VERSION, run_document


def hand_document(view: HandView, seconds: float | None = None) -> dict[str, Any]:
    """A result for each resource, and the run (docs/schemas/by-hand.schema.json)."""
    failed = [problem for problems in view.failed.values() for problem in problems]
    blocking = [problem for problem in view.run.plan.diagnostics if problem.blocks] if view.run else []
    told = dict.fromkeys((*failed, *blocking, *view.beforehand, *view.notices))
    return {
        "format_version": FORMAT_VERSION,
        "exit_code": int(hand_exit_code(view)),
        "results": [_item(item) for item in view.items],
        "verified_seconds": view.verified_s,
        "written": list(view.written),
        "run": run_document(view.run, seconds=seconds) if view.run else None,
        "diagnostics": [diagnostic_document(problem) for problem in told],
    }


def _item(item: Item) -> dict[str, Any]:
    seen = item.seen
    return {
        "resource": item.resource,
        "result": item.came.value,
        "message": item.why,
        "not_seen": list(item.unlike),
        "seen": None if seen is None else asdict(seen) | {"factors": list(seen.factors)},
    }
