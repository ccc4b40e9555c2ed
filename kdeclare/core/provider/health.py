"""Health checks that fleet rollouts run between waves."""

from collections.abc import Callable

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import Connections


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Counts the problems of one type in a system. A healthy system has none of these problems.

    name: the name in fleet files, in kebab case.
    one, many: the singular and plural noun for the problems (``offline partition``, ``offline partitions``).
    count: returns the number of problems; 0 if the environment does not configure the system. Raises Fault.
    """

    name: str
    one: str
    many: str
    count: Callable[[Connections], int]

    def format(self, number: int) -> str:
        """Format a number of problems, such as ``2 offline partitions``."""
        return f"{number:,} {self.one if number == 1 else self.many}"
