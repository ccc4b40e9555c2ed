"""What a plan is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.judging import NO_POLICIES, Judge
from kdeclare.core.kind import Desired
from kdeclare.core.name_scope import NameScope
from kdeclare.core.parts import PlanOptions
from kdeclare.core.state import State
from kdeclare.core.visibility import VISIBILITY_TIMEOUT_S
from kdeclare.engine.planning.deletion_limit import DeletionLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanScope:
    """Which part of the project a plan is about, and what it may do.

    What each field means stands at `app.scope.Scope`, which people fill in. options: what was chosen about
    single systems; each part belongs to a provider.
    """

    complete: bool = True
    targets: frozenset[ResourceId] = frozenset()
    selector: Mapping[str, str] = field(default_factory=dict)
    allow_deletes: bool = False
    forget: frozenset[ResourceId] = frozenset()
    preflight: bool = True
    adopt: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)
    by_hand: bool = False
    removals: frozenset[ResourceId] = frozenset()
    deletes: frozenset[ResourceId] = frozenset()
    max_deletes: DeletionLimit | None = None
    allow_empty: bool = False
    protected: frozenset[ResourceId] = frozenset()
    visibility_timeout_s: float = VISIBILITY_TIMEOUT_S
    options: PlanOptions = field(default_factory=PlanOptions)

    @property
    def whole(self) -> bool:
        """Whether the plan is about the whole project: orphans exist only then."""
        return self.complete and not self.targets and not self.selector

    def covers(self, desired: Desired) -> bool:
        """Whether a declared resource is in the plan."""
        chosen = not self.targets or desired.id in self.targets
        return chosen and all(desired.labels.get(k) == v for k, v in self.selector.items())


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Desired and owned; live comes from the cluster while planning.

    state: None before the first apply.
    diagnostics: what loading the manifests said.
    names: which ones the project may declare or change.
    judge: the policies that every change has to pass.
    """

    project: str
    env: str
    cluster_name: str
    desired: tuple[Desired, ...]
    state: State | None
    scope: PlanScope = PlanScope()
    diagnostics: tuple[Diagnostic, ...] = ()
    judge: Judge = NO_POLICIES
    names: NameScope = field(default_factory=NameScope)

    @property
    def owned(self) -> Mapping[str, Json]:
        """The records of what is owned, by resource id."""
        return self.state.resources if self.state else {}
