"""Real Kafka clusters on this machine: KRaft brokers on the loopback address, each cluster in one folder."""

from kdeclare.cluster.sandbox.control import kill_broker, reset, start_broker, stop
from kdeclare.cluster.sandbox.group import (
    GroupStatus,
    group_settings,
    group_status,
    reset_group,
    start_group,
    stop_group,
)
from kdeclare.cluster.sandbox.jars import KAFKA_VERSION
from kdeclare.cluster.sandbox.launch import kafka_classpath, run_kafka_tool
from kdeclare.cluster.sandbox.ports import is_free
from kdeclare.cluster.sandbox.settings import GroupSettings, SandboxSettings
from kdeclare.cluster.sandbox.starting import start
from kdeclare.cluster.sandbox.status import BrokerStatus, SandboxStatus, status

__all__ = [
    "KAFKA_VERSION",
    "BrokerStatus",
    "GroupSettings",
    "GroupStatus",
    "SandboxSettings",
    "SandboxStatus",
    "group_settings",
    "group_status",
    "is_free",
    "kafka_classpath",
    "kill_broker",
    "reset",
    "reset_group",
    "run_kafka_tool",
    "start",
    "start_broker",
    "start_group",
    "status",
    "stop",
    "stop_group",
]
