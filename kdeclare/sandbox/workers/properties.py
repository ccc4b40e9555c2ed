"""Build the configuration of a Connect worker from the settings of a sandbox."""

from collections.abc import Iterable

from kdeclare.sandbox.certificates import KEYSTORE_PASSWORD
from kdeclare.sandbox.layout import ConnectFiles, SecurityFiles
from kdeclare.sandbox.security import WORKER, build_client_properties
from kdeclare.sandbox.settings import HOST, SandboxSettings

GROUP = "connect"

# Environment variables of a worker's process. With placeholders such as ${env:WORKER_FOLDER}/next.p12, the
# same configuration refers to a different file on each worker.
FOLDER_VARIABLE = "WORKER_FOLDER"
PASSWORD_VARIABLE = "KEYSTORE_PASSWORD"

PLUGIN_OPEN = "kdeclare.worker.config.open"

# The clients of the worker itself, and the clients of its connectors.
_CLIENT_PREFIXES = ("", "producer.", "consumer.", "admin.")

_TLS = "listeners.https.ssl."
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_PROVIDERS = "org.apache.kafka.common.config.provider."


def build_worker_properties(
    settings: SandboxSettings,
    worker_id: int,
    files: ConnectFiles,
    extensions: Iterable[str],
    security: SecurityFiles,
) -> dict[str, str]:
    """Return the configuration of a worker. extensions: the class names of the REST extensions to load.

    security: the files with which the clients of a worker authenticate in a secure sandbox.
    """
    replication_factor = str(min(3, settings.brokers))
    port = str(settings.get_worker_port(worker_id))
    properties = {
        "bootstrap.servers": settings.bootstrap,
        "group.id": GROUP,
        "config.storage.topic": f"{GROUP}-configs",
        "offset.storage.topic": f"{GROUP}-offsets",
        "status.storage.topic": f"{GROUP}-status",
        "config.storage.replication.factor": replication_factor,
        "offset.storage.replication.factor": replication_factor,
        "status.storage.replication.factor": replication_factor,
        "offset.storage.partitions": "5",
        "status.storage.partitions": "2",
        "key.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
        "plugin.path": str(files.plugins),
        # All jars in plugin.path declare their services. Scanning all classes instead would take seconds.
        "plugin.discovery": "service_load",
        "listeners": settings.get_worker_url(worker_id),
        "rest.advertised.listener": "https",
        "rest.advertised.host.name": HOST,
        "rest.advertised.port": port,
        f"{_TLS}keystore.type": "PKCS12",
        f"{_TLS}keystore.location": str(files.worker(worker_id).keystore),
        f"{_TLS}keystore.password": f"${{env:{PASSWORD_VARIABLE}}}",
        f"{_TLS}key.password": f"${{env:{PASSWORD_VARIABLE}}}",
        f"{_TLS}truststore.type": "PKCS12",
        f"{_TLS}truststore.location": str(files.truststore),
        f"{_TLS}truststore.password": f"${{env:{PASSWORD_VARIABLE}}}",
        "config.providers": "env,file",
        "config.providers.env.class": f"{_PROVIDERS}EnvVarConfigProvider",
        "config.providers.file.class": f"{_PROVIDERS}FileConfigProvider",
        # With the default of five minutes, the tasks of a stopped worker would not run during this time.
        "scheduled.rebalance.max.delay.ms": "3000",
        **_build_client_properties(settings, security),
    }
    extension_names = ",".join(extensions)
    if not extension_names:
        return properties
    # All users of this machine can change the configuration of the workers, even in a secure sandbox. Brokers
    # and workers listen only on the loopback address, and the passwords of all sandboxes are public.
    return {**properties, "rest.extension.classes": extension_names, PLUGIN_OPEN: "true"}


def _build_client_properties(settings: SandboxSettings, security: SecurityFiles) -> dict[str, str]:
    """Return the security settings for the Kafka clients of a worker.

    The settings are repeated with the prefix of each client, such as ``producer.``
    """
    if not settings.secure:
        return {}
    properties = build_client_properties(security, settings, WORKER)
    del properties["bootstrap.servers"]
    return {f"{prefix}{key}": value for prefix in _CLIENT_PREFIXES for key, value in properties.items()}


def build_worker_environment(worker_id: int, files: ConnectFiles) -> dict[str, str]:
    """Return the environment variables for the placeholders in the configuration of a worker."""
    return {FOLDER_VARIABLE: str(files.worker(worker_id).folder), PASSWORD_VARIABLE: KEYSTORE_PASSWORD}
