"""Replicas on their way, in words."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from kdeclare.core.operations import Operation
from kdeclare.core.run import MoveProgress, Waiting
from kdeclare.providers.kafka.operations.partitions import get_targets
from kdeclare.providers.kafka.reassignment.operations.arguments import find_group, find_pace
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, duration, listed, plural, size

_NAMED = 3
_BROKERS = 30


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


def moves_plan_text(operations: Iterable[Operation], style: Style = PLAIN) -> str:
    """What the moves of a plan come to: how they are gone about, and what each broker gains and loses."""
    groups: dict[str, list[Operation]] = defaultdict(list)
    for op in operations:
        if op.verb == "partitions.reassign":
            groups[find_group(op) or ""].append(op)
    if not groups:
        return ""
    lines = [style.bold("Moves:")]
    for name, moves in sorted(groups.items()):
        count = sum(len(get_targets(op)) for op in moves)
        resources = {str(op.resource) for op in moves}
        what = clean(name if len(groups) > 1 and name else next(iter(resources)))
        if len(resources) > 1:
            what = plural(len(resources), "resource")
        lines.append(f"  {what}: {plural(count, 'partition')}, {_manner(find_pace(moves[0]), count)}")
    moves = [op for group in groups.values() for op in group]
    return "".join(f"{line}\n" for line in [*lines, *_brokers(moves, style)])


def _manner(pace: Pace, partitions: int) -> str:
    batches = -(-partitions // pace.batch_size) if pace.batch_size else 1
    return listed(
        [
            f"in {batches:,} batches of {pace.batch_size:,}" if batches > 1 else "in one batch",
            f"{duration(pace.pause_s)} between batches" if pace.pause_s and batches > 1 else "",
            f"throttled to {size(pace.throttle)}/s a broker" if pace.throttle else "no throttle",
        ]
    )


def _brokers(moves: Sequence[Operation], style: Style) -> list[str]:
    """Replicas that each broker gains and loses, and by how many partitions more or fewer it is to lead."""
    gains: Counter[int] = Counter()
    losses: Counter[int] = Counter()
    leads: Counter[int] = Counter()
    for op in moves:
        for name, after in get_targets(op).items():
            before = op.expect.get(name) or []
            gains.update(set(after) - set(before))
            losses.update(set(before) - set(after))
            leads.update({after[0]: 1})
            leads.subtract(before[:1])
    touched = sorted({*gains, *losses, *(b for b, n in leads.items() if n)})
    lines = [style.dim(f"    {'broker':>8}  {'gains':>7}  {'loses':>7}  {'leads':>7}")]
    lines += [
        f"    {broker:>8}  {_signed(gains[broker])}  {_signed(-losses[broker])}  {_signed(leads[broker])}"
        for broker in touched[:_BROKERS]
    ]
    if len(touched) > _BROKERS:
        lines.append(style.dim(f"    … and {len(touched) - _BROKERS:,} more brokers"))
    return lines


def _signed(count: int) -> str:
    return f"{f'{count:+,}' if count else '·':>7}"
