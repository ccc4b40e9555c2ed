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
from kdeclare.core.provider.deferred_provider import (
    AnyProvider,
    DeferredProvider,
    list_kind_names,
    list_operation_type_names,
)
from kdeclare.core.provider.health import HealthCheck
from kdeclare.core.provider.installed_providers import load_providers, resolve_provider
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
    """The kinds or the operation types of the providers of this process, by name.

    If the process later uses other providers, the mapping contains those of the other providers. The names of
    a deferred provider are known without its definition, which is imported when one of its values is used.
    """

    def __init__(
        self,
        list_names: Callable[[AnyProvider], tuple[str, ...]],
        list_values: Callable[[Provider], tuple[_Value, ...]],
    ) -> None:
        self._list_names = list_names
        self._list_values = list_values
        self._providers: Sequence[AnyProvider] = ()
        self._owners: Mapping[str, AnyProvider] = {}
        self._values: dict[str, _Value] = {}

    def __getitem__(self, name: str) -> _Value:
        if self._providers is load_providers():  # called very often
            value = self._values.get(name)
            if value is not None:
                return value
        return self._load_value(name)

    def _load_value(self, name: str) -> _Value:
        owner, values = self._find_owners()[name], self._values
        own_values = self._list_values(resolve_provider(owner))
        values.update(zip(self._list_names(owner), own_values, strict=True))
        return values[name]

    def _find_owners(self) -> Mapping[str, AnyProvider]:
        providers = load_providers()
        if self._providers is not providers:
            self._owners = {name: provider for provider in providers for name in self._list_names(provider)}
            self._values = {}
            self._providers = providers
        return self._owners

    def __iter__(self) -> Iterator[str]:
        return iter(self._find_owners())

    def __len__(self) -> int:
        return len(self._find_owners())

    def __contains__(self, name: object) -> bool:
        return name in self._find_owners()


class _OperationTypes(_ProviderMapping[OperationType]):
    """Operation types by name. For an unknown name, the value is an `UnknownOperationType`."""

    def _load_value(self, name: str) -> OperationType:
        return super()._load_value(name) if name in self else UnknownOperationType(name)


class _Codecs(Mapping[str, LiveCodec]):
    """The codecs of live state, by type of object. The first use imports the definitions of all providers."""

    def __init__(self) -> None:
        self._made: tuple[Sequence[AnyProvider], Mapping[str, LiveCodec]] | None = None

    def _load(self) -> Mapping[str, LiveCodec]:
        providers = load_providers()
        if self._made is None or self._made[0] is not providers:
            codecs = {sort: codec for codec in _find_codecs(providers) for sort in codec.sorts}
            self._made = (providers, codecs)
        return self._made[1]

    def __getitem__(self, name: str) -> LiveCodec:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())


KINDS: Mapping[str, Kind] = _ProviderMapping[Kind](list_kind_names, lambda provider: provider.kinds)
OPERATION_TYPES: Mapping[str, OperationType] = _OperationTypes(
    list_operation_type_names, lambda provider: provider.operation_types
)
CODECS: Mapping[str, LiveCodec] = _Codecs()


def get_operation_type(op: Operation) -> OperationType:
    """Return the type of an operation.

    Return an `UnknownOperationType` if the provider is not installed or does not accept the arguments.
    """
    if isinstance(op.args, UnboundArguments):
        return UnknownOperationType(op.verb)
    return OPERATION_TYPES[op.verb]


def find_provider(kind: str) -> Provider | None:
    """Return the provider of a kind; None if no installed provider defines it."""
    owner = _find_owner(kind)
    return resolve_provider(owner) if owner is not None else None


def _find_owner(kind: str) -> AnyProvider | None:
    return next((provider for provider in load_providers() if kind in list_kind_names(provider)), None)


def find_api_version(kind: str) -> str:
    """Return the ``apiVersion`` of a kind's manifests; ``kdeclare/v1`` if no provider defines the kind."""
    provider = _find_owner(kind)
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
            yield resolve_provider(provider)


def _is_connected(provider: AnyProvider, connections: Connections) -> bool:
    return provider.connection is None or connections.offers(provider.connection.makes)


def find_plan_settings() -> tuple[PlanSettings, ...]:
    """Return the settings that the installed providers define for all plans."""
    return tuple(p.plan_settings for p in _list_complete_providers() if p.plan_settings)


def _list_complete_providers() -> Iterator[Provider]:
    """Yield the providers that are not deferred: those that matter even if no resource of theirs exists."""
    return (provider for provider in load_providers() if isinstance(provider, Provider))


