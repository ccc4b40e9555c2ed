"""The outline of the provider for schema registries.

`definition` is imported only if a command uses the provider.
"""

from kdeclare.core.provider.deferred_provider import DeferredProvider
from kdeclare.core.provider.provider import Provider
from kdeclare.providers.schema_registry.connection import CONNECTION


def _import_definition() -> Provider:
    from kdeclare.providers.schema_registry import definition

    return definition.PROVIDER


PROVIDER = DeferredProvider(
    "schema_registry",
    package=__package__,
    kinds=("Schema",),
    operation_types=("schema.register", "schema.compatibility", "schema.delete", "schema.purge"),
    import_definition=_import_definition,
    connection=CONNECTION,
    builds_on=("kafka",),
)
