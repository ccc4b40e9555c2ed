"""What a plan is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired
from kdeclare.core.state import State
from kdeclare.engine.planning.deletion_limit import DeletionLimit
from kdeclare.manifests.name_scope import NameScope
from kdeclare.policy.configured import ConfiguredPolicy
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.visibility import VISIBILITY_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of the project a plan is about, and what it may do.

    complete: whether all of the project's manifests were loaded; what is not declared is orphaned only then.
    targets, selector: None and empty mean everything.
    await_moves: what someone else's move is in the way of waits for it, instead of being denied.
    override_moves: the partitions of someone else's move are sent elsewhere.
    adopt: whether what exists and is not owned is adopted although it differs (see `core.adoption`).
    overrides: policies whose denials are not heeded, each with the reason.
    deletes: orphans to delete, named one by one; they need no ``allow_deletes``.
    max_deletes: how many resources of a kind may be deleted; None is the default.
    allow_empty: whether a project that owns something may declare nothing.
    by_hand: what is desired is asked for by a command: it is compared as if nothing were owned, and nothing
        comes to be owned or is let go of. removals: what such a command deletes, owned or not. protected:
        those of them that manifests say must not be destroyed.
    delete_by_name: delete topics also where the cluster has no topic ids: then one that was created again
    under the same name is deleted in place of the one that was seen.
    visibility_timeout_s: how long to wait for brokers to show owned topics that exist.
    """

    complete: bool = True
    targets: frozenset[ResourceId] = frozenset()
    selector: Mapping[str, str] = field(default_factory=dict)
    allow_deletes: bool = False
    forget: frozenset[ResourceId] = frozenset()
    preflight: bool = True
    client_guard: bool = False
    await_moves: bool = False
    override_moves: bool = False
    adopt: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)
    by_hand: bool = False
    removals: frozenset[ResourceId] = frozenset()
    deletes: frozenset[ResourceId] = frozenset()
    max_deletes: DeletionLimit | None = None
    allow_empty: bool = False
    protected: frozenset[ResourceId] = frozenset()
    delete_by_name: bool = False
    visibility_timeout_s: float = VISIBILITY_TIMEOUT_S

    @property
    def whole(self) -> bool:
        """Whether the plan is about the whole project: orphans exist only then."""
        return self.complete and not self.targets and not self.selector

    def covers(self, desired: Desired) -> bool:
        """Whether a declared resource is in the plan."""
        chosen = not self.targets or desired.id in self.targets
        return chosen and all(desired.labels.get(k) == v for k, v in self.selector.items())


EVERYTHING = Scope()
"""All of the project, with nothing deleted and nothing forced."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Desired and owned; live comes from the cluster while planning.

    state: None before the first apply.
    diagnostics: what loading the manifests said.
    names: which ones the project may declare or change.
    pace: of moves whose manifest says nothing else. policies: what every change has to pass.
    """

    project: str
    env: str
    cluster_name: str
    desired: tuple[Desired, ...]
    state: State | None
    scope: Scope = Scope()
    diagnostics: tuple[Diagnostic, ...] = ()
    pace: Pace = field(default_factory=Pace)
    policies: tuple[ConfiguredPolicy, ...] = ()
    names: NameScope = field(default_factory=NameScope)
