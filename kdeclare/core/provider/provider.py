"""The definition of a provider: a package that supports one external system.

In addition to planning and applying changes, a provider can check its system for `doctor`, report ongoing
work for `status`, and clean up after earlier runs.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, summarize_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_texts
from kdeclare.core.line_diff import LineDiff
from kdeclare.core.live.collector import AnyCollector, PendingWrite
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import OperationType
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.observed_effect import EffectRequest, ObservedEffect
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanSettings
from kdeclare.core.plans.run import MoveProgress
from kdeclare.core.plans.state import PendingCleanup
from kdeclare.core.provider.connection import AnyConnectionType, ConnectionContext
from kdeclare.core.provider.health import HealthCheck
from kdeclare.core.provider.kind_group import DeferredKindGroup
from kdeclare.core.resources.kind import DesiredResource, Kind

_Settings = TypeVar("_Settings", bound=BaseModel)


class CheckStatus(StrEnum):
    """The possible results of a check, from best to worst."""

    OK = "ok"
    SKIPPED = "skipped"  # not checked, or not used here
    WARNING = "warning"  # some functions do not work
    FAILED = "failed"  # nothing works until the problem is fixed


@dataclass(frozen=True, slots=True)
class Check:
    """One check of `doctor`.

    name: the name of the checked item. what: the result, as a phrase. why: the purpose of the item.
    hint: what the user can do to fix a problem.
    """

    name: str
    standing: CheckStatus
    what: str
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class CheckSection:
    """A group of related checks.

    manifest: a manifest that makes checks of this section succeed once it is applied; empty if there is none.
    """

    title: str
    checks: tuple[Check, ...]
    manifest: str = ""


@dataclass(frozen=True, slots=True)
class ExaminationRequest:
    """The inputs of `Provider.examine`.

    settings: the environment's settings for the system; None if the provider has no `ConnectionType`.
    surroundings: the other inputs of a connection; None if the project file is invalid. The provider then
        cannot check the system.
    desired: the declared resources from all manifests that can be read.
    kinds: the kinds that the user asked about, in addition to the declared kinds.
    """

    settings: BaseModel | None = None
    surroundings: ConnectionContext | None = None
    desired: Sequence[DesiredResource] = ()
    kinds: frozenset[str] = frozenset()

    def get_settings(self, model: type[_Settings]) -> _Settings:
        """Return the settings as an instance of ``model``. Raises TypeError if they have a different type."""
        if not isinstance(self.settings, model):
            raise TypeError(f"expected {model.__name__}, got {type(self.settings).__name__}")
        return self.settings


@dataclass(frozen=True, slots=True)
class ExaminationResult:
    """The results of `doctor` for one provider. system_id: the id of the system; None if unknown."""

    sections: tuple[CheckSection, ...] = ()
    system_id: str | None = None


def build_error_check(name: str, standing: CheckStatus, problem: KdeclareError, purpose: str = "") -> Check:
    """Return a check with the given status, and with the message and the hint of the error."""
    hint = next((found.hint for found in problem.diagnostics if found.is_error and found.hint), "")
    return Check(name, standing, summarize_diagnostics(problem.diagnostics), purpose, hint)


@dataclass(frozen=True, slots=True)
class OngoingWork:
    """One object that the system is working on.

    before: the current value. after: the target value.
    run_id: the id of the run that requested the work; None if the run is unknown.
    note: a phrase that explains what the work is waiting for.
    verb: the operation type that the work belongs to, if known.
    document: the fields of the object under ``moves`` in the JSON document; empty if the document lists the
        object under ``work``.
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
    """The ongoing work in one system.

    headline: phrases that summarize the work; empty if there is no work.
    quiet: the phrase to display if there is no work.
    title: the heading above the ongoing work. notes: sentences below the ongoing work.
    fields: top-level fields of the JSON document.
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
    """Data about earlier runs, for reports about ongoing work.

    cleanup: the pending cleanup of the runs.
    find: reads the journals, and yields the ids of the latest runs, the most recent first. Each id comes with
        the operations whose work continues after the request.
    """

    cleanup: PendingCleanup
    find: Callable[[], Iterable[tuple[str, Sequence[Operation]]]]


class ActivityWatch(Protocol):
    """Observes the ongoing work of one system."""

    def look(self) -> tuple[Diagnostic, ...]:
        """Read the ongoing work, and return diagnostics about work that could not be read. Raises Fault.

        Commands call this method before they clean up after earlier runs, because they must not remove
        temporary settings of work that has not ended.
        """

    def describe(self, runs: RecentRuns) -> Activity:
        """Return the ongoing work that the last call of `look` read. Raises Fault."""


@dataclass(frozen=True, slots=True)
class CleanupRequest:
    """The inputs of a cleanup.

    pending: the pending cleanup of all providers.
    patient: whether to postpone the cleanup until all work has ended. A command that polls sets this to True,
        because it would otherwise start a cleanup run each time a part of the work ends.
    """

    connections: Connections
    pending: PendingCleanup
    options: PlanOptions
    patient: bool = False


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The cleanup that one provider can do now.

    operations: the operations of the cleanup.
    ongoing: the names of the objects, such as partitions, on which work has not ended yet.
    pending: the pending cleanup that remains, without entries for work that has ended.
    """

    operations: tuple[Operation, ...]
    ongoing: tuple[str, ...]
    pending: PendingCleanup


