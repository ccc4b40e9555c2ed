"""What a provider is: a package that knows one external system.

Besides what plans need, it can examine its system for `doctor`, say what goes on there right now for
`status`, and remove what runs left there for work that is over by now.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, summarize_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_texts
from kdeclare.core.live.collector import CollectResult, ExpectedObjects, PendingWrite, Selection
from kdeclare.core.live.live_codec import LiveCodec
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanSettings
from kdeclare.core.plans.run import MoveProgress
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.connection import AnyConnectionType, ConnectionContext
from kdeclare.core.resources.kind import DesiredResource, Kind

_Settings = TypeVar("_Settings", bound=BaseModel)


class CheckStatus(StrEnum):
    """How one thing stands, from good to bad."""

    OK = "ok"
    SKIPPED = "skipped"  # not looked at, or not in use here
    WARNING = "warning"  # something can not be done that one may want to do
    FAILED = "failed"  # nothing can be done until it is repaired


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    name: what it is. what: how it was found. why: what it is needed for. hint: what a person can do.
    """

    name: str
    standing: CheckStatus
    what: str
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class CheckSection:
    """Checks that belong together."""

    title: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class ExaminationRequest:
    """What is examined.

    settings: what the environment says of the system; None where the provider has no `ConnectionType`.
    surroundings: what leads to the system besides; None where the project file cannot be used, so that
        nothing can be looked at.
    desired: what the manifests declare, as far as they can be read.
    """

    settings: BaseModel | None = None
    surroundings: ConnectionContext | None = None
    desired: Sequence[DesiredResource] = ()

    def get_settings(self, model: type[_Settings]) -> _Settings:
        """Return the settings, which are of the provider's own model."""
        if not isinstance(self.settings, model):
            raise TypeError(f"settings of {type(self.settings).__name__}, not {model.__name__}")
        return self.settings


@dataclass(frozen=True, slots=True)
class ExaminationResult:
    """What was found. system_id: what states are bound to; None where it was not seen, or there is none."""

    sections: tuple[CheckSection, ...] = ()
    system_id: str | None = None


def build_error_check(name: str, standing: CheckStatus, problem: KdeclareError, purpose: str = "") -> Check:
    """Return a failure as a check: what was wrong, and what its own hint says."""
    hint = next((found.hint for found in problem.diagnostics if found.is_error and found.hint), "")
    return Check(name, standing, summarize_diagnostics(problem.diagnostics), purpose, hint)


@dataclass(frozen=True, slots=True)
class OngoingWork:
    """One object that the system is working on.

    before, after: what it is, and what it is going to be. run_id: the run that asked for it, if one did.
    note: what it waits for. verb: the operation whose work this is, where that is known.
    document: what the JSON document says of it under ``moves``; empty for what is listed under ``work``.
    """

    name: str
    before: JsonValue
    after: JsonValue
    run_id: str | None = None
    note: str = ""
    verb: str = ""
    document: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Activity:
    """What goes on in one system.

    headline: phrases in which all is summed up; none where all is quiet. quiet: what does not go on then.
    title: what stands above the ongoing work. notes: sentences below it.
    fields: what the JSON document has at its top.
    """

    headline: tuple[str, ...] = ()
    quiet: str = ""
    title: str = ""
    ongoing: tuple[OngoingWork, ...] = ()
    progress: MoveProgress | None = None
    notes: tuple[str, ...] = ()
    fields: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecentRuns:
    """What earlier runs did.

    cleanup: what they left to be removed. find: yields the latest runs, the last first, each with those of
    its operations that go on after their request; it reads files.
    """

    cleanup: PendingCleanup
    find: Callable[[], Iterable[tuple[str, Sequence[Operation]]]]


class ActivityWatch(Protocol):
    """Looks at one system again and again."""

    def look(self) -> tuple[Diagnostic, ...]:
        """Read what goes on, and return what could not be seen. Raises Fault.

        What earlier runs left open is settled after this, so that what work leaves behind is removed after
        a look has seen its end.
        """

    def describe(self, runs: RecentRuns) -> Activity:
        """Return what the last look has seen. Raises Fault."""


@dataclass(frozen=True, slots=True)
class CleanupRequest:
    """What a provider is asked.

    pending: what is to be removed, for all providers.
    patient: remove nothing until all work is over, so that a command that polls does not start a run each
        time a part of the work ends.
    """

    connections: Connections
    pending: PendingCleanup
    options: PlanOptions
    patient: bool = False


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What one provider can remove by now.

    operations: what removes it. ongoing: names of the work that is not over.
    pending: what is still to be removed; work that turned out to be over is no longer in it.
    """

    operations: tuple[Operation, ...]
    ongoing: tuple[str, ...]
    pending: PendingCleanup


def find_pending(pending: PendingCleanup, section: str) -> frozenset[str]:
    """Return the names in a section that is a list of names."""
    return frozenset(as_texts(pending.get(section, ())))


def with_pending(pending: PendingCleanup, section: str, names: Collection[str]) -> PendingCleanup:
    """Return the same with these names in a section, which goes where there are none."""
    other_sections = {name: value for name, value in pending.items() if name != section}
    return {**other_sections, section: sorted(names)} if names else other_sections


API_VERSION = "kdeclare/v1"
"""The ``apiVersion`` of kdeclare's own documents."""

