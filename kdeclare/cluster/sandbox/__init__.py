"""A real Kafka cluster on this machine: KRaft brokers on the loopback address, in one folder."""

from kdeclare.cluster.sandbox.control import is_free, kill_broker, reset, start, start_broker, stop
from kdeclare.cluster.sandbox.jars import KAFKA_VERSION
from kdeclare.cluster.sandbox.launch import kafka_classpath, run_kafka_tool
from kdeclare.cluster.sandbox.settings import SandboxSettings
from kdeclare.cluster.sandbox.status import BrokerStatus, SandboxStatus, status

__all__ = [
    "KAFKA_VERSION",
    "BrokerStatus",
    "SandboxSettings",
    "SandboxStatus",
    "is_free",
    "kafka_classpath",
    "kill_broker",
    "reset",
    "run_kafka_tool",
    "start",
    "start_broker",
    "status",
    "stop",
]