def find_pending(pending: PendingCleanup, section: str) -> frozenset[str]:
    """Return the names in a section of the pending cleanup; empty if there is no such section."""
    return frozenset(as_texts(pending.get(section, ())))


def with_pending(pending: PendingCleanup, section: str, names: Collection[str]) -> PendingCleanup:
    """Return a copy of the pending cleanup in which the section contains exactly these names.

    If ``names`` is empty, the copy omits the section.
    """
    other_sections = {name: value for name, value in pending.items() if name != section}
    return {**other_sections, section: sorted(names)} if names else other_sections


API_VERSION = "kdeclare/v1"
"""The ``apiVersion`` of kdeclare's own documents."""

CONTRACT = 1
"""The version of the provider contract.

The contract is experimental: later versions of kdeclare can require a different contract version.
"""


@dataclass(frozen=True, slots=True)
class ListedParts:
    """The kinds, operation types and collectors that a kind uses to check the definition of its provider.

    kinds: the kinds of all providers. operation_types, collectors: those of the kind's own provider or, if
        the kind is in a group, those of the group.
    """

    kinds: frozenset[str]
    operation_types: tuple[OperationType, ...]
    collectors: tuple[AnyCollector, ...]


@runtime_checkable
class ChecksItsProvider(Protocol):
    """A kind that detects mistakes in the definition of its provider when the provider is loaded."""

    def find_mistakes(self, listed: ListedParts) -> Iterable[str]:
        """Return the mistakes as clauses, such as ``"its operation type flag.create is not listed"``."""


@dataclass(frozen=True, slots=True)
class SectionLine:
    """One line of a `PlanSection`.

    is_secondary: whether to de-emphasize the line, like a table heading.
    sign: ``+`` for a line about something that is gained, ``-`` for something that is lost, ``=`` for
        something that stays; empty for any other line. Reports show the sign, with a color.
    """

    text: str
    is_secondary: bool = False
    sign: Literal["", "+", "-", "="] = ""


@dataclass(frozen=True, slots=True)
class TextComparison:
    """Two texts that reports for reviewers show side by side. The texts must not contain secrets.

    title: the heading, such as the id of a resource.
    compare: compares all lines of the texts. Reports that do not show the texts do not call this function.
    """

    title: str
    compare: Callable[[], LineDiff]


