"""Groups of kinds whose code is imported only by commands that use these kinds.

Most commands use only a few kinds. If a provider has many kinds, importing all of them would slow down every
command.
"""

from collections.abc import Callable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import AnyCollector
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs
from kdeclare.core.provider.outline import Outline, find_differences
from kdeclare.core.resources.kind import Kind


@dataclass(frozen=True, slots=True, eq=False)
class KindGroup:
    """Kinds of one provider that belong together, and everything that only these kinds need.

    kinds, operation_types, collectors, start_plan: see `Provider`. The group cannot contain parts that
    kdeclare needs even if no resource of its kinds exists.
    """

    kinds: tuple[Kind, ...] = ()
    operation_types: tuple[OperationType, ...] = ()
    collectors: tuple[AnyCollector, ...] = ()
    start_plan: Callable[[PlanInputs], PlanHooks] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DeferredKindGroup(Outline):
    """The outline of a group of kinds, and the function that imports its definition.

    package, kinds, operation_types: see `Outline`.
    import_definition: imports the definition; raises any exception that the import raises.
    """

    package: str
    kinds: tuple[str, ...]
    operation_types: tuple[str, ...]
    import_definition: Callable[[], KindGroup]

    def load(self) -> KindGroup:
        """Import and return the definition.

        Raises ValueError if the definition differs from the outline, and any exception that the import
        raises.
        """
        definition = self.import_definition()
        parts = {
            "kinds": (self.kinds, tuple(kind.name for kind in definition.kinds)),
            "operation_types": (self.operation_types, tuple(own.name for own in definition.operation_types)),
        }
        differences = list(find_differences(parts))
        if differences:
            raise ValueError(f"the outline of {self.package} {'; '.join(differences)}")
        return definition
