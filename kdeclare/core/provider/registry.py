"""The kinds, operation types and codecs of the installed providers, by name.

An operation of an unknown type can be displayed, but not executed. `status`, `history` and recovery can
therefore read runs of newer versions of kdeclare, and runs of providers that are no longer installed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, overload

from pydantic import BaseModel

from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.live.live_codec import LiveCodec
from kdeclare.core.operations.operation import Operation, UnboundArguments, UndoResult
from kdeclare.core.operations.operation_type import OperationType, View
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.provider.deferred_provider import (
    AnyProvider,
    KindSource,
    list_kind_sources,
    list_own_kind_names,
    list_own_operation_type_names,
)
from kdeclare.core.provider.installed_providers import (
    load_providers,
    resolve_completely,
    resolve_provider,
    resolve_source,
)
from kdeclare.core.provider.kind_group import KindGroup
from kdeclare.core.provider.provider import API_VERSION, Provider
from kdeclare.core.resources.changes import FieldChange
from kdeclare.core.resources.kind import Kind
from kdeclare.core.secrets.secret_refs import SecretSource

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


_Value = TypeVar("_Value")
_Default = TypeVar("_Default")


class _ProviderMapping(Mapping[str, _Value]):
    """The kinds or the operation types of the providers of this process, by name.

    If the process later uses other providers, the mapping contains those of the other providers. The names in
    an outline are known without its definition, which is imported when one of its values is used.
    """

    def __init__(
        self,
        list_names: Callable[[KindSource], tuple[str, ...]],
        list_values: Callable[[Provider | KindGroup], tuple[_Value, ...]],
    ) -> None:
        self._list_names = list_names
        self._list_values = list_values
        self._providers: Sequence[AnyProvider] = ()
        self._sources: Mapping[str, tuple[AnyProvider, KindSource]] = {}
        self._values: dict[str, _Value] = {}

    def __getitem__(self, name: str) -> _Value:
        value = self._find_loaded(name)
        return value if value is not None else self._load_value(name)

    @overload
    def get(self, name: str, /) -> _Value | None: ...
    @overload
    def get(self, name: str, /, default: _Value | _Default) -> _Value | _Default: ...
    def get(self, name: str, /, default: _Default | None = None) -> _Value | _Default | None:
        """Return the value with this name; ``default`` if there is none."""
        # The method of `Mapping` is slower, because it calls ``__getitem__`` and catches its error.
        value = self._find_loaded(name)
        return value if value is not None else super().get(name, default)

    def _find_loaded(self, name: str) -> _Value | None:
        return self._values.get(name) if self._providers is load_providers() else None

    def _load_value(self, name: str) -> _Value:
        (_, source), values = self._find_sources()[name], self._values
        own_values = self._list_values(resolve_source(source))
        values.update(zip(self._list_names(source), own_values, strict=True))
        return values[name]

    def _find_sources(self) -> Mapping[str, tuple[AnyProvider, KindSource]]:
        """Return the provider of each name, and the provider or the group of kinds that lists the name."""
        providers = load_providers()
        if self._providers is not providers:
            self._sources = {
                name: (provider, source)
                for provider in providers
                for source in list_kind_sources(provider)
                for name in self._list_names(source)
            }
            self._values = {}
            self._providers = providers
        return self._sources

    def find_owner(self, name: str) -> AnyProvider | None:
        """Return the provider that defines the value; None if there is no such value. Imports nothing."""
        found = self._find_sources().get(name)
        return found[0] if found is not None else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._find_sources())

    def __len__(self) -> int:
        return len(self._find_sources())

    def __contains__(self, name: object) -> bool:
        return name in self._find_sources()


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
            codecs = {sort: codec for codec in list_codecs_of(providers) for sort in codec.sorts}
            self._made = (providers, codecs)
        return self._made[1]

    def __getitem__(self, name: str) -> LiveCodec:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())


_KINDS = _ProviderMapping[Kind](list_own_kind_names, lambda source: source.kinds)
KINDS: Mapping[str, Kind] = _KINDS
OPERATION_TYPES: Mapping[str, OperationType] = _OperationTypes(
    list_own_operation_type_names, lambda source: source.operation_types
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
    owner = _KINDS.find_owner(kind)
    return resolve_provider(owner) if owner is not None else None


def find_api_version(kind: str) -> str:
    """Return the ``apiVersion`` of a kind's manifests; ``kdeclare/v1`` if no provider defines the kind."""
    provider = _KINDS.find_owner(kind)
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


def load_codecs() -> tuple[LiveCodec, ...]:
    """Return the codecs that store the live state of all installed providers in snapshots."""
    return list_codecs_of(load_providers())


def list_cluster_sorts() -> frozenset[str]:
    """Return the object types, such as topics and ACL bindings, of the system that identifies a cluster.

    Names in other systems are unique only within an endpoint, and the name of an endpoint is local to its
    environment.
    """
    return frozenset(
        sort
        for provider in load_providers()
        if any(codec.identifies_system for codec in list_codecs_of([provider]))
        for codec in list_codecs_of([provider])
        for sort in codec.sorts
    )


def list_codecs_of(providers: Sequence[AnyProvider]) -> tuple[LiveCodec, ...]:
    """Return the codecs of these providers. Their definitions and groups of kinds are imported."""
    definitions = map(resolve_completely, providers)
    collectors = (collector for definition in definitions for collector in definition.collectors)
    return tuple(collector.codec for collector in collectors if collector.codec is not None)
