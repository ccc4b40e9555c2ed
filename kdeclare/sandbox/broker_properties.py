"""Build the content of a broker's ``server.properties`` from the settings of a sandbox."""

from collections.abc import Iterable
from pathlib import Path

from kdeclare.sandbox.settings import HOST, LISTENERS, SandboxSettings

_CONTROLLER = "CONTROLLER"
_BROKER = "PLAINTEXT"


def broker_properties(settings: SandboxSettings, broker_id: int, *log_dirs: Path) -> dict[str, str]:
    """Return the settings of one broker.

    Topics have Kafka's default configs, so that plans for a sandbox look like plans for other clusters.
    """
    is_controller = broker_id in settings.controller_ids
    replication_factor = str(min(3, settings.brokers))
    min_isr = str(min(2, settings.brokers))
    protocols = LISTENERS if settings.secure else {_BROKER: 0}
    listeners = [
        f"{name}://{HOST}:{settings.get_broker_port(broker_id) + offset}"
        for name, offset in protocols.items()
    ]
    if is_controller:
        listeners.append(f"{_CONTROLLER}://{HOST}:{settings.get_controller_port(broker_id)}")
    voters = (f"{i}@{HOST}:{settings.get_controller_port(i)}" for i in settings.controller_ids)
    return {
        "node.id": str(broker_id),
        "process.roles": "broker,controller" if is_controller else "broker",
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": _CONTROLLER,
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": (
            f"{_format_protocol_map(protocols)},{_CONTROLLER}:{_get_internal_protocol(settings)}"
        ),
        "inter.broker.listener.name": _get_internal_protocol(settings),
        "broker.rack": settings.rack(broker_id),
        "log.dirs": ",".join(map(str, log_dirs)),
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        # Internal topics have few partitions, and at most three replicas.
        "offsets.topic.replication.factor": replication_factor,
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": replication_factor,
        "transaction.state.log.min.isr": min_isr,
        "transaction.state.log.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": replication_factor,
        "share.coordinator.state.topic.min.isr": min_isr,
        "share.coordinator.state.topic.num.partitions": "5",
        "group.initial.rebalance.delay.ms": "0",
        # Small values, because several brokers run on one machine.
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "4",
        "num.recovery.threads.per.data.dir": "1",
        "group.coordinator.threads": "1",
        "share.coordinator.threads": "1",
        "log.cleaner.dedupe.buffer.size": str(4 * 1024 * 1024),
        "log.cleaner.io.buffer.size": str(128 * 1024),
        # By default, the controller writes a no-op record twice a second. This is a third of the load of an
        # idle broker.
        "metadata.max.idle.interval.ms": "5000",
    }


def _format_protocol_map(names: Iterable[str]) -> str:
    """Return the value of ``listener.security.protocol.map``. Each listener is named after its protocol."""
    return ",".join(f"{name}:{name}" for name in names)


def _get_internal_protocol(settings: SandboxSettings) -> str:
    """Return the security protocol for connections between brokers and controllers."""
    return "SSL" if settings.secure else _BROKER


def render(properties: dict[str, str]) -> str:
    """Format settings as a Java properties file. Characters other than printable ASCII are escaped."""
    return "".join(f"{key}={_escape_value(value)}\n" for key, value in properties.items())


def _escape_value(value: str) -> str:
    utf_16 = value.replace("\\", "\\\\").encode("utf-16-be")
    units = (int.from_bytes(utf_16[i : i + 2], "big") for i in range(0, len(utf_16), 2))
    text = "".join(chr(u) if 0x20 <= u < 0x7F else f"\\u{u:04x}" for u in units)
    # java.util.Properties would remove a leading space.
    return "\\" + text if text.startswith(" ") else text
