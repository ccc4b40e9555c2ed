"""Outlines, which state only the names of what a deferred definition contains."""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Protocol

from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState
from kdeclare.core.plans.plan_hooks import PlanInputs


class Outline(Protocol):
    """The outline of a provider, or of a group of its kinds, whose definition is imported on first use.

    package: the Python package that contains all code of the definition, including the classes of its
        selections and of its live state.
    kinds, operation_types: the names of the kinds and operation types, in display order.
    """

    package: str
    kinds: tuple[str, ...]
    operation_types: tuple[str, ...]

    def defines_type_of(self, values: Iterable[object]) -> bool:
        """Whether the class of one of the values belongs to the package."""
        modules = {type(value).__module__ for value in values}  # there can be thousands of values
        return any(f"{module}.".startswith(f"{self.package}.") for module in modules)

    def has_operation(self, operations: Iterable[Operation]) -> bool:
        """Whether one of the operations has one of the operation types."""
        return any(op.verb in self.operation_types for op in operations)

    def is_part_of_plan(self, planned_kinds: Set[str], live: LiveState) -> bool:
        """Whether a plan contains resources of these kinds, or live state of the package.

        planned_kinds: the result of `list_planned_kinds`.
        """
        return not planned_kinds.isdisjoint(self.kinds) or self.defines_type_of(live)


def list_planned_kinds(inputs: PlanInputs) -> frozenset[str]:
    """Return the kinds of all declared and owned resources of a plan."""
    owned = inputs.state.resources if inputs.state is not None else {}
    return frozenset(item.id.kind for item in inputs.desired) | {name.partition("/")[0] for name in owned}


def find_differences(parts: Mapping[str, tuple[object, object]]) -> Iterator[str]:
    """Yield a clause for each part whose value in the outline differs from that in the definition."""
    for name, (outlined, defined) in parts.items():
        if outlined != defined:
            yield f"states {name}={outlined!r}, but its definition has {defined!r}"
