"""All kinds and operation types of the installed providers, by name; and what is asked of every provider.

A verb that is not among them has a type that can be shown and never run: a run of a provider that is not
installed, or of a newer kdeclare, must not keep `status`, `history` and the recovery of later commands from
working.
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
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanSettings
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
from kdeclare.core.resources.kind import DesiredResource, Kind
from kdeclare.core.secrets.secret_refs import SecretSource, find_secret_fields

_EFFECT = "effect"


class UnknownOperationType(OperationType):
    """Sees nothing, does nothing, and cannot be undone."""

    arguments = UnboundArguments

    def __init__(self, name: str) -> None:
        self.name = name

    def select(self, op: Operation) -> Selections:
        """Nothing."""
        return ()

    def compute_view(self, op: Operation, live: LiveState) -> View:
        """Unknown, as nothing installed knows this type of operation."""
        return {_EFFECT: "unknown"}

    def expected_state(self, op: Operation) -> View:
        """That it was done, which nobody can tell."""
        return {_EFFECT: "done"}

    def fields(self, op: Operation) -> tuple[FieldChange, ...]:
        """None that could be told."""
        return ()

    def claims(self, op: Operation) -> Mapping[str, str]:
        """Itself."""
        return {_EFFECT: f"operation/{op.id}"}

    def get_batch_key(self, op: Operation) -> str:
        """Itself."""
        return op.id

    def list_produced_claims(self, op: Operation) -> frozenset[str]:
        """Nothing that could be told."""
        return frozenset()

    def execute(
        self,
        connections: Connections,
        ops: Sequence[Operation],
        secrets: SecretSource,
        *,
        validate_only: bool,
    ) -> Mapping[str, Result]:
        """A fault for each."""
        text = f"This kdeclare has no verb '{self.name}'."
        return {op.id: Fault("UNKNOWN_VERB", text, FaultKind.REFUSED) for op in ops}

    def invert(self, op: Operation, now: View, *, allow_data_loss: bool) -> UndoResult:
        """It cannot be undone here."""
        return UndoResult(lost=(f"what {self.name} did",))


_Value = TypeVar("_Value", covariant=True)


class _ProviderMapping(Mapping[str, _Value]):
    """A mapping that is made of the providers in use when it is first looked at, and again for others."""

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
        if cached_mapping is not None and cached_mapping[0] is load_providers():  # a plan asks for thousands
            return cached_mapping[1][name]
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __contains__(self, name: object) -> bool:
        return name in self._load()


class _OperationTypes(dict[str, OperationType]):
    """By name. A name that is not there (``in`` says so) stands for an operation type that does nothing."""

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
"""The codecs of live state, by the sorts of their objects."""


def get_operation_type(op: Operation) -> OperationType:
    """Return the type of an operation.

    One that does nothing where its provider is not installed, or knows other arguments.
    """
    if isinstance(op.args, UnboundArguments):
        return UnknownOperationType(op.verb)
    return OPERATION_TYPES[op.verb]


def find_provider(kind: str) -> Provider | None:
    """Return the provider of a kind; None where none that is installed brings it."""
    owning_providers = (p for p in load_providers() if any(known.name == kind for known in p.kinds))
    return next(owning_providers, None)


def find_api_version(kind: str) -> str:
    """Return the ``apiVersion`` of manifests of a kind; kdeclare's own for all that no provider brings."""
    provider = find_provider(kind)
    return provider.api_version if provider is not None else API_VERSION


def list_api_versions() -> tuple[str, ...]:
    """Return each ``apiVersion`` that a manifest can have, kdeclare's own first."""
    return tuple(dict.fromkeys((API_VERSION, *(provider.api_version for provider in load_providers()))))


def find_connection_settings() -> Mapping[str, type[BaseModel]]:
    """Return the models of what environments say under ``providers``, by the provider's name."""
    connections = {provider.name: provider.connection for provider in load_providers()}
    return {
        name: connection.settings
        for name, connection in connections.items()
        if connection is not None and not connection.environment_fields and connection.settings.model_fields
    }


def find_connected_providers(connections: Connections) -> Iterator[Provider]:
    """Find the providers that these connections lead to; others have nothing to say about their systems."""
    for provider in load_providers():
        if _is_connected(provider, connections):
            yield provider


def _is_connected(provider: Provider, connections: Connections) -> bool:
    return provider.connection is None or connections.offers(provider.connection.makes)


def find_plan_settings() -> tuple[PlanSettings, ...]:
    """Return what project files can say for all plans, of all installed providers."""
    return tuple(provider.plan_settings for provider in load_providers() if provider.plan_settings)


def load_collectors() -> tuple[AnyCollector, ...]:
    """Return the collectors of all installed providers. Raises KdeclareError where one cannot be used."""
    return tuple(collector for provider in load_providers() for collector in provider.collectors)


def find_collectors(
    connections: Connections, selections: Sequence[Selection] = ()
) -> tuple[AnyCollector, ...]:
    """Return the collectors of all providers that are connected, and any other that reads a selection.

    The latter is of a system that the environment does not name; reading it says so.
    """
    collectors: list[AnyCollector] = []
    for provider in load_providers():
        if _is_connected(provider, connections):
            collectors += provider.collectors
        elif provider.connection is not None and connections.is_unconfigured(provider.connection.makes):
            collectors += (collector for collector in provider.collectors if collector.reads(selections))
    return tuple(collectors)


