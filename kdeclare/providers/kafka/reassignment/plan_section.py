"""What a plan says of its moves as a whole."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.core.units import duration, listed, plural, size
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.reassignment.operations.arguments import find_group, find_pace
from kdeclare.providers.kafka.reassignment.pace import Pace

_BROKERS = 30
"""How many brokers are listed."""


def describe_moves(operations: Iterable[Operation]) -> PlanSection | None:
    """Return what the moves of a plan come to: how they are made, and what each broker gains and loses."""
    groups: dict[str, list[Operation]] = defaultdict(list)
    for op in operations:
        if op.verb == "partitions.reassign":
            groups[find_group(op) or ""].append(op)
    if not groups:
        return None
    lines = []
    for name, moves in sorted(groups.items()):
        count = sum(len(get_targets(op)) for op in moves)
        resources = {str(op.resource) for op in moves}
        what = name if len(groups) > 1 and name else next(iter(resources))
        if len(resources) > 1:
            what = plural(len(resources), "resource")
        pace = _describe_pace(find_pace(moves[0]), count)
        lines.append(SectionLine(f"{what}: {plural(count, 'partition')}, {pace}"))
    moves = [op for group in groups.values() for op in group]
    return PlanSection("Moves", (*lines, *_describe_brokers(moves)))


def _describe_pace(pace: Pace, partitions: int) -> str:
    batches = -(-partitions // pace.batch_size) if pace.batch_size else 1
    return listed(
        [
            f"in {batches:,} batches of {pace.batch_size:,}" if batches > 1 else "in one batch",
            f"{duration(pace.pause_s)} between batches" if pace.pause_s and batches > 1 else "",
            f"throttled to {size(pace.throttle)}/s a broker" if pace.throttle else "no throttle",
        ]
    )


def _describe_brokers(moves: Sequence[Operation]) -> list[SectionLine]:
    """Replicas that each broker gains and loses, and by how many partitions more or fewer it is to lead."""
    gains: Counter[int] = Counter()
    losses: Counter[int] = Counter()
    leads: Counter[int] = Counter()
    for op in moves:
        for name, after in get_targets(op).items():
            before = get_replicas_before(op, name)
            gains.update(set(after) - set(before))
            losses.update(set(before) - set(after))
            leads.update({after[0]: 1})
            leads.subtract(before[:1])
    touched = sorted({*gains, *losses, *(b for b, n in leads.items() if n)})
    head = f"  {'broker':>8}  {'gains':>7}  {'loses':>7}  {'leads':>7}"
    lines = [SectionLine(head, is_secondary=True)]
    lines += [
        SectionLine(
            f"  {broker:>8}  {_signed(gains[broker])}  {_signed(-losses[broker])}  {_signed(leads[broker])}"
        )
        for broker in touched[:_BROKERS]
    ]
    if len(touched) > _BROKERS:
        lines.append(SectionLine(f"  … and {len(touched) - _BROKERS:,} more brokers", is_secondary=True))
    return lines


def _signed(count: int) -> str:
    return f"{f'{count:+,}' if count else '·':>7}"