def _find_concerned(
    *, kinds: Collection[str] = (), operation_types: Collection[str] = ()
) -> Iterator[Provider]:
    """Yield all providers, except for deferred providers that define none of these names."""
    for provider in load_providers():
        if (
            isinstance(provider, Provider)
            or any(name in kinds for name in provider.kinds)
            or any(name in operation_types for name in provider.operation_types)
        ):
            yield resolve_provider(provider)


def _find_connected(
    connections: Connections, *, kinds: Collection[str] = (), operation_types: Collection[str] = ()
) -> Iterator[Provider]:
    """Yield the connected providers among those that `_find_concerned` yields."""
    for provider in _find_concerned(kinds=kinds, operation_types=operation_types):
        if _is_connected(provider, connections):
            yield provider


def find_collectors_of(live: LiveState) -> tuple[AnyCollector, ...]:
    """Return the collectors that can identify or describe the systems of this live state.

    Raises KdeclareError if a provider is broken.
    """
    return tuple(
        collector
        for provider in load_providers()
        if isinstance(provider, Provider) or provider.defines_type_of(live)
        for collector in resolve_provider(provider).collectors
    )


def find_collectors(
    connections: Connections, selections: Sequence[Selection] = ()
) -> tuple[AnyCollector, ...]:
    """Return the collectors of all connected providers, and the collectors that read one of the selections.

    The collectors of a deferred provider are left out if they read none of the selections.
    If a selection refers to a system that the environment does not configure, the result includes the
    collector of this system. This collector raises an error when it reads.
    """
    collectors: list[AnyCollector] = []
    for provider in load_providers():
        if isinstance(provider, DeferredProvider) and not provider.defines_type_of(selections):
            continue
        if _is_connected(provider, connections):
            collectors += resolve_provider(provider).collectors
        elif provider.connection is not None and connections.is_unconfigured(provider.connection.makes):
            own_collectors = resolve_provider(provider).collectors
            collectors += (collector for collector in own_collectors if collector.reads(selections))
    return tuple(collectors)


def find_connected_kinds(connections: Connections) -> Mapping[str, Kind]:
    """Return the kinds of all connected providers, by name."""
    return {kind.name: kind for provider in find_connected_providers(connections) for kind in provider.kinds}


def find_auxiliary_kinds() -> frozenset[str]:
    """Return the names under which plans list operations that only support other operations."""
    return frozenset(name for provider in _list_complete_providers() for name in provider.auxiliary_kinds)


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


def _find_codecs(providers: Sequence[AnyProvider]) -> tuple[LiveCodec, ...]:
    collectors = (collector for provider in providers for collector in resolve_provider(provider).collectors)
    return tuple(collector.codec for collector in collectors if collector.codec is not None)


def find_codecs(connections: Connections) -> tuple[LiveCodec, ...]:
    """Return the codecs of all connected providers."""
    return _find_codecs(tuple(find_connected_providers(connections)))


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


def _has_codec(provider: AnyProvider, codecs: Collection[LiveCodec]) -> bool:
    return any(codec in codecs for codec in _find_codecs([provider]))


def start_plan(inputs: PlanInputs) -> tuple[PlanHooks, ...]:
    """Return the hooks of all connected providers for one plan.

    If there are no connections, return the hooks of all providers. Fleet audits have no connections, because
    the live state was read earlier. A deferred provider takes part only if the plan has resources or live
    state of the provider, or if the environment configures its system.
    """
    connections = inputs.connections
    participating_providers = [
        resolve_provider(provider)
        for provider in load_providers()
        if connections.is_empty or _is_connected(provider, connections)
        if isinstance(provider, Provider) or _is_part_of_plan(provider, inputs)
    ]
    return tuple(provider.start_plan(inputs) for provider in participating_providers if provider.start_plan)


def _is_part_of_plan(provider: DeferredProvider, inputs: PlanInputs) -> bool:
    if provider.connection is not None and inputs.connections.has_settings(provider.connection.makes):
        return True
    owned = inputs.state.resources if inputs.state is not None else {}
    return (
        provider.defines_type_of(inputs.live)
        or any(item.id.kind in provider.kinds for item in inputs.desired)
        or any(name.partition("/")[0] in provider.kinds for name in owned)
    )


