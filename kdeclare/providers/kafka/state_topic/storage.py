"""Open a state in a Kafka topic: ``kafka://TOPIC``."""

import re
from pathlib import Path

from kdeclare.core.provider.connection import ConnectionContext
from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.core.storage.location import StateLocation, StorageContext, build_location_error
from kdeclare.providers.kafka.connection import KafkaSettings, KafkaTarget, locate_cluster

_SERVER_OPTION = "bootstrap-server"
_CONFIG_OPTION = "command-config"
_FACTOR_OPTION = "replication-factor"
_LEASE_OPTION = "lease"
"""An option that the URLs of all shared states accept. This module does not read it."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def open_storage(location: StateLocation, context: StorageContext) -> ConditionalObjects:
    """Open the state in the topic that a URL names. See `OpenStorage`.

    A missing topic is created by the first write, so commands that only read need no permission to create it.
    """
    location.check_options(_SERVER_OPTION, _CONFIG_OPTION, _FACTOR_OPTION, _LEASE_OPTION)
    if not _TOPIC_NAME.fullmatch(location.host) or location.host in (".", "..") or location.path:
        raise build_location_error(
            f"'{location.url}' does not name a topic.",
            "Write kafka://TOPIC. A topic name consists of letters, digits, '.', '_' and '-'.",
        )
    factor = location.get_number(_FACTOR_OPTION)
    if factor is not None and factor != int(factor):
        raise build_location_error(
            f"'{location.url}': '{_FACTOR_OPTION}' is not a whole number.",
            f"Write, for example, {_FACTOR_OPTION}=3.",
        )
    target, options = _find_target(location, context)
    # imports the producers and consumers of kafka-python, which other commands do not need
    from kdeclare.providers.kafka.state_topic.topic_objects import open_topic_objects

    return open_topic_objects(
        target, location, None if factor is None else int(factor), context.timeout_s, options
    )


def _find_target(location: StateLocation, context: StorageContext) -> tuple[KafkaTarget, tuple[str, ...]]:
    """Return the cluster that stores the state, and the options that select the cluster in other commands."""
    server, config = location.options.get(_SERVER_OPTION), location.options.get(_CONFIG_OPTION)
    if not server and not config:
        target = context.find_target("kafka")
        if not isinstance(target, KafkaTarget):
            raise TypeError(f"expected KafkaTarget, got {type(target).__name__}")
        return target, ()
    file = None if config is None else context.folder / Path(config).expanduser()
    settings = KafkaSettings.model_validate({"bootstrapServers": server, "clientConfigFile": file})
    surroundings = ConnectionContext(
        location.environment, context.folder, context.environ, context.references, context.timeout_s
    )
    options = (("--bootstrap-server", server) if server else ()) + (
        ("--command-config", str(file)) if file else ()
    )
    return locate_cluster(settings, surroundings), options
