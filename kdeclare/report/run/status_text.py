"""Render the current status as text: unfinished runs, work in progress, and the holder of the lock."""

from kdeclare.core.plans.run import MoveProgress, PendingPart
from kdeclare.core.provider.provider import Activity
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import (
    format_count,
    format_duration,
    format_size,
    format_value,
    join_nonempty,
    sanitize_for_terminal,
)
from kdeclare.report.run.history_text import format_time
from kdeclare.report.run.views import StatusView, UnfinishedRun

_MAX_LINES = 50


def render_status_text(view: StatusView, style: Style = PLAIN) -> str:
    """Render the status as text. The first line shows whether anything is in progress."""
    blocks = [
        _render_headline(view, style),
        "\n".join(_render_unfinished_run(run, style) for run in view.unfinished),
        *(_render_activity(activity, style) for activity in view.activities),
        _render_lock(view, style),
        _render_last_run(view, style),
    ]
    return "\n".join(block for block in blocks if block)


def _render_headline(view: StatusView, style: Style) -> str:
    cluster_note = f" on {view.cluster}" if view.cluster not in ("", view.env) else ""
    target = sanitize_for_terminal(f"{view.project}/{view.env}{cluster_note}")
    parts = []
    if view.unfinished:
        parts.append(format_count(len(view.unfinished), "unfinished run"))
    parts += [sanitize_for_terminal(phrase) for activity in view.activities for phrase in activity.headline]
    if view.lock:
        parts.append("locked")
    if not parts:
        idle_states = ", ".join(
            ["no unfinished run", *(a.quiet for a in view.activities if a.quiet), "not locked"]
        )
        return style.green(f"Idle. {target}: {idle_states}.") + "\n"
    return style.bold(f"{target}: {', '.join(parts)}.") + "\n"


def _render_unfinished_run(run: UnfinishedRun, style: Style) -> str:
    title = (
        f"Unfinished run {sanitize_for_terminal(run.run_id)}, started {format_time(run.started)} "
        f"by {sanitize_for_terminal(run.user)}"
    )
    lines = [style.yellow(title), style.dim(f"  {sanitize_for_terminal(run.command)}")]
    progress = f"{run.done:,} of {format_count(run.operations, 'operation')} done"
    lines.append(f"  {progress}, {len(run.unknown):,} with unknown outcome, {run.not_begun:,} not started")
    for step in run.unknown[:_MAX_LINES]:
        begun_note = f"  {style.dim(f'started {format_time(step.begun)}')}" if step.begun else ""
        owner_note = f"  owner: {sanitize_for_terminal(step.owner)}" if step.owner else ""
        lines.append(
            f"  ? {sanitize_for_terminal(step.verb)} {sanitize_for_terminal(step.resource)}{begun_note}"
            f"{owner_note}"
        )
    if len(run.unknown) > _MAX_LINES:
        lines.append(style.dim(f"  … and {len(run.unknown) - _MAX_LINES:,} more"))
    lines.append(
        f"  {style.cyan('next:')} Run 'kdeclare apply' to recover the run and apply the remaining changes."
    )
    return "".join(f"{line}\n" for line in lines)


def _render_activity(activity: Activity, style: Style) -> str:
    ongoing = activity.ongoing
    if not ongoing:
        return ""
    names = [sanitize_for_terminal(work.name) for work in ongoing[:_MAX_LINES]]
    width = max(len(name) for name in names)
    progress_note = f" {format_progress(activity.progress)}" if activity.progress else ""
    lines = [f"{style.cyan(sanitize_for_terminal(activity.title))}{progress_note}"]
    for name, work in zip(names, ongoing, strict=False):
        owner_note = style.dim(
            f"  run {sanitize_for_terminal(work.run_id)}" if work.run_id else "  not by kdeclare"
        )
        note = f"  {sanitize_for_terminal(work.note or work.verb)}" if work.note or work.verb else ""
        has_values = work.before is not None or work.after is not None
        values = f"  {format_value(work.before)} → {format_value(work.after)}" if has_values else ""
        lines.append(f"  ↻ {name:<{width}}{values}{owner_note}{note}")
    if len(ongoing) > _MAX_LINES:
        lines.append(style.dim(f"  … and {len(ongoing) - _MAX_LINES:,} more"))
    lines += [style.dim(f"  {sanitize_for_terminal(note)}") for note in activity.notes]
    return "".join(f"{line}\n" for line in lines)


def _render_lock(view: StatusView, style: Style) -> str:
    lock = view.lock
    if lock is None:
        return ""
    holder = (
        f"{sanitize_for_terminal(lock.who)} (process {lock.pid}) since "
        f"{sanitize_for_terminal(lock.since)}: {sanitize_for_terminal(lock.what)}"
    )
    return f"{style.yellow('Locked')} by {holder}\n"


def _render_last_run(view: StatusView, style: Style) -> str:
    if view.last is None:
        return ""
    run = view.last
    text = (
        f"Last run: {sanitize_for_terminal(run.run_id)}, "
        f"{format_time(run.ended or run.started)}, {sanitize_for_terminal(run.gist or run.outcome)}"
    )
    return style.dim(text) + "\n"


_MAX_NAMED = 3


def format_progress(progress: MoveProgress) -> str:
    """Format progress, such as ``12 of 40 partitions, 1.2 GiB of 4.0 GiB, 48.0 MiB/s, about 58.2 s left``.

    If partitions are waiting for brokers, a list of these partitions follows.
    """
    parts = [
        f"{progress.partitions:,} of {format_count(progress.partitions_total, progress.noun)}",
        f"{format_size(progress.bytes)} of {format_size(progress.bytes_total)}"
        if progress.bytes_total
        else "",
        f"{format_size(progress.rate)}/s" if progress.rate else "",
        f"about {format_duration(progress.left_s)} left"
        if progress.left_s is not None and progress.left_s >= 1
        else "",
    ]
    return "; ".join([join_nonempty(parts), *format_waiting_parts(progress)])


def format_waiting_parts(progress: MoveProgress) -> list[str]:
    """Describe the partitions that are waiting for brokers. Name up to three, and count all others."""
    waiting_texts = [_format_waiting_part(item, progress.member) for item in progress.waiting[:_MAX_NAMED]]
    omitted_count = len(progress.waiting) - _MAX_NAMED
    return (
        [*waiting_texts, f"and {format_count(omitted_count, f'more {progress.noun}')}"]
        if omitted_count > 0
        else waiting_texts
    )


def _format_waiting_part(item: PendingPart, member: str) -> str:
    brokers = ", ".join(f"{member} {b}{', which is down' if b in item.down else ''}" for b in item.brokers)
    stall_note = " (no progress recently)" if item.stalled and not item.down else ""
    return f"{sanitize_for_terminal(item.partition)} waits for {brokers or 'completion'}{stall_note}"
