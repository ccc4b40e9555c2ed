"""The outline of the Kafka Connect provider. `definition` is imported only if a command uses the provider."""

from kdeclare.core.provider.deferred_provider import DeferredProvider
from kdeclare.core.provider.provider import Provider
from kdeclare.providers.connect.connection import CONNECTION


def _import_definition() -> Provider:
    from kdeclare.providers.connect import definition

    return definition.PROVIDER


PROVIDER = DeferredProvider(
    "connect",
    package=__package__,
    kinds=("ConnectWorkerConfig", "Connector"),
    operation_types=(
        "connect.worker-config.patch",
        "connector.create",
        "connector.configure",
        "connector.state",
        "connector.restart",
        "connector.offsets.delete",
        "connector.delete",
    ),
    import_definition=_import_definition,
    connection=CONNECTION,
    builds_on=("kafka",),
)
