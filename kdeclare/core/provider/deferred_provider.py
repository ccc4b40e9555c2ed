"""Providers whose code is imported only by commands that use it.

The definition of a provider imports all its kinds, operation types and collectors, but most commands use only
one of several installed providers. Until a command uses a provider, an outline takes the place of the
definition. The outline imports only the connection.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.connection import AnyConnectionType
from kdeclare.core.provider.kind_group import DeferredKindGroup
from kdeclare.core.provider.outline import Outline, find_differences
from kdeclare.core.provider.provider import API_VERSION, CONTRACT, Provider


@dataclass(frozen=True, slots=True, eq=False)
class DeferredProvider(Outline):
    """The outline of a provider, and the function that imports its definition.

    package, kinds, operation_types: see `Outline`.
    import_definition: imports the definition; raises any exception that the import raises.
    connection, builds_on, api_version, contract: see `Provider`.

    The definition must not use the parts of `Provider` in `UNSUPPORTED_PARTS`, because kdeclare needs these
    even if no resource of the provider exists. For the same reason, its other functions must concern only
    resources of its own kinds, and the references to other resources from its own system.
    """

    UNSUPPORTED_PARTS: ClassVar = (
        "plan_settings",
        "find_principal",
        "watch",
        "find_cleanup",
        "kind_groups",
        "auxiliary_kinds",
        "guards",
    )

    name: str
    package: str
    kinds: tuple[str, ...]
    operation_types: tuple[str, ...]
    import_definition: Callable[[], Provider]
    connection: AnyConnectionType | None = None
    builds_on: tuple[str, ...] = ()
    api_version: str = API_VERSION
    contract: int = CONTRACT

    def load(self) -> Provider:
        """Import and return the definition.

        Raises ValueError if the definition differs from the outline, and any exception that the import
        raises.
        """
        definition = self.import_definition()
        mistakes = list(self._find_mistakes(definition))
        if mistakes:
            raise ValueError(f"the outline {'; '.join(mistakes)}")
        return definition

    def _find_mistakes(self, definition: Provider) -> Iterable[str]:
        """Yield the differences between the outline and the definition, as clauses."""
        parts = {
            "name": (self.name, definition.name),
            "kinds": (self.kinds, tuple(kind.name for kind in definition.kinds)),
            "operation_types": (
                self.operation_types,
                tuple(operation_type.name for operation_type in definition.operation_types),
            ),
            "connection": (self.connection, definition.connection),
            "builds_on": (self.builds_on, definition.builds_on),
            "api_version": (self.api_version, definition.api_version),
            "contract": (self.contract, definition.contract),
        }
        yield from find_differences(parts)
        for part in self.UNSUPPORTED_PARTS:
            if getattr(definition, part):
                yield f"has a definition with {part}, which a deferred provider cannot have"


AnyProvider = Provider | DeferredProvider

KindSource = Provider | DeferredProvider | DeferredKindGroup
"""A provider, or one of its groups of kinds, whose definition may not be imported yet."""


def list_kind_sources(provider: AnyProvider) -> tuple[KindSource, ...]:
    """Return a provider and its groups of kinds, in display order."""
    return (provider, *provider.kind_groups) if isinstance(provider, Provider) else (provider,)


def list_kind_names(provider: AnyProvider) -> tuple[str, ...]:
    """Return the names of all kinds of a provider, without importing anything."""
    return tuple(name for source in list_kind_sources(provider) for name in list_own_kind_names(source))


def list_operation_type_names(provider: AnyProvider) -> tuple[str, ...]:
    """Return the names of all operation types of a provider, without importing anything."""
    return tuple(
        name for source in list_kind_sources(provider) for name in list_own_operation_type_names(source)
    )


def list_own_kind_names(source: KindSource) -> tuple[str, ...]:
    """Return the names of the kinds that the definition of a source lists, without importing anything."""
    if isinstance(source, Provider):
        return tuple(kind.name for kind in source.kinds)
    return source.kinds


def list_own_operation_type_names(source: KindSource) -> tuple[str, ...]:
    """Return the names of the operation types that the definition of a source lists."""
    if isinstance(source, Provider):
        return tuple(operation_type.name for operation_type in source.operation_types)
    return source.operation_types
