"""What goes on right now, for people: unfinished runs, the work of systems, who holds the lock."""

from kdeclare.core.plans.run import MoveProgress, Waiting
from kdeclare.core.provider.provider import Activity
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, duration, listed, plural, show, size
from kdeclare.report.run.history_text import moment
from kdeclare.report.run.views import StatusView, UnfinishedRun

_MANY = 50


def status_text(view: StatusView, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. The first line says whether anything goes on at all."""
    blocks = [
        _headline(view, style),
        "\n".join(_unfinished(run, style) for run in view.unfinished),
        *(_activity(activity, style) for activity in view.activities),
        _lock(view, style),
        _last(view, style),
    ]
    return "\n".join(block for block in blocks if block)


def _headline(view: StatusView, style: Style) -> str:
    on = f" on {view.cluster}" if view.cluster not in ("", view.env) else ""
    place = clean(f"{view.project}/{view.env}{on}")
    parts = []
    if view.unfinished:
        parts.append(plural(len(view.unfinished), "unfinished run"))
    parts += [clean(phrase) for activity in view.activities for phrase in activity.headline]
    if view.lock:
        parts.append("locked")
    if not parts:
        quiet = ", ".join(["no unfinished run", *(a.quiet for a in view.activities if a.quiet), "not locked"])
        return style.green(f"All quiet. {place}: {quiet}.") + "\n"
    return style.bold(f"{place}: {', '.join(parts)}.") + "\n"


def _unfinished(run: UnfinishedRun, style: Style) -> str:
    title = f"Unfinished run {clean(run.run_id)}, begun {moment(run.started)} by {clean(run.user)}"
    lines = [style.yellow(title), style.dim(f"  {clean(run.command)}")]
    counts = f"{run.done:,} of {plural(run.operations, 'operation')} done"
    lines.append(f"  {counts}, {len(run.unknown):,} under way, {run.not_begun:,} not begun")
    for step in run.unknown[:_MANY]:
        begun = f"  {style.dim(f'begun {moment(step.begun)}')}" if step.begun else ""
        lines.append(f"  ? {clean(step.verb)} {clean(step.resource)}{begun}")
    if len(run.unknown) > _MANY:
        lines.append(style.dim(f"  … and {len(run.unknown) - _MANY:,} more"))
    lines.append(f"  {style.cyan('next:')} 'kdeclare apply' settles what was under way and goes on.")
    return "".join(f"{line}\n" for line in lines)


def _activity(activity: Activity, style: Style) -> str:
    ongoing = activity.ongoing
    if not ongoing:
        return ""
    names = [clean(work.name) for work in ongoing[:_MANY]]
    width = max(len(name) for name in names)
    far = f" {progress_text(activity.progress)}" if activity.progress else ""
    lines = [f"{style.cyan(clean(activity.title))}{far}"]
    for name, work in zip(names, ongoing, strict=False):
        whose = style.dim(f"  run {clean(work.run_id)}" if work.run_id else "  not by kdeclare")
        note = f"  {clean(work.note or work.verb)}" if work.note or work.verb else ""
        has_values = work.before is not None or work.after is not None
        values = f"  {show(work.before)} → {show(work.after)}" if has_values else ""
        lines.append(f"  ↻ {name:<{width}}{values}{whose}{note}")
    if len(ongoing) > _MANY:
        lines.append(style.dim(f"  … and {len(ongoing) - _MANY:,} more"))
    lines += [style.dim(f"  {clean(note)}") for note in activity.notes]
    return "".join(f"{line}\n" for line in lines)


def _lock(view: StatusView, style: Style) -> str:
    lock = view.lock
    if lock is None:
        return ""
    who = f"{clean(lock.who)} (process {lock.pid}) since {clean(lock.since)}: {clean(lock.what)}"
    return f"{style.yellow('Locked')} by {who}\n"


def _last(view: StatusView, style: Style) -> str:
    if view.last is None:
        return ""
    run = view.last
    text = (
        f"Last run: {clean(run.run_id)}, {moment(run.ended or run.started)}, {clean(run.gist or run.outcome)}"
    )
    return style.dim(text) + "\n"


_NAMED = 3


def progress_text(moves: MoveProgress) -> str:
    """``12 of 40 partitions, 1.2 GiB of 4.0 GiB, 48.0 MiB/s, about 58.2 s left``, and who waits."""
    parts = [
        f"{moves.partitions:,} of {plural(moves.partitions_total, moves.noun)}",
        f"{size(moves.bytes)} of {size(moves.bytes_total)}" if moves.bytes_total else "",
        f"{size(moves.rate)}/s" if moves.rate else "",
        f"about {duration(moves.left_s)} left" if moves.left_s is not None and moves.left_s >= 1 else "",
    ]
    return "; ".join([listed(parts), *waiting_texts(moves)])


def waiting_texts(moves: MoveProgress) -> list[str]:
    """The partitions that need a look, a few of them by name."""
    found = [_waiting(item, moves.member) for item in moves.waiting[:_NAMED]]
    more = len(moves.waiting) - _NAMED
    return [*found, f"and {plural(more, f'more {moves.noun}')}"] if more > 0 else found


def _waiting(item: Waiting, member: str) -> str:
    brokers = ", ".join(f"{member} {b}{', which is down' if b in item.down else ''}" for b in item.brokers)
    stalled = " (nothing has arrived lately)" if item.stalled and not item.down else ""
    return f"{clean(item.partition)} waits for {brokers or 'its end'}{stalled}"
