"""Measure the time to link operations by their footprints, relative to the time to sort the operations by id.

    python -m benchmarks.linking [COUNT …]

Half of the operations create objects, and half require objects: 90 % require an object by name, and 10 %
require ten objects by their common prefix. For each count, the output contains the number of edges, the CPU
time for linking in milliseconds, the CPU time for sorting the operations by id (the baseline), and the ratio
of these times.
"""

import sys
import time
from dataclasses import dataclass

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.footprint import Access, Footprint, FootprintEntry, Prefix
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.provider import registry
from kdeclare.core.provider.registry import OPERATION_TYPES, UnknownOperationType
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.operation_graph import link_operations

COUNTS = (2_500, 5_000, 10_000, 20_000, 40_000)
_ROUNDS = 7
_OBJECT = "bench.object"


@dataclass(frozen=True)
class Touches(Arguments):
    """Arguments that contain the footprint of their operation."""

    touches: tuple[FootprintEntry, ...]


class Step(UnknownOperationType):
    """An operation type whose footprint is in its arguments."""

    def __init__(self, name: str, *, creates: bool) -> None:
        super().__init__(name)
        self.creates = creates

    def compute_footprint(self, op: Operation) -> Footprint:
        """See `core.operations.operation_type`."""
        return get_arguments(op, Touches).touches


def operations(count: int) -> list[Operation]:
    """Build ``count`` operations: one half creates objects, and the other half requires these objects."""
    made: list[Operation] = []
    for number in range(count // 2):
        name = f"object-{number:06}"
        needed = Prefix(name[:-1]) if number % 10 == 0 else name
        for verb, key, access in (
            ("bench.make", name, Access.CREATE),
            ("bench.use", needed, Access.REQUIRES),
        ):
            args = Touches((FootprintEntry(_OBJECT, key, access),))
            made.append(Operation(f"{verb}:{name}", verb, ResourceId("Bench", name), args, {}))
    return made


def measure(count: int) -> str:
    """Measure several rounds, and return a line of the table with the best times."""
    given = operations(count)
    linking, sorting, edges = [], [], 0
    for _ in range(_ROUNDS):
        begin = time.process_time()
        linked = link_operations(given).operations
        between = time.process_time()
        sorted(given, key=lambda op: op.id)
        linking.append(between - begin)
        sorting.append(time.process_time() - between)
        edges = sum(len(op.needs) for op in linked)
    ratio = min(linking) / min(sorting)
    return f"{count:>9,}  {edges:>7,}  {min(linking) * 1e3:>8.1f}  {min(sorting) * 1e3:>8.1f}  {ratio:>6.1f}"


def main(arguments: list[str]) -> None:
    """Print the table."""
    registry.OPERATION_TYPES = {  # replaces the registry only in this process
        **OPERATION_TYPES,
        "bench.make": Step("bench.make", creates=True),
        "bench.use": Step("bench.use", creates=False),
    }
    print(f"{'resources':>9}  {'edges':>7}  {'link ms':>8}  {'sort ms':>8}  {'ratio':>6}")
    for count in map(int, arguments or map(str, COUNTS)):
        print(measure(count))


if __name__ == "__main__":
    main(sys.argv[1:])
