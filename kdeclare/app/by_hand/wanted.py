"""What a command by hand asks for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired
from kdeclare.providers.kafka.config.wishes import UNKNOWN_CONFIG


def certain(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The errors among them; whether a key is unknown is for the cluster to say."""
    return tuple(d for d in diagnostics if d.is_error and d.code != UNKNOWN_CONFIG)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a command asks for, as far as it can be had.

    failed: what cannot, by resource. left_out: resources of which nothing is to be done, with the reason.
    diagnostics: about what is left, of resources. All resources are named once, over all four.
    """

    desired: tuple[Desired, ...] = ()
    removals: frozenset[ResourceId] = frozenset()
    failed: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def is_left(self) -> bool:
        """Whether there is anything that has not failed."""
        ids = {str(desired.id) for desired in self.desired} | {str(id_) for id_ in self.removals}
        return not ids <= self.failed.keys()
