"""The section of a plan that counts the records that groups skip or read again."""

from collections.abc import Iterable

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.core.units import format_count, join_nonempty
from kdeclare.providers.kafka.consumer_group.arguments import AlterOffsetsArgs
from kdeclare.providers.kafka.consumer_group.operations import AlterOffsets

_MAX_PARTITIONS = 50
"""The maximum number of partitions that the section lists for one group."""
_NOTHING = "no record skipped or read again"
_AUTO_RESET = "consumers start at the position that auto.offset.reset determines"


def build_offsets_section(operations: Iterable[Operation]) -> PlanSection | None:
    """Describe for each partition how many records the group skips or reads again."""
    lines: list[SectionLine] = []
    for op in operations:
        if op.verb == AlterOffsets.name:
            lines += _build_group_lines(op)
    return PlanSection("Records", tuple(lines)) if lines else None


def _build_group_lines(op: Operation) -> list[SectionLine]:
    partitions = get_arguments(op, AlterOffsetsArgs).partitions
    counts = {name: change.count_skipped() for name, change in partitions.items()}
    known = [count for count in counts.values() if count is not None]
    skipped, reread = sum(n for n in known if n > 0), -sum(n for n in known if n < 0)
    total = join_nonempty(
        [
            f"{format_count(reread, 'record')} read again" if reread else "",
            f"{format_count(skipped, 'record')} skipped" if skipped else "",
        ]
    )
    if all(change.after is None for change in partitions.values()):
        total = _AUTO_RESET
    elif not known:
        total = "no committed offsets to compare with"
    lines = [SectionLine(f"{op.resource}: {total or _NOTHING}")]
    width = max(map(len, counts))
    for name, count in list(counts.items())[:_MAX_PARTITIONS]:
        lines.append(SectionLine(f"  {name:<{width}}  {_describe_count(count, name, op)}"))
    if len(counts) > _MAX_PARTITIONS:
        lines.append(
            SectionLine(f"  … and {len(counts) - _MAX_PARTITIONS:,} more partitions", is_secondary=True)
        )
    return lines


def _describe_count(count: int | None, name: str, op: Operation) -> str:
    change = get_arguments(op, AlterOffsetsArgs).partitions[name]
    if count is None and change.after is None:
        return "no committed offset afterwards"
    if count is None:
        remaining = (
            None if change.log is None or change.after is None else change.log.end - change.after.offset
        )
        note = f", {format_count(max(0, remaining), 'record')} to read" if remaining is not None else ""
        return f"no committed offset before{note}"
    if count == 0:
        return _NOTHING
    return f"{format_count(abs(count), 'record')} {'skipped' if count > 0 else 'read again'}"
