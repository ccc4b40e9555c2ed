"""The section of a plan that summarizes its moves."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.core.units import format_count, format_duration, format_size, join_nonempty
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.reassignment.operations.arguments import find_group, get_pace
from kdeclare.providers.kafka.reassignment.pace import Pace

_MAX_BROKERS = 30
"""The maximum number of brokers that the section lists."""


def build_moves_section(operations: Iterable[Operation]) -> PlanSection | None:
    """Summarize the moves of a plan: their pace, and the replicas that each broker gains and loses."""
    groups: dict[str, list[Operation]] = defaultdict(list)
    for op in operations:
        if op.verb == "partitions.reassign":
            groups[find_group(op) or ""].append(op)
    if not groups:
        return None
    lines = []
    for name, moves in sorted(groups.items()):
        partition_count = sum(len(get_targets(op)) for op in moves)
        resources = {str(op.resource) for op in moves}
        label = name if len(groups) > 1 and name else next(iter(resources))
        if len(resources) > 1:
            label = format_count(len(resources), "resource")
        pace = _format_pace(get_pace(moves[0]), partition_count)
        lines.append(SectionLine(f"{label}: {format_count(partition_count, 'partition')}, {pace}"))
    moves = [op for group in groups.values() for op in group]
    return PlanSection("Moves", (*lines, *_build_broker_lines(moves)))


def _format_pace(pace: Pace, partitions: int) -> str:
    batches = -(-partitions // pace.batch_size) if pace.batch_size else 1
    return join_nonempty(
        [
            f"in {batches:,} batches of {pace.batch_size:,}" if batches > 1 else "in one batch",
            f"{format_duration(pace.pause_s)} between batches" if pace.pause_s and batches > 1 else "",
            f"throttled to {format_size(pace.throttle)}/s per broker" if pace.throttle else "no throttle",
        ]
    )


def _build_broker_lines(moves: Sequence[Operation]) -> list[SectionLine]:
    gains: Counter[int] = Counter()
    losses: Counter[int] = Counter()
    leadership_changes: Counter[int] = Counter()
    for op in moves:
        for name, target in get_targets(op).items():
            replicas_before = get_replicas_before(op, name)
            gains.update(set(target) - set(replicas_before))
            losses.update(set(replicas_before) - set(target))
            leadership_changes.update({target[0]: 1})
            leadership_changes.subtract(replicas_before[:1])
    affected_brokers = sorted({*gains, *losses, *(b for b, n in leadership_changes.items() if n)})
    header = f"  {'broker':>8}  {'gains':>7}  {'loses':>7}  {'leads':>7}"
    lines = [SectionLine(header, is_secondary=True)]
    lines += [
        SectionLine(
            f"  {broker:>8}  {_format_signed(gains[broker])}  {_format_signed(-losses[broker])}  "
            f"{_format_signed(leadership_changes[broker])}"
        )
        for broker in affected_brokers[:_MAX_BROKERS]
    ]
    if len(affected_brokers) > _MAX_BROKERS:
        lines.append(
            SectionLine(f"  … and {len(affected_brokers) - _MAX_BROKERS:,} more brokers", is_secondary=True)
        )
    return lines


def _format_signed(count: int) -> str:
    return f"{f'{count:+,}' if count else '·':>7}"
