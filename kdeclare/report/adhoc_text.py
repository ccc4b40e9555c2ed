"""What came of an ad hoc command, for people: a line for each resource."""

from kdeclare.core.exits import ExitCode
from kdeclare.core.run import RunResult
from kdeclare.report.adhoc_views import DEEDS, GOOD, AdhocResult, ItemResult, Outcome, adhoc_exit_code
from kdeclare.report.diagnostics_text import diagnostics_text
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, duration
from kdeclare.report.verdicts_text import policies_text, spoken

_WORDS = {
    Outcome.CREATED: "created",
    Outcome.ALTERED: "altered",
    Outcome.DELETED: "deleted",
    Outcome.UNCHANGED: "in order already",
    Outcome.LEFT_OUT: "left out",
    Outcome.DENIED: "denied",
    Outcome.FAILED: "failed",
    Outcome.STALE: "changed by someone else meanwhile, left alone",
    Outcome.UNKNOWN: "nobody knows yet",
    Outcome.NOT_BEGUN: "not begun",
}


def adhoc_text(view: AdhocResult, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line; empty where nothing is left but failures, told before."""
    items = view.items if view.run else [item for item in view.items if item.outcome is not Outcome.FAILED]
    width = max((len(clean(item.resource)) for item in items), default=0)
    lines = [_line(item, view, width, style) for item in items]
    blocks = ["".join(f"{line}\n" for line in lines)]
    if view.run is not None:
        said = spoken(view.run.plan.verdicts)
        blocks.append(policies_text(view.run.plan.verdicts, said, style) if said else "")
        blocks.append(diagnostics_text(view.run.diagnostics, style))
    blocks.append(diagnostics_text(view.notices, style))
    blocks.append(_last_lines(view, style))
    return "\n".join(block for block in blocks if block)


def _line(item: ItemResult, view: AdhocResult, width: int, style: Style) -> str:
    mark, paint = ("✓", style.green) if item.outcome in DEEDS else ("·", style.dim)
    if item.outcome not in GOOD:
        mark, paint = "✗", style.red
    elif item.unlike:
        mark, paint = "?", style.yellow
    unlike = ", ".join(map(clean, item.unlike))
    words = [
        _WORDS.get(item.outcome, view.words.ongoing),
        item.seen.describe() if item.seen else "",
        f"not seen yet: {unlike}" if unlike else "",
        clean(item.why),
    ]
    return f"{paint(mark)} {clean(item.resource):<{width}}  {'; '.join(word for word in words if word)}"


def _last_lines(view: AdhocResult, style: Style) -> str:
    lines = []
    if view.verified_s is not None:
        unseen = any(item.unlike for item in view.items)
        waited = duration(view.verified_s)
        lines.append(
            style.yellow(f"Metadata does not show all of it after {waited}.")
            if unseen
            else style.dim(f"Seen in the cluster's metadata after {waited}.")
        )
    lines += [f"Written: {clean(path)}" for path in view.written]
    run = view.run
    if run is not None and run.run_id:
        undoing = "" if _is_final(run) else "; 'kdeclare rollback' undoes it"
        lines.append(style.dim(f"Run {clean(run.run_id)}{undoing}."))
        if view.words.follow_hint and any(item.outcome is Outcome.ONGOING for item in view.items):
            lines.append(view.words.follow_hint)
    if adhoc_exit_code(view) is ExitCode.INTERRUPTED:
        lines.append("Interrupted; the next command settles what was under way.")
    return "".join(f"{line}\n" for line in lines)


def _is_final(run: RunResult) -> bool:
    """Whether nothing of it can be undone."""
    return all(operation.irreversible is not None for operation in run.plan.operations)
