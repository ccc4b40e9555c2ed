"""Replicas on their way, in words."""

from kdeclare.core.run import MoveProgress, Waiting
from kdeclare.core.units import duration, listed, plural, size
from kdeclare.report.values import clean

_NAMED = 3


def progress_text(moves: MoveProgress) -> str:
    """``12 of 40 partitions, 1.2 GiB of 4.0 GiB, 48.0 MiB/s, about 58.2 s left``, and who waits."""
    parts = [
        f"{moves.partitions:,} of {plural(moves.partitions_total, 'partition')}",
        f"{size(moves.bytes)} of {size(moves.bytes_total)}" if moves.bytes_total else "",
        f"{size(moves.rate)}/s" if moves.rate else "",
        f"about {duration(moves.left_s)} left" if moves.left_s is not None and moves.left_s >= 1 else "",
    ]
    return "; ".join([listed(parts), *waiting_texts(moves)])


def waiting_texts(moves: MoveProgress) -> list[str]:
    """The partitions that need a look, a few of them by name."""
    found = [_waiting(item) for item in moves.waiting[:_NAMED]]
    more = len(moves.waiting) - _NAMED
    return [*found, f"and {plural(more, 'more partition')}"] if more > 0 else found


def _waiting(item: Waiting) -> str:
    brokers = ", ".join(f"broker {b}{', which is down' if b in item.down else ''}" for b in item.brokers)
    stalled = " (nothing has arrived lately)" if item.stalled and not item.down else ""
    return f"{clean(item.partition)} waits for {brokers or 'its end'}{stalled}"
