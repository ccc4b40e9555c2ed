"""What goes on right now, for people: unfinished runs, moves in flight, who holds the lock."""

from kdeclare.report.history_text import moment
from kdeclare.report.moves_text import progress_text
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, plural, show
from kdeclare.report.views import MoveInFlight, StatusView, UnfinishedRun

_MANY = 50


def status_text(view: StatusView, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. The first line says whether anything goes on at all."""
    blocks = [
        _headline(view, style),
        "\n".join(_unfinished(run, style) for run in view.unfinished),
        _moves(view, style),
        _lock(view, style),
        _last(view, style),
    ]
    return "\n".join(block for block in blocks if block)


def _headline(view: StatusView, style: Style) -> str:
    place = clean(f"{view.project}/{view.env} on {view.cluster}")
    parts = []
    if view.unfinished:
        parts.append(plural(len(view.unfinished), "unfinished run"))
    if view.moves:
        parts.append(f"{plural(len(view.moves), 'partition')} moving")
    if view.throttles and not view.moves:
        parts.append("a throttle is left of moves that are over")
    if view.lock:
        parts.append("locked")
    if not parts:
        return style.green(f"All quiet. {place}: no unfinished run, no moves, not locked.") + "\n"
    return style.bold(f"{place}: {', '.join(parts)}.") + "\n"


def _unfinished(item: UnfinishedRun, style: Style) -> str:
    run = item.run
    title = f"Unfinished run {clean(run.run_id)}, begun {moment(run.started)} by {clean(run.user)}"
    lines = [style.yellow(title), style.dim(f"  {clean(run.command)}")]
    counts = f"{run.done:,} of {plural(run.operations, 'operation')} done"
    lines.append(f"  {counts}, {len(item.unknown):,} under way, {item.not_begun:,} not begun")
    for step in item.unknown[:_MANY]:
        begun = f"  {style.dim(f'begun {moment(step.begun)}')}" if step.begun else ""
        lines.append(f"  ? {clean(step.verb)} {clean(step.resource)}{begun}")
    if len(item.unknown) > _MANY:
        lines.append(style.dim(f"  … and {len(item.unknown) - _MANY:,} more"))
    lines.append(f"  {style.cyan('next:')} 'kdeclare apply' settles what was under way and goes on.")
    return "".join(f"{line}\n" for line in lines)


def _moves(view: StatusView, style: Style) -> str:
    moves = view.moves
    if not moves:
        return ""
    names = [clean(f"{m.topic}-{m.partition}") for m in moves[:_MANY]]
    width = max(len(name) for name in names)
    far = f" {progress_text(view.progress)}" if view.progress else ""
    lines = [f"{style.cyan('Moves in flight:')}{far}"]
    for name, move in zip(names, moves, strict=False):
        now = tuple(r for r in move.replicas if r not in move.adding)
        whose = style.dim(f"  run {clean(move.run_id)}" if move.run_id else "  not by kdeclare")
        lines.append(
            f"  ↻ {name:<{width}}  {show(list(now))} → {show(list(move.target))}{whose}{_waits(move)}"
        )
    if len(moves) > _MANY:
        lines.append(style.dim(f"  … and {len(moves) - _MANY:,} more"))
    if view.throttles:
        places = plural(view.throttles, "broker or topic", "brokers and topics")
        lines.append(style.dim(f"  kdeclare's throttle on {places} stays until they are over."))
    return "".join(f"{line}\n" for line in lines)


def _waits(move: MoveInFlight) -> str:
    brokers = ", ".join(f"broker {b}{' (down)' if b in move.down else ''}" for b in move.waits_for)
    return f"  waits for {brokers}" if brokers else ""


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
