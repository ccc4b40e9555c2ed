"""The planning hooks of groups of kinds, which are imported only for plans that concern them."""

from collections.abc import Sequence

from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs
from kdeclare.core.provider.installed_providers import resolve_group
from kdeclare.core.provider.kind_group import DeferredKindGroup
from kdeclare.core.provider.outline import list_planned_kinds


class GroupHooks:
    """The planning hooks of a provider's groups of kinds, for one plan.

    The hooks of a group are started only if the plan has resources, live state or operations of the group.
    """

    def __init__(self, groups: Sequence[DeferredKindGroup], inputs: PlanInputs) -> None:
        """Start the hooks of the groups whose resources or live state are part of the plan."""
        self._groups = groups
        self._inputs = inputs
        self._started: dict[DeferredKindGroup, PlanHooks | None] = {}
        planned_kinds = list_planned_kinds(inputs)
        self.start([group for group in groups if group.is_part_of_plan(planned_kinds, inputs.live)])

    def list_started(self) -> tuple[PlanHooks, ...]:
        """Return the hooks that have been started, in the order of the groups."""
        return self._in_order

    def list_for(self, operations: Sequence[Operation]) -> tuple[PlanHooks, ...]:
        """Return the hooks that have been started. First start those of all groups with operations."""
        self.start([group for group in self._groups if group.has_operation(operations)])
        return self._in_order

    def start(self, groups: Sequence[DeferredKindGroup]) -> None:
        """Start the hooks of these groups, unless they have been started."""
        for group in groups:
            if group not in self._started:
                start_plan = resolve_group(group).start_plan
                self._started[group] = None if start_plan is None else start_plan(self._inputs)
        hooks = (self._started.get(group) for group in self._groups)
        self._in_order = tuple(own_hooks for own_hooks in hooks if own_hooks is not None)