@dataclass(frozen=True, slots=True)
class PlanSection:
    """A paragraph about a plan as a whole, displayed below the changes.

    is_for_reviews: whether HTML pages and comments on pull requests show the paragraph, too.
    comparisons: texts that these pages and comments show below the lines.
    """

    title: str
    lines: tuple[SectionLine, ...]
    is_for_reviews: bool = False
    comparisons: tuple[TextComparison, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedSetting:
    """A setting that the user typed on a command line: ``key=value``.

    command: the first words of the command line. option: the option whose value is the setting; empty if the
        setting is an argument.
    """

    command: tuple[str, ...]
    option: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Provider:
    """The definition of one provider, which a package adds to kdeclare.

    kinds, operation_types: the kinds and operation types, in display order.
    kind_groups: groups of more kinds. A command imports a group only if it uses the kinds of the group.
    api_version: the ``apiVersion`` of its kinds' manifests, GROUP/VERSION. Each group belongs to one Python
        package. The group ``kdeclare`` belongs to kdeclare, so packages of other authors must use a different
        group.
    builds_on: the names of providers to whose resources this provider's resources refer. kdeclare lists those
        providers first.
    connection: connects to the provider's system; None if the provider needs no connection.
    examine: checks the system for `doctor`. Failures are reported as checks, not raised. If ``examine`` is
        None, `doctor` only tries to connect, and only if the environment contains the settings.
    collectors: read the live state of the system.
    plan_settings: settings in project files for all plans; None if the provider has no such settings.
    start_plan: creates the hooks of one plan; None if the provider needs no hooks.
    find_invisible: returns the acknowledged writes that the system does not show yet; None for a system that
        shows every write immediately. Raises Fault.
    shows_all: returns True if the system certainly shows every acknowledged write. This quick check receives
        pairs of operation type and resource kind instead of the writes themselves. If ``shows_all`` is None
        or returns False, ``find_invisible`` checks each write. Raises Fault.
    find_principal: returns the authenticated principal of kdeclare in the system, for policies about the
        provider's kinds and for the record of overrides. None if the system has no principals. Raises Fault.
    auxiliary_kinds: names under which plans list operations that only support the operations of several
        resources. No resource of these kinds is ever declared or owned.
    watch: starts observing ongoing work in the system, for `status`; None if no work in the system continues
        after a request.
    find_cleanup: plans the cleanup of earlier runs that is possible now; returns None if there is no cleanup.
        Raises Fault.
    guards: the names of the verdicts of `PlanHooks.guard`, each with a hint for users: how to change the
        manifests, and which option permits the operations. Policies cannot have these names.
    health_checks: the checks that fleet rollouts can make between waves.
    describe_plan: yields paragraphs about the combined effect of a plan's operations; None if the provider
        has no such paragraphs.
    describe_blocked: like ``describe_plan``, but receives the operations of blocked changes, from kinds with
        the capability `PlansBlockedChanges`.
    observe_effects: yields the observed effects of a run, for those predictions of the plan
        (`PlanHooks.observe_impact`) whose result can be observed directly after the run. An implementation
        sends a bounded number of requests, and only those that these predictions need. It reports effects
        that it cannot read as `EffectStatus.UNKNOWN`. Raises Fault. None if the provider predicts nothing.
    is_secret_setting: returns whether histories and messages must not contain the value of a typed setting;
        None if the provider does not know the setting. If no provider knows a setting, its value is hidden.
    may_hold_secret: returns whether the value of a key in a manifest is possibly a secret. Lines with such a
        key are never displayed. Fields that a spec declares as secret are always hidden.
    check_declared: finds mistakes that involve several declared resources, such as names that the system
        treats as the same name. All commands that load manifests report these mistakes.
    find_contradictions: finds declared resources that contradict each other regardless of the live state, in
        addition to contradictions found through `SharesSettings`.
    contract: the version of the contract that the provider was written for.
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
    kind_groups: tuple[DeferredKindGroup, ...] = ()
    plan_settings: PlanSettings | None = None
    start_plan: Callable[[PlanInputs], PlanHooks] | None = None
    find_invisible: Callable[[Connections, Sequence[PendingWrite]], Sequence[PendingWrite]] | None = None
    shows_all: Callable[[Connections, Collection[tuple[str, str]]], bool] | None = None
    find_principal: Callable[[Connections], str | None] | None = None
    watch: Callable[[Connections], ActivityWatch] | None = None
    find_cleanup: Callable[[CleanupRequest], Cleanup | None] | None = None
    auxiliary_kinds: frozenset[str] = frozenset()
    guards: Mapping[str, str] = field(default_factory=dict)
    health_checks: tuple[HealthCheck, ...] = ()
    describe_plan: Callable[[Sequence[Operation]], Iterable[PlanSection]] | None = None
    describe_blocked: Callable[[Sequence[Operation]], Iterable[PlanSection]] | None = None
    observe_effects: Callable[[EffectRequest], Iterable[ObservedEffect]] | None = None
    is_secret_setting: Callable[[TypedSetting], bool | None] | None = None
    may_hold_secret: Callable[[str], bool] | None = None
    check_declared: Callable[[Sequence[DesiredResource]], Iterable[Diagnostic]] | None = None
    find_contradictions: Callable[[Sequence[DesiredResource]], Sequence[Diagnostic]] | None = None
