"""Kafka clusters on this machine, for development and tests.

A cluster consists of KRaft brokers and, on request, Connect workers and a schema registry. Each cluster has
its own folder, and listens only on the loopback address.
"""

from kdeclare.sandbox.control import (
    issue_certificate,
    kill_broker,
    kill_worker,
    reset,
    start_broker,
    start_worker,
    stop,
)
from kdeclare.sandbox.group import (
    GroupStatus,
    group_settings,
    group_status,
    reset_group,
    start_group,
    stop_group,
)
from kdeclare.sandbox.jars import KAFKA_VERSION
from kdeclare.sandbox.launch import resolve_kafka_classpath, run_kafka_tool
from kdeclare.sandbox.settings import GroupSettings, SandboxSettings, is_free
from kdeclare.sandbox.startup import start
from kdeclare.sandbox.status import BrokerStatus, RegistryStatus, SandboxStatus, WorkerStatus, status

__all__ = [
    "KAFKA_VERSION",
    "BrokerStatus",
    "GroupSettings",
    "GroupStatus",
    "RegistryStatus",
    "SandboxSettings",
    "SandboxStatus",
    "WorkerStatus",
    "group_settings",
    "group_status",
    "is_free",
    "issue_certificate",
    "kill_broker",
    "kill_worker",
    "reset",
    "reset_group",
    "resolve_kafka_classpath",
    "run_kafka_tool",
    "start",
    "start_broker",
    "start_group",
    "start_worker",
    "status",
    "stop",
    "stop_group",
]
