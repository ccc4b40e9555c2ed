"""What a provider is: a package that knows one external system."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kdeclare.core.cleanup import Cleanup, CleanupRequest
from kdeclare.core.collector import Expected, Selection, Sighting
from kdeclare.core.connecting import Connects
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.examining import ExaminationRequest, Examined
from kdeclare.core.kind import Desired, Kind
from kdeclare.core.live_codec import LiveCodec
from kdeclare.core.operation_type import OperationType
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.planning import PlanHooks, PlanInputs, PlanSettings
from kdeclare.core.visibility import PendingWrite

CONTRACT = 1
"""The version of the provider contract. It is experimental: a later kdeclare may ask for another one."""


class Collects(Protocol):
    """A `core.collector.Collector` of whatever class of selections."""

    def collect(self, connections: Connections, selections: Iterable[Selection]) -> object | None:
        """Read what is selected; None where nothing is. Raises Fault."""

    def collect_expected(
        self, connections: Connections, selections: Iterable[Selection], expected: Expected
    ) -> Sighting | None:
        """Read what is selected, until what is expected is shown; None where nothing is. Raises Fault."""

    def identify(self, live: LiveState) -> str | None:
        """Return the id of the system that was read; None where it has none."""

    @property
    def codec(self) -> LiveCodec | None:
        """How its live state is kept in snapshots of fleets; None where it is not."""


@dataclass(frozen=True, slots=True)
class SectionLine:
    """One line of a `PlanSection`. is_secondary: whether it may stand back, as the head of a table does."""

    text: str
    is_secondary: bool = False


@dataclass(frozen=True, slots=True)
class PlanSection:
    """A paragraph about a plan as a whole, which people read below its changes."""

    title: str
    lines: tuple[SectionLine, ...]


@dataclass(frozen=True, slots=True)
class TypedSetting:
    """A setting in a command line, as a person typed it: ``key=value``.

    command: the words that the line begins with. option: whose value it is in; empty where it is an argument.
    """

    command: tuple[str, ...]
    option: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Provider:
    """What one package adds to kdeclare.

    kinds, operation_types: in the order in which they are listed.
    builds_on: names of providers whose resources this one's refer to; they are listed first.
    connection: how it connects to its system; None where it needs no connection of its own.
    examine: looks at its system for `doctor`, and raises nothing that a check can say. None: `doctor` only
        tries to connect, where an environment says how.
    collectors: how its live state is read.
    plan_settings: what project files can say for all of its plans; None where they say nothing.
    start_plan: makes the hooks of one plan; None where its kinds say all there is to say.
    find_invisible: returns the acknowledged writes that the system does not show yet; None for a system that
        shows every write at once. Raises Fault.
    find_principal: returns the principal that kdeclare is authenticated as. Raises Fault.
    auxiliary_kinds: names under which auxiliary operations of several resources stand. No resource of them is
        ever declared or owned.
    find_cleanup: finds what can be removed now of what earlier runs left behind; returns None if they left
        nothing for this provider. Raises Fault.
    describe_plan: says what the operations of a plan come to as a whole; None where the changes say all.
    is_secret_setting: says whether the value of a typed setting must stay out of histories and messages; None
        for a setting that it does not know. The value of a setting that no provider knows stays out.
    may_hold_secret: says whether what a manifest says under a key may be secret, so that nobody is shown the
        line; fields that a spec types as secret need not be named.
    find_contradictions: finds declared resources that cannot all be as declared whatever the system has,
        beyond what `SharesSettings` says.
    contract: the version of the contract that it was written for.
    """

    name: str
    kinds: tuple[Kind, ...]
    operation_types: tuple[OperationType, ...]
    builds_on: tuple[str, ...] = ()
    contract: int = CONTRACT
    connection: Connects | None = None
    examine: Callable[[ExaminationRequest], Examined] | None = None
    collectors: tuple[Collects, ...] = ()
    plan_settings: PlanSettings | None = None
    start_plan: Callable[[PlanInputs], PlanHooks] | None = None
    find_invisible: Callable[[Connections, Sequence[PendingWrite]], Sequence[PendingWrite]] | None = None
    find_principal: Callable[[Connections], str | None] | None = None
    find_cleanup: Callable[[CleanupRequest], Cleanup | None] | None = None
    auxiliary_kinds: frozenset[str] = frozenset()
    describe_plan: Callable[[Sequence[Operation]], PlanSection | None] | None = None
    is_secret_setting: Callable[[TypedSetting], bool | None] | None = None
    may_hold_secret: Callable[[str], bool] | None = None
    find_contradictions: Callable[[Sequence[Desired]], Sequence[Diagnostic]] | None = None