CONTRACT = 1
"""The version of the provider contract. It is experimental: a later kdeclare may ask for another one."""


class AnyCollector(Protocol):
    """A `Collector` of whatever class of selections."""

    def collect(self, connections: Connections, selections: Iterable[Selection]) -> object | None:
        """Read what is selected; None where nothing is. Raises Fault."""

    def collect_expected(
        self, connections: Connections, selections: Iterable[Selection], expected: ExpectedObjects
    ) -> CollectResult | None:
        """Read what is selected, until what is expected is shown; None where nothing is. Raises Fault."""

    def reads(self, selections: Iterable[Selection]) -> bool:
        """Whether any of the selections is one that it reads."""

    def identify(self, live: LiveState) -> str | None:
        """Return the id of the system that was read; None where it has none."""

    @property
    def codec(self) -> LiveCodec | None:
        """How its live state is kept in snapshots of fleets; None where it is not."""


@dataclass(frozen=True, slots=True)
class ListedParts:
    """What a kind can count on: the kinds of all providers, and what its own provider lists."""

    kinds: frozenset[str]
    operation_types: tuple[OperationType, ...]
    collectors: tuple[AnyCollector, ...]


@runtime_checkable
class ChecksItsProvider(Protocol):
    """A kind that finds mistakes of its provider's author when the provider is loaded."""

    def find_mistakes(self, listed: ListedParts) -> Iterable[str]:
        """Return clauses such as ``"its operation type flag.create is not listed"``."""


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
    api_version: the ``apiVersion`` of its kinds' manifests, GROUP/VERSION. A group belongs to one
        distribution, and the group ``kdeclare`` to kdeclare, so that other providers state one of their own.
    builds_on: names of providers whose resources this one's refer to; they are listed first.
    connection: how it connects to its system; None where it needs no connection of its own.
    examine: looks at its system for `doctor`, and raises nothing that a check can say. None: `doctor` only
        tries to connect, where an environment says how.
    collectors: how its live state is read.
    plan_settings: what project files can say for all of its plans; None where they say nothing.
    start_plan: makes the hooks of one plan; None where its kinds say all there is to say.
    find_invisible: returns the acknowledged writes that the system does not show yet; None for a system that
        shows every write at once. Raises Fault.
    shows_all: tells, without a look at each write, whether its system shows all that was acknowledged. It is
        given the operation types of the writes, each with the kind of a resource that it wrote to. None, or
        False where it cannot tell: `find_invisible` looks at each. Raises Fault.
    find_principal: returns the principal that kdeclare is authenticated as, for policies about its kinds and
        for the record of overrides. None where its system has none. Raises Fault.
    auxiliary_kinds: names under which auxiliary operations of several resources stand. No resource of them is
        ever declared or owned.
    watch: begins to watch what goes on in its system, for `status`; None where nothing goes on by itself.
    find_cleanup: finds what can be removed now of what earlier runs left behind; returns None if they left
        nothing for this provider. Raises Fault.
    describe_plan: says what the operations of a plan come to as a whole; None where the changes say all.
    is_secret_setting: says whether the value of a typed setting must stay out of histories and messages; None
        for a setting that it does not know. The value of a setting that no provider knows stays out.
    may_hold_secret: says whether what a manifest says under a key may be secret, so that nobody is shown the
        line; fields that a spec types as secret need not be named.
    check_declared: finds mistakes between declared resources that all commands which load manifests report,
        such as names that the system takes for the same.
    find_contradictions: finds declared resources that cannot all be as declared whatever the system has,
        beyond what `SharesSettings` says.
    contract: the version of the contract that it was written for.
    """

    name: str
    kinds: tuple[Kind, ...]
    operation_types: tuple[OperationType, ...]
    builds_on: tuple[str, ...] = ()
    contract: int = CONTRACT
    api_version: str = API_VERSION
    connection: AnyConnectionType | None = None
    examine: Callable[[ExaminationRequest], ExaminationResult] | None = None
    collectors: tuple[AnyCollector, ...] = ()
    plan_settings: PlanSettings | None = None
    start_plan: Callable[[PlanInputs], PlanHooks] | None = None
    find_invisible: Callable[[Connections, Sequence[PendingWrite]], Sequence[PendingWrite]] | None = None
    shows_all: Callable[[Connections, Collection[tuple[str, str]]], bool] | None = None
    find_principal: Callable[[Connections], str | None] | None = None
    watch: Callable[[Connections], ActivityWatch] | None = None
    find_cleanup: Callable[[CleanupRequest], Cleanup | None] | None = None
    auxiliary_kinds: frozenset[str] = frozenset()
    describe_plan: Callable[[Sequence[Operation]], PlanSection | None] | None = None
    is_secret_setting: Callable[[TypedSetting], bool | None] | None = None
    may_hold_secret: Callable[[str], bool] | None = None
    check_declared: Callable[[Sequence[DesiredResource]], Iterable[Diagnostic]] | None = None
    find_contradictions: Callable[[Sequence[DesiredResource]], Sequence[Diagnostic]] | None = None