def find_connected_kinds(connections: Connections) -> Mapping[str, Kind]:
    """Return the kinds of all providers that are connected, by name."""
    return {kind.name: kind for provider in find_connected_providers(connections) for kind in provider.kinds}


def find_auxiliary_kinds() -> frozenset[str]:
    """Return the names under which auxiliary operations of several resources stand."""
    return frozenset(name for provider in load_providers() for name in provider.auxiliary_kinds)


def load_codecs() -> tuple[LiveCodec, ...]:
    """Return how the live state of all installed providers is kept in snapshots."""
    return _find_codecs(load_providers())


def _find_codecs(providers: Sequence[Provider]) -> tuple[LiveCodec, ...]:
    collectors = (collector for provider in providers for collector in provider.collectors)
    return tuple(collector.codec for collector in collectors if collector.codec is not None)


def find_codecs(connections: Connections) -> tuple[LiveCodec, ...]:
    """Return the codecs of all providers that are connected."""
    return tuple(c.codec for c in find_collectors(connections) if c.codec is not None)


def build_snapshot_connections(codecs: Collection[LiveCodec]) -> Connections:
    """Return connections that cannot be opened, to the systems of which a snapshot has the live state.

    Hooks of plans are those of connected providers.
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

    An audit of a fleet has read everything before, and is connected to nothing: then of all providers.
    """
    participating_providers = (
        load_providers() if inputs.connections.is_empty else find_connected_providers(inputs.connections)
    )
    return tuple(provider.start_plan(inputs) for provider in participating_providers if provider.start_plan)


def find_invisible(connections: Connections, writes: Sequence[PendingWrite]) -> list[PendingWrite]:
    """Return the writes that their systems do not show yet. Raises Fault."""
    invisible_writes: list[PendingWrite] = []
    for provider in find_connected_providers(connections):
        if provider.find_invisible is not None:
            operation_type_names = {operation_type.name for operation_type in provider.operation_types}
            invisible_writes += provider.find_invisible(
                connections, [w for w in writes if w.operation.verb in operation_type_names]
            )
    return invisible_writes


def is_all_visible(connections: Connections, written_kinds: Collection[tuple[str, str]]) -> bool:
    """Tell, without a look at each write, whether systems show all that was written. Raises Fault.

    written_kinds: operation types, each with the kind of a resource that it wrote to.
    """
    for provider in find_connected_providers(connections):
        if provider.find_invisible is not None:
            operation_type_names = {operation_type.name for operation_type in provider.operation_types}
            own_kinds = frozenset(item for item in written_kinds if item[0] in operation_type_names)
            if own_kinds and not (provider.shows_all and provider.shows_all(connections, own_kinds)):
                return False
    return True


def find_principal(connections: Connections, kind: str) -> str | None:
    """Return the principal that kdeclare is authenticated as where resources of a kind are. Raises Fault.

    None if their system does not say, or is not connected: who kdeclare is to another system says nothing.
    """
    provider = find_provider(kind)
    if provider is None or provider.find_principal is None or not _is_connected(provider, connections):
        return None
    return provider.find_principal(connections)


def start_watches(connections: Connections) -> tuple[ActivityWatch, ...]:
    """Begin to watch what goes on in the systems of all providers that are connected."""
    return tuple(p.watch(connections) for p in find_connected_providers(connections) if p.watch is not None)


def describe_plan(operations: Sequence[Operation]) -> Iterator[PlanSection]:
    """Yield what providers say of the operations of a plan as a whole."""
    for provider in load_providers():
        section = provider.describe_plan(operations) if provider.describe_plan is not None else None
        if section is not None:
            yield section


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether the value of a typed setting is secret to any provider; None where none knows it."""
    answers = [p.is_secret_setting(setting) for p in load_providers() if p.is_secret_setting is not None]
    definite_answers = [answer for answer in answers if answer is not None]
    return any(definite_answers) if definite_answers else None


def find_cleanups(request: CleanupRequest) -> tuple[Cleanup, ...]:
    """Return what all installed providers can remove; each starts from what the one before left pending."""
    cleanups: list[Cleanup] = []
    for provider in find_connected_providers(request.connections):
        cleanup = provider.find_cleanup(request) if provider.find_cleanup else None
        if cleanup is not None:
            cleanups.append(cleanup)
            request = replace(request, pending=cleanup.pending)
    return tuple(cleanups)


def may_hold_secret(key: str) -> bool:
    """Return whether what a manifest says under a key may be secret, as any provider or spec has it."""
    providers = load_providers()
    return any(key in find_secret_fields(kind.spec) for kind in KINDS.values()) or any(
        provider.may_hold_secret(key) for provider in providers if provider.may_hold_secret
    )


def check_declared(desired: Sequence[DesiredResource]) -> Iterator[Diagnostic]:
    """Yield the mistakes between declared resources that providers find without their systems."""
    for provider in load_providers():
        if provider.check_declared is not None:
            yield from provider.check_declared(desired)


def find_contradictions(desired: Sequence[DesiredResource]) -> list[Diagnostic]:
    """Find declared resources that cannot all be as declared whatever the systems have."""
    diagnostics: list[Diagnostic] = []
    for provider in load_providers():
        if provider.find_contradictions is not None:
            diagnostics += provider.find_contradictions(desired)
    return diagnostics
