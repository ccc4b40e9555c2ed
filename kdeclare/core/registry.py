"""All kinds and operation types of the installed providers, by name; and what is asked of every provider."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from pydantic import BaseModel

from kdeclare.core.arguments import UnboundArguments
from kdeclare.core.cleanup import Cleanup, CleanupRequest
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.installed_providers import InstalledProvider, choose_providers, load_providers
from kdeclare.core.kind import Desired, Kind
from kdeclare.core.live_codec import LiveCodec
from kdeclare.core.operation_type import OperationType
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections
from kdeclare.core.planning import PlanHooks, PlanInputs, PlanSettings
from kdeclare.core.provider import Collects, PlanSection, Provider, TypedSetting
from kdeclare.core.secrets import find_secret_fields
from kdeclare.core.unknown_operation import UnknownOperationType
from kdeclare.core.visibility import PendingWrite

_Value = TypeVar("_Value", covariant=True)


class _Loaded(Mapping[str, _Value]):
    """A mapping that is made when it is first looked at."""

    def __init__(self, load: Callable[[], Mapping[str, _Value]]) -> None:
        self._load = cache(load)

    def forget(self) -> None:
        """Make it again when it is looked at next."""
        self._load.cache_clear()

    def __getitem__(self, name: str) -> _Value:
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


_kinds = _Loaded(lambda: {kind.name: kind for p in load_providers() for kind in p.kinds})
_operation_types = _Loaded(
    lambda: _OperationTypes({t.name: t for p in load_providers() for t in p.operation_types})
)
_codecs = _Loaded(lambda: {sort: codec for codec in load_codecs() for sort in codec.sorts})
KINDS: Mapping[str, Kind] = _kinds
OPERATION_TYPES: Mapping[str, OperationType] = _operation_types
CODECS: Mapping[str, LiveCodec] = _codecs
"""The codecs of live state, by the sorts of their objects."""


def use_providers(providers: Sequence[InstalledProvider] | None) -> None:
    """Have this process use these providers and no others; None is what is installed.

    Tasks of Spark call it with what their driver uses. Raises KdeclareError where one is missing here.
    """
    if choose_providers(providers):
        for loaded in (_kinds, _operation_types, _codecs):
            loaded.forget()


def type_of(op: Operation) -> OperationType:
    """Return the type of an operation.

    One that does nothing where its provider is not installed, or knows other arguments.
    """
    if isinstance(op.args, UnboundArguments):
        return UnknownOperationType(op.verb)
    return OPERATION_TYPES[op.verb]


def find_connection_settings() -> Mapping[str, type[BaseModel]]:
    """Return the models of what environments say under ``providers``, by the provider's name."""
    connections = {provider.name: provider.connection for provider in load_providers()}
    return {
        name: connection.settings
        for name, connection in connections.items()
        if connection is not None and not connection.environment_fields and connection.settings.model_fields
    }


def find_connected(connections: Connections) -> Iterator[Provider]:
    """Find the providers that these connections lead to; others have nothing to say about their systems."""
    for provider in load_providers():
        if provider.connection is None or connections.offers(provider.connection.makes):
            yield provider


def find_plan_settings() -> tuple[PlanSettings, ...]:
    """Return what project files can say for all plans, of all installed providers."""
    return tuple(provider.plan_settings for provider in load_providers() if provider.plan_settings)


def load_collectors() -> tuple[Collects, ...]:
    """Return the collectors of all installed providers. Raises KdeclareError where one cannot be used."""
    return tuple(collector for provider in load_providers() for collector in provider.collectors)


def find_collectors(connections: Connections) -> tuple[Collects, ...]:
    """Return the collectors of all providers that are connected."""
    return tuple(collector for provider in find_connected(connections) for collector in provider.collectors)


def find_auxiliary_kinds() -> frozenset[str]:
    """Return the names under which auxiliary operations of several resources stand."""
    return frozenset(name for provider in load_providers() for name in provider.auxiliary_kinds)


def load_codecs() -> tuple[LiveCodec, ...]:
    """Return how the live state of all installed providers is kept in snapshots."""
    return tuple(collector.codec for collector in load_collectors() if collector.codec is not None)


def find_codecs(connections: Connections) -> tuple[LiveCodec, ...]:
    """Return the codecs of all providers that are connected."""
    return tuple(c.codec for c in find_collectors(connections) if c.codec is not None)


def offer_snapshot(codecs: Collection[LiveCodec]) -> Connections:
    """Return connections that cannot be opened, to the systems of which a snapshot has the live state.

    Hooks of plans are those of connected providers.
    """

    def refuse() -> object:
        raise LookupError("a snapshot has no connection")

    made = (p.connection.makes for p in load_providers() if p.connection and _has_codec(p, codecs))
    return Connections(openers=dict.fromkeys(made, refuse))


def _has_codec(provider: Provider, codecs: Collection[LiveCodec]) -> bool:
    return any(collector.codec in codecs for collector in provider.collectors)


def start_plan(inputs: PlanInputs) -> tuple[PlanHooks, ...]:
    """Return the hooks of all connected providers for one plan.

    An audit of a fleet has read everything before, and is connected to nothing: then of all providers.
    """
    taking_part = load_providers() if inputs.connections.is_empty else find_connected(inputs.connections)
    return tuple(provider.start_plan(inputs) for provider in taking_part if provider.start_plan)


def find_invisible(connections: Connections, writes: Sequence[PendingWrite]) -> list[PendingWrite]:
    """Return the writes that their systems do not show yet. Raises Fault."""
    found: list[PendingWrite] = []
    for provider in find_connected(connections):
        if provider.find_invisible is not None:
            own = {operation_type.name for operation_type in provider.operation_types}
            found += provider.find_invisible(connections, [w for w in writes if w.operation.verb in own])
    return found


def find_principal(connections: Connections) -> str | None:
    """Return the principal that kdeclare is authenticated as; None if no system says. Raises Fault."""
    for provider in find_connected(connections):
        found = provider.find_principal(connections) if provider.find_principal else None
        if found is not None:
            return found
    return None


def describe_plan(operations: Sequence[Operation]) -> Iterator[PlanSection]:
    """Yield what providers say of the operations of a plan as a whole."""
    for provider in load_providers():
        section = provider.describe_plan(operations) if provider.describe_plan is not None else None
        if section is not None:
            yield section


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether the value of a typed setting is secret to any provider; None where none knows it."""
    found = [p.is_secret_setting(setting) for p in load_providers() if p.is_secret_setting is not None]
    known = [answer for answer in found if answer is not None]
    return any(known) if known else None


def find_cleanups(request: CleanupRequest) -> tuple[Cleanup, ...]:
    """Return what all installed providers can remove; each starts from what the one before left pending."""
    found: list[Cleanup] = []
    for provider in find_connected(request.connections):
        cleanup = provider.find_cleanup(request) if provider.find_cleanup else None
        if cleanup is not None:
            found.append(cleanup)
            request = replace(request, pending=cleanup.pending)
    return tuple(found)


def may_hold_secret(key: str) -> bool:
    """Return whether what a manifest says under a key may be secret, as any provider or spec has it."""
    providers = load_providers()
    return any(key in find_secret_fields(kind.spec) for kind in KINDS.values()) or any(
        provider.may_hold_secret(key) for provider in providers if provider.may_hold_secret
    )


def find_contradictions(desired: Sequence[Desired]) -> list[Diagnostic]:
    """Find declared resources that cannot all be as declared whatever the systems have."""
    found: list[Diagnostic] = []
    for provider in load_providers():
        if provider.find_contradictions is not None:
            found += provider.find_contradictions(desired)
    return found
