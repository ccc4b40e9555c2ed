"""Functions that ask all installed or all connected providers, and combine the answers."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.live.collector import AnyCollector, PendingWrite, Selection
from kdeclare.core.live.live_codec import LiveCodec
from kdeclare.core.operations.operation import UnboundArguments
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.observed_effect import EffectRequest, ObservedEffect
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanSettings
from kdeclare.core.provider.deferred_provider import (
    AnyProvider,
    DeferredProvider,
    list_kind_names,
    list_kind_sources,
    list_operation_type_names,
)
from kdeclare.core.provider.health import HealthCheck
from kdeclare.core.provider.installed_providers import (
    load_providers,
    resolve_completely,
    resolve_provider,
    resolve_source,
)
from kdeclare.core.provider.outline import list_planned_kinds
from kdeclare.core.provider.provider import (
    ActivityWatch,
    Cleanup,
    CleanupRequest,
    PlanSection,
    Provider,
    TypedSetting,
)
from kdeclare.core.provider.registry import KINDS, find_provider, list_codecs_of
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Kind
from kdeclare.core.secrets.secret_refs import find_secret_fields


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
        for source in list_kind_sources(provider)
        if isinstance(source, Provider) or source.defines_type_of(live)
        for collector in resolve_source(source).collectors
    )


def find_collectors(
    connections: Connections, selections: Sequence[Selection] = ()
) -> tuple[AnyCollector, ...]:
    """Return the collectors of all connected providers, and the collectors that read one of the selections.

    The collectors of deferred providers and groups of kinds are left out if they read none of the selections.
    If a selection refers to a system that the environment does not configure, the result includes the
    collector of this system. This collector raises an error when it reads.
    """
    collectors: list[AnyCollector] = []
    for provider in load_providers():
        own_collectors = [
            collector
            for source in list_kind_sources(provider)
            if isinstance(source, Provider) or source.defines_type_of(selections)
            for collector in resolve_source(source).collectors
        ]
        if _is_connected(provider, connections):
            collectors += own_collectors
        elif provider.connection is not None and connections.is_unconfigured(provider.connection.makes):
            collectors += (collector for collector in own_collectors if collector.reads(selections))
    return tuple(collectors)


def find_connected_kinds(connections: Connections) -> Mapping[str, Kind]:
    """Return the kinds of all connected providers, by name."""
    providers = map(resolve_completely, find_connected_providers(connections))
    return {kind.name: kind for provider in providers for kind in provider.kinds}


def find_auxiliary_kinds() -> frozenset[str]:
    """Return the names under which plans list operations that only support other operations."""
    return frozenset(name for provider in _list_complete_providers() for name in provider.auxiliary_kinds)


def find_codecs(connections: Connections) -> tuple[LiveCodec, ...]:
    """Return the codecs of all connected providers."""
    return list_codecs_of(tuple(find_connected_providers(connections)))


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
    return any(codec in codecs for codec in list_codecs_of([provider]))


def start_plan(inputs: PlanInputs) -> tuple[PlanHooks, ...]:
    """Return the hooks of all connected providers for one plan.

    If there are no connections, return the hooks of all providers. Fleet audits have no connections, because
    the live state was read earlier. A deferred provider takes part only if the plan has resources or live
    state of the provider, or if the environment configures its system.
    """
    connections, planned_kinds = inputs.connections, list_planned_kinds(inputs)
    participating_providers = [
        resolve_provider(provider)
        for provider in load_providers()
        if connections.is_empty or _is_connected(provider, connections)
        if isinstance(provider, Provider) or _is_part_of_plan(provider, inputs, planned_kinds)
    ]
    return tuple(provider.start_plan(inputs) for provider in participating_providers if provider.start_plan)


def _is_part_of_plan(provider: DeferredProvider, inputs: PlanInputs, planned_kinds: Set[str]) -> bool:
    if provider.connection is not None and inputs.connections.has_settings(provider.connection.makes):
        return True
    return provider.is_part_of_plan(planned_kinds, inputs.live)


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
