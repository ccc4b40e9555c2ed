"""The kinds and operation types of the installed providers, by name, and functions that query all providers.

An operation of an unknown type can be displayed, but not executed. `status`, `history` and recovery can
therefore read runs of newer versions of kdeclare, and runs of providers that are no longer installed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.live.collector import PendingWrite, Selection, Selections
from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.live.live_codec import LiveCodec
from kdeclare.core.operations.operation import Operation, UnboundArguments, UndoResult
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.observed_effect import EffectRequest, ObservedEffect
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanSettings
from kdeclare.core.provider.health import HealthCheck
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.provider import (
    API_VERSION,
    ActivityWatch,
    AnyCollector,
    Cleanup,
    CleanupRequest,
    PlanSection,
    Provider,
    TypedSetting,
)
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Kind
from kdeclare.core.secrets.secret_refs import SecretSource, find_secret_fields

_EFFECT = "effect"


class UnknownOperationType(OperationType):
    """A substitute for an unknown operation type. Its operations fail and cannot be undone."""

    arguments = UnboundArguments

    def __init__(self, name: str) -> None:
        self.name = name

    def select(self, op: Operation) -> Selections:
        """Return no selections."""
        return ()

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Return a view that says only that the effect of the operation is unknown."""
        return {_EFFECT: "unknown"}

    def expected_state(self, op: Operation) -> View:
        """Return a view that never equals the result of `compute_view`."""
        return {_EFFECT: "done"}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """Return no field changes, because kdeclare cannot interpret the arguments."""
        return ()

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Return a single claim, which contains the id of the operation."""
        return {_EFFECT: f"operation/{op.id}"}

    def get_batch_key(self, op: Operation) -> str:
        """Return the id of the operation. No two operations of a plan have the same id."""
        return op.id

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Return no claims, because the claims are unknown."""
        return frozenset()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """Execute nothing, and return a fault for each operation."""
        text = f"This version of kdeclare does not know the operation type '{self.name}'."
        return {op.id: Fault("UNKNOWN_VERB", text, FaultKind.REFUSED) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """Report that the changes of the operation cannot be undone."""
        return UndoResult(lost=(f"the changes made by {self.name}",))


_Value = TypeVar("_Value", covariant=True)


class _ProviderMapping(Mapping[str, _Value]):
    """A mapping that is built from the providers of this process on first access.

    If the process later uses other providers, the mapping is built again.
    """

    def __init__(self, build_mapping: Callable[[Sequence[Provider]], Mapping[str, _Value]]) -> None:
        self._make = build_mapping
        self._made: tuple[Sequence[Provider], Mapping[str, _Value]] | None = None

    def _load(self) -> Mapping[str, _Value]:
        providers = load_providers()
        if self._made is None or self._made[0] != providers:
            self._made = (providers, self._make(providers))
        return self._made[1]

    def __getitem__(self, name: str) -> _Value:
        cached_mapping = self._made
        if cached_mapping is not None and cached_mapping[0] is load_providers():  # called very often
            return cached_mapping[1][name]
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __contains__(self, name: object) -> bool:
        return name in self._load()


class _OperationTypes(dict[str, OperationType]):
    """Operation types by name. For an unknown name, the value is an `UnknownOperationType`."""

    def __missing__(self, name: str) -> OperationType:
        return UnknownOperationType(name)


KINDS: Mapping[str, Kind] = _ProviderMapping(
    lambda providers: {kind.name: kind for p in providers for kind in p.kinds}
)
OPERATION_TYPES: Mapping[str, OperationType] = _ProviderMapping(
    lambda providers: _OperationTypes({t.name: t for p in providers for t in p.operation_types})
)
CODECS: Mapping[str, LiveCodec] = _ProviderMapping(
    lambda providers: {sort: codec for codec in _find_codecs(providers) for sort in codec.sorts}
)
"""The codecs of live state, by type of object."""


def get_operation_type(op: Operation) -> OperationType:
    """Return the type of an operation.

    Return an `UnknownOperationType` if the provider is not installed or does not accept the arguments.
    """
    if isinstance(op.args, UnboundArguments):
        return UnknownOperationType(op.verb)
    return OPERATION_TYPES[op.verb]


def find_provider(kind: str) -> Provider | None:
    """Return the provider of a kind; None if no installed provider defines it."""
    owning_providers = (p for p in load_providers() if any(known.name == kind for known in p.kinds))
    return next(owning_providers, None)


def find_api_version(kind: str) -> str:
    """Return the ``apiVersion`` of a kind's manifests; ``kdeclare/v1`` if no provider defines the kind."""
    provider = find_provider(kind)
    return provider.api_version if provider is not None else API_VERSION


def list_api_versions() -> tuple[str, ...]:
    """Return each ``apiVersion`` that a manifest can have, with ``kdeclare/v1`` first."""
    return tuple(dict.fromkeys((API_VERSION, *(provider.api_version for provider in load_providers()))))


def find_connection_settings() -> Mapping[str, type[BaseModel]]:
    """Return the models of the settings under ``providers`` in environments, by provider name."""
    connections = {provider.name: provider.connection for provider in load_providers()}
    return {
        name: connection.settings
        for name, connection in connections.items()
        if connection is not None
        and not (connection.environment_fields or connection.environment_field)
        and connection.settings.model_fields
    }


def find_environment_settings() -> Mapping[str, tuple[str, type[BaseModel]]]:
    """Return the fields that providers add to environments, each with the provider's name and the model."""
    return {
        provider.connection.environment_field: (provider.name, provider.connection.settings)
        for provider in load_providers()
        if provider.connection is not None and provider.connection.environment_field is not None
    }


def find_connected_providers(connections: Connections) -> Iterator[Provider]:
    """Return the providers that these connections belong to."""
    for provider in load_providers():
        if _is_connected(provider, connections):
            yield provider


def _is_connected(provider: Provider, connections: Connections) -> bool:
    return provider.connection is None or connections.offers(provider.connection.makes)


def find_plan_settings() -> tuple[PlanSettings, ...]:
    """Return the settings that the installed providers define for all plans."""
    return tuple(provider.plan_settings for provider in load_providers() if provider.plan_settings)


def load_collectors() -> tuple[AnyCollector, ...]:
    """Return the collectors of all installed providers. Raises KdeclareError if a provider is broken."""
    return tuple(collector for provider in load_providers() for collector in provider.collectors)


def find_collectors(
    connections: Connections, selections: Sequence[Selection] = ()
) -> tuple[AnyCollector, ...]:
    """Return the collectors of all connected providers, and the collectors that read one of the selections.

    If a selection refers to a system that the environment does not configure, the result includes the
    collector of this system. This collector raises an error when it reads.
    """
    collectors: list[AnyCollector] = []
    for provider in load_providers():
        if _is_connected(provider, connections):
            collectors += provider.collectors
        elif provider.connection is not None and connections.is_unconfigured(provider.connection.makes):
            collectors += (collector for collector in provider.collectors if collector.reads(selections))
    return tuple(collectors)


def find_connected_kinds(connections: Connections) -> Mapping[str, Kind]:
    """Return the kinds of all connected providers, by name."""
    return {kind.name: kind for provider in find_connected_providers(connections) for kind in provider.kinds}


def find_auxiliary_kinds() -> frozenset[str]:
    """Return the names under which plans list operations that only support other operations."""
    return frozenset(name for provider in load_providers() for name in provider.auxiliary_kinds)


def load_codecs() -> tuple[LiveCodec, ...]:
    """Return the codecs that store the live state of all installed providers in snapshots."""
    return _find_codecs(load_providers())


def list_cluster_sorts() -> frozenset[str]:
    """Return the object types, such as topics and ACL bindings, of the system that identifies a cluster.

    Names in other systems are unique only within an endpoint, and the name of an endpoint is local to its
    environment.
    """
    return frozenset(
        sort
        for provider in load_providers()
        if any(codec.identifies_system for codec in _find_codecs([provider]))
        for codec in _find_codecs([provider])
        for sort in codec.sorts
    )


def _find_codecs(providers: Sequence[Provider]) -> tuple[LiveCodec, ...]:
    collectors = (collector for provider in providers for collector in provider.collectors)
    return tuple(collector.codec for collector in collectors if collector.codec is not None)


def find_codecs(connections: Connections) -> tuple[LiveCodec, ...]:
    """Return the codecs of all connected providers."""
    return tuple(c.codec for c in find_collectors(connections) if c.codec is not None)


def build_snapshot_connections(codecs: Collection[LiveCodec]) -> Connections:
    """Return placeholders for connections to the systems whose live state is in a snapshot.

    The placeholders cannot be opened. They mark the providers of these systems as connected, so that planning
    uses the hooks of these providers.
    """

    def reject_connection() -> object:
        raise LookupError("a snapshot has no connection")

    connection_types = (
        p.connection.makes for p in load_providers() if p.connection and _has_codec(p, codecs)
    )
    return Connections(openers=dict.fromkeys(connection_types, reject_connection))


def _has_codec(provider: Provider, codecs: Collection[LiveCodec]) -> bool:
    return any(collector.codec in codecs for collector in provider.collectors)


def start_plan(inputs: PlanInputs) -> tuple[PlanHooks, ...]:
    """Return the hooks of all connected providers for one plan.

    If there are no connections, return the hooks of all providers. Fleet audits have no connections, because
    the live state was read earlier.
    """
    participating_providers = (
        load_providers() if inputs.connections.is_empty else find_connected_providers(inputs.connections)
    )
    return tuple(provider.start_plan(inputs) for provider in participating_providers if provider.start_plan)


def find_invisible(connections: Connections, writes: Sequence[PendingWrite]) -> list[PendingWrite]:
    """Return the acknowledged writes that systems do not show yet. Raises Fault."""
    invisible_writes: list[PendingWrite] = []
    for provider in find_connected_providers(connections):
        if provider.find_invisible is not None:
            operation_type_names = {operation_type.name for operation_type in provider.operation_types}
            invisible_writes += provider.find_invisible(
                connections, [w for w in writes if w.operation.verb in operation_type_names]
            )
    return invisible_writes


def is_all_visible(connections: Connections, written_kinds: Collection[tuple[str, str]]) -> bool:
    """Return True if a quick check shows that all acknowledged writes are visible in the systems.

    Raises Fault.

    written_kinds: the pairs of operation type and resource kind that occur in the writes.
    """
    for provider in find_connected_providers(connections):
        if provider.find_invisible is not None:
            operation_type_names = {operation_type.name for operation_type in provider.operation_types}
            own_kinds = frozenset(item for item in written_kinds if item[0] in operation_type_names)
            if own_kinds and not (provider.shows_all and provider.shows_all(connections, own_kinds)):
                return False
    return True


def find_principal(connections: Connections, kind: str) -> str | None:
    """Return kdeclare's authenticated principal in the system that contains the resources of a kind.

    Return None if the system does not report the principal or is not connected. Raises Fault.
    """
    provider = find_provider(kind)
    if provider is None or provider.find_principal is None or not _is_connected(provider, connections):
        return None
    return provider.find_principal(connections)


def start_watches(connections: Connections) -> tuple[ActivityWatch, ...]:
    """Start observing ongoing work in the systems of all connected providers."""
    return tuple(p.watch(connections) for p in find_connected_providers(connections) if p.watch is not None)


def describe_plan(plan: Plan) -> Iterator[PlanSection]:
    """Yield the paragraphs of all providers about a plan: about its operations, and about blocked changes.

    Operations whose arguments no installed provider accepts are left out.
    """
    operations, blocked_operations = (
        tuple(op for op in ops if not isinstance(op.args, UnboundArguments))
        for ops in (plan.operations, plan.blocked_operations)
    )
    for provider in load_providers():
        if provider.describe_plan is not None:
            yield from provider.describe_plan(operations)
        if provider.describe_blocked is not None:
            yield from provider.describe_blocked(blocked_operations)


def observe_effects(request: EffectRequest) -> Iterator[ObservedEffect]:
    """Yield the observed effects of a run, together with the predictions of its plan. Raises Fault."""
    for provider in find_connected_providers(request.connections):
        if provider.observe_effects is None:
            continue
        kinds = {kind.name for kind in provider.kinds}
        own_predictions = [p for p in request.predictions if ResourceId.parse(p.resource).kind in kinds]
        if own_predictions:
            yield from provider.observe_effects(replace(request, predictions=own_predictions))


def find_health_checks() -> Mapping[str, HealthCheck]:
    """Return the health checks of all providers, by name."""
    return {check.name: check for provider in load_providers() for check in provider.health_checks}


def find_guards() -> Mapping[str, str]:
    """Return the names of the guards of all providers, each with a hint for users."""
    return {name: hint for provider in load_providers() for name, hint in provider.guards.items()}


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether any provider treats a typed setting as secret; None if no provider knows the setting."""
    answers = [p.is_secret_setting(setting) for p in load_providers() if p.is_secret_setting is not None]
    definite_answers = [answer for answer in answers if answer is not None]
    return any(definite_answers) if definite_answers else None


def find_cleanups(request: CleanupRequest) -> tuple[Cleanup, ...]:
    """Return the cleanups that the connected providers can do now.

    Each provider receives the pending cleanup that remains after the cleanup of the previous provider.
    """
    cleanups: list[Cleanup] = []
    for provider in find_connected_providers(request.connections):
        cleanup = provider.find_cleanup(request) if provider.find_cleanup else None
        if cleanup is not None:
            cleanups.append(cleanup)
            request = replace(request, pending=cleanup.pending)
    return tuple(cleanups)


def may_hold_secret(key: str) -> bool:
    """Whether any provider or spec marks the values of this manifest key as possible secrets."""
    providers = load_providers()
    return any(key in find_secret_fields(kind.spec) for kind in KINDS.values()) or any(
        provider.may_hold_secret(key) for provider in providers if provider.may_hold_secret
    )


def check_declared(desired: Sequence[DesiredResource]) -> Iterator[Diagnostic]:
    """Yield diagnostics about mistakes in declared resources that providers can find without a connection."""
    for provider in load_providers():
        if provider.check_declared is not None:
            yield from provider.check_declared(desired)


def find_contradictions(desired: Sequence[DesiredResource]) -> list[Diagnostic]:
    """Return errors about declared resources that contradict each other, regardless of the live state."""
    diagnostics: list[Diagnostic] = []
    for provider in load_providers():
        if provider.find_contradictions is not None:
            diagnostics += provider.find_contradictions(desired)
    return diagnostics
