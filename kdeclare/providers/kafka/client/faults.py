"""Kafka error codes and kafka-python's exceptions as Faults."""

import re

from kafka import errors as client_errors

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.port import QUOTA_EXCEEDED

NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
REPLICA_NOT_AVAILABLE = 9
INVALID_TOPIC = 17
TOPIC_AUTHORIZATION_FAILED = 29
CLUSTER_AUTHORIZATION_FAILED = 31
ELECTION_NOT_NEEDED = 84

_JAVA_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
    128: "INVALID_REGULAR_EXPRESSION",
    129: "REBOOTSTRAP_REQUIRED",
}
"""Where org.apache.kafka.common.protocol.Errors says something else than kafka-python, or more."""

_RETRIABLE = frozenset(
    {
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "BROKER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_CONTROLLER",
        "KAFKA_STORAGE_ERROR",
        "LISTENER_NOT_FOUND",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "REBOOTSTRAP_REQUIRED",
    }
)
"""Transient by nature. UNKNOWN_TOPIC_OR_PARTITION, retriable in Java, is not: here it is an answer."""

_PERMISSION_MESSAGE = re.compile(r"Request Request\(.*\) needs (\w+) permission\.?", re.DOTALL)
"""How a broker words it (kafka.server.AuthHelper): in the brackets stands the request, as Java prints it."""

_QUOTA_MESSAGE = (
    "the quota of controller mutations (controller_mutation_rate) of this user or client is used up"
)
"""Brokers give no words of their own with this error."""

_UNKNOWN_OUTCOME = frozenset({"REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "UNKNOWN_SERVER_ERROR"})
"""Answers of a broker that may have passed the request on before it gave up."""


def get_error_name(code: int) -> str:
    """The name of a protocol error code, as Kafka's own tools print it."""
    java_name = _JAVA_NAMES.get(code)
    if java_name is not None:
        return java_name
    error_class = client_errors.kafka_errors.get(code)
    return f"ERROR_{code}" if error_class is None else str(error_class.message)


def is_error_name(name: str) -> bool:
    """Whether a fault has this name that brokers answer, or that the client itself gives."""
    names = {str(found.message) for found in client_errors.kafka_errors.values()} | set(_JAVA_NAMES.values())
    return name in names or name == "NETWORK_EXCEPTION" or re.fullmatch(r"ERROR_-?\d+", name) is not None


def build_fault_from_code(code: int, message: str | None, *, changes: bool, throttle_ms: int = 0) -> Fault:
    """What a broker answered.

    changes: whether the request was to change anything. throttle_ms: the throttle time of the answer.
    """
    name = get_error_name(code)
    if name == QUOTA_EXCEEDED:
        wait_s = max(0, throttle_ms) / 1000
        wait_text = f"; brokers take more in {wait_s:.1f} s" if wait_s else ""
        return Fault(name, message or f"{_QUOTA_MESSAGE}{wait_text}", FaultKind.RETRIABLE, wait_s)
    if name in _RETRIABLE:
        kind = FaultKind.RETRIABLE
    elif name in _UNKNOWN_OUTCOME:
        kind = FaultKind.UNKNOWN if changes else FaultKind.RETRIABLE
    else:
        kind = FaultKind.REFUSED
    return Fault(
        name, _PERMISSION_MESSAGE.sub(r"it needs the permission \1 on the cluster", message or ""), kind
    )


def build_fault_from_exception(exc: BaseException, *, sent: bool, changes: bool) -> Fault:
    """What the client saw. ``sent``: whether a byte of the request may have left.

    A request that changes nothing, or that never left, can be sent again.
    """
    if isinstance(exc, Fault):
        return exc
    if isinstance(exc, client_errors.IncompatibleBrokerVersion):
        return Fault("UNSUPPORTED_VERSION", _get_exception_message(exc))
    kind = FaultKind.UNKNOWN if sent and changes else FaultKind.RETRIABLE
    if isinstance(exc, client_errors.RequestTimedOutError | client_errors.KafkaTimeoutError):
        return Fault("REQUEST_TIMED_OUT", _get_exception_message(exc), kind)
    if isinstance(exc, client_errors.BrokerResponseError) and exc.errno is not None:
        return build_fault_from_code(exc.errno, _get_exception_message(exc), changes=changes)
    return Fault("NETWORK_EXCEPTION", _get_exception_message(exc), kind)


def build_unanswered_fault() -> Fault:
    """An item that an answer leaves out: nothing is known about it."""
    return Fault("UNKNOWN_SERVER_ERROR", "the broker's answer leaves this item out", FaultKind.UNKNOWN)


def _get_exception_message(exc: BaseException) -> str:
    """An exception's own words, without the class name that kafka-python puts before them."""
    return "; ".join(str(arg) for arg in exc.args) or type(exc).__name__
