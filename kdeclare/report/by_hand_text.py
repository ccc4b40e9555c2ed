"""What came of a command by hand, for people: a line a resource."""

from kdeclare.core.exits import ExitCode
from kdeclare.core.run import RunResult
from kdeclare.report.by_hand_views import DEEDS, GOOD, Came, HandView, Item, Seen, hand_exit_code
from kdeclare.report.diagnostics_text import diagnostics_text
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, duration, listed, plural
from kdeclare.report.verdicts_text import policies_text, spoken

_WORDS = {
    Came.CREATED: "created",
    Came.ALTERED: "altered",
    Came.DELETED: "deleted",
    Came.MOVING: "replicas are on their way",
    Came.UNCHANGED: "in order already",
    Came.LEFT_OUT: "left out",
    Came.DENIED: "denied",
    Came.FAILED: "failed",
    Came.STALE: "changed by someone else meanwhile, left alone",
    Came.UNKNOWN: "nobody knows yet",
    Came.NOT_BEGUN: "not begun",
}


def hand_text(view: HandView, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line; empty where nothing is left but failures, told before."""
    items = view.items if view.run else [item for item in view.items if item.came is not Came.FAILED]
    width = max((len(clean(item.resource)) for item in items), default=0)
    lines = [_line(item, width, style) for item in items]
    blocks = ["".join(f"{line}\n" for line in lines)]
    if view.run is not None:
        said = spoken(view.run.plan.verdicts)
        blocks.append(policies_text(view.run.plan.verdicts, said, style) if said else "")
        blocks.append(diagnostics_text(view.run.diagnostics, style))
    blocks.append(diagnostics_text(view.notices, style))
    blocks.append(_last_lines(view, style))
    return "\n".join(block for block in blocks if block)


def _line(item: Item, width: int, style: Style) -> str:
    mark, paint = ("✓", style.green) if item.came in DEEDS else ("·", style.dim)
    if item.came not in GOOD:
        mark, paint = "✗", style.red
    elif item.unlike:
        mark, paint = "?", style.yellow
    unlike = ", ".join(map(clean, item.unlike))
    words = [
        _WORDS[item.came],
        _seen(item.seen) if item.seen else "",
        f"not seen yet: {unlike}" if unlike else "",
        clean(item.why),
    ]
    return f"{paint(mark)} {clean(item.resource):<{width}}  {'; '.join(word for word in words if word)}"


def _seen(seen: Seen) -> str:
    factors = "/".join(map(str, seen.factors))
    shape = (
        f"{plural(seen.partitions, 'partition')} × {factors} {'replica' if factors == '1' else 'replicas'}"
    )
    behind = seen.replicas - seen.in_sync
    sync = "all in sync" if not behind else f"{behind:,} of {plural(seen.replicas, 'replica')} not in sync"
    dead = f"{seen.leaderless:,} without a leader" if seen.leaderless else ""
    return listed([shape, f"{sync}, as their leaders say", dead])


def _last_lines(view: HandView, style: Style) -> str:
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
        if any(item.came is Came.MOVING for item in view.items):
            lines.append("'kdeclare status --watch' follows the moves.")
    if hand_exit_code(view) is ExitCode.INTERRUPTED:
        lines.append("Interrupted; the next command settles what was under way.")
    return "".join(f"{line}\n" for line in lines)


def _is_final(run: RunResult) -> bool:
    """Whether nothing of it can be undone."""
    return all(operation.irreversible is not None for operation in run.plan.operations)