def find_invisible(connections: Connections, writes: Sequence[PendingWrite]) -> list[PendingWrite]:
    """Return the acknowledged writes that systems do not show yet. Raises Fault."""
    invisible_writes: list[PendingWrite] = []
    for provider in _find_connected(connections, operation_types={write.operation.verb for write in writes}):
        if provider.find_invisible is not None:
            operation_type_names = list_operation_type_names(provider)
            invisible_writes += provider.find_invisible(
                connections, [w for w in writes if w.operation.verb in operation_type_names]
            )
    return invisible_writes


def is_all_visible(connections: Connections, written_kinds: Collection[tuple[str, str]]) -> bool:
    """Return True if a quick check shows that all acknowledged writes are visible in the systems.

    Raises Fault.

    written_kinds: the pairs of operation type and resource kind that occur in the writes.
    """
    for provider in _find_connected(connections, operation_types={verb for verb, _ in written_kinds}):
        if provider.find_invisible is not None:
            operation_type_names = list_operation_type_names(provider)
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
    return tuple(p.watch(connections) for p in _find_connected(connections) if p.watch is not None)


def describe_plan(plan: Plan) -> Iterator[PlanSection]:
    """Yield the paragraphs of all providers about a plan: about its operations, and about blocked changes.

    Operations whose arguments no installed provider accepts are left out.
    """
    operations, blocked_operations = (
        tuple(op for op in ops if not isinstance(op.args, UnboundArguments))
        for ops in (plan.operations, plan.blocked_operations)
    )
    verbs = {op.verb for op in (*operations, *blocked_operations)}
    for provider in _find_concerned(operation_types=verbs):
        if provider.describe_plan is not None:
            yield from provider.describe_plan(operations)
        if provider.describe_blocked is not None:
            yield from provider.describe_blocked(blocked_operations)


def observe_effects(request: EffectRequest) -> Iterator[ObservedEffect]:
    """Yield the observed effects of a run, together with the predictions of its plan. Raises Fault."""
    kinds = {ResourceId.parse(prediction.resource).kind for prediction in request.predictions}
    for provider in _find_connected(request.connections, kinds=kinds):
        if provider.observe_effects is None:
            continue
        own_kinds = list_kind_names(provider)
        own_predictions = [p for p in request.predictions if ResourceId.parse(p.resource).kind in own_kinds]
        if own_predictions:
            yield from provider.observe_effects(replace(request, predictions=own_predictions))


def find_health_checks() -> Mapping[str, HealthCheck]:
    """Return the health checks of all providers, by name."""
    providers = map(resolve_provider, load_providers())
    return {check.name: check for provider in providers for check in provider.health_checks}


def find_guards() -> Mapping[str, str]:
    """Return the names of the guards of all providers, each with a hint for users."""
    return {name: hint for provider in _list_complete_providers() for name, hint in provider.guards.items()}


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether any provider treats a typed setting as secret; None if no provider knows the setting."""
    providers = map(resolve_provider, load_providers())
    answers = [p.is_secret_setting(setting) for p in providers if p.is_secret_setting is not None]
    definite_answers = [answer for answer in answers if answer is not None]
    return any(definite_answers) if definite_answers else None


def find_cleanups(request: CleanupRequest) -> tuple[Cleanup, ...]:
    """Return the cleanups that the connected providers can do now.

    Each provider receives the pending cleanup that remains after the cleanup of the previous provider.
    """
    cleanups: list[Cleanup] = []
    for provider in _find_connected(request.connections):
        cleanup = provider.find_cleanup(request) if provider.find_cleanup else None
        if cleanup is not None:
            cleanups.append(cleanup)
            request = replace(request, pending=cleanup.pending)
    return tuple(cleanups)


def may_hold_secret(key: str) -> bool:
    """Whether any provider or spec marks the values of this manifest key as possible secrets."""
    providers = map(resolve_provider, load_providers())
    return any(key in find_secret_fields(kind.spec) for kind in KINDS.values()) or any(
        provider.may_hold_secret(key) for provider in providers if provider.may_hold_secret
    )


def check_declared(desired: Sequence[DesiredResource]) -> Iterator[Diagnostic]:
    """Yield diagnostics about mistakes in declared resources that providers can find without a connection."""
    for provider in _find_concerned(kinds={item.id.kind for item in desired}):
        if provider.check_declared is not None:
            yield from provider.check_declared(desired)


def find_contradictions(desired: Sequence[DesiredResource]) -> list[Diagnostic]:
    """Return errors about declared resources that contradict each other, regardless of the live state."""
    diagnostics: list[Diagnostic] = []
    for provider in _find_concerned(kinds={item.id.kind for item in desired}):
        if provider.find_contradictions is not None:
            diagnostics += provider.find_contradictions(desired)
    return diagnostics
