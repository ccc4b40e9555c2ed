"""Convert Kafka error codes and kafka-python's exceptions to Faults."""

import re

from kafka import errors as client_errors

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.error_names import QUOTA_EXCEEDED

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
"""Names of Kafka errors that kafka-python does not have or spells differently.

Source: org.apache.kafka.common.protocol.Errors.
"""

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
"""Errors that can be retried. Unlike the Java client, kdeclare does not retry UNKNOWN_TOPIC_OR_PARTITION."""

_PERMISSION_MESSAGE = re.compile(r"Request Request\(.*\) needs (\w+) permission\.?", re.DOTALL)
"""The broker's message about a missing permission. It contains the whole request (kafka.server.AuthHelper).
"""

_QUOTA_MESSAGE = (
    "the controller mutation quota (controller_mutation_rate) of this user or client is exhausted"
)
"""The message for quota errors, which brokers send without a message."""

_UNKNOWN_OUTCOME = frozenset({"REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "UNKNOWN_SERVER_ERROR"})
"""Errors that a broker can return even if it has forwarded the request to the controller."""


def get_error_name(code: int) -> str:
    """Return the name of a protocol error code, as Kafka's own tools print it."""
    java_name = _JAVA_NAMES.get(code)
    if java_name is not None:
        return java_name
    error_class = client_errors.kafka_errors.get(code)
    return f"ERROR_{code}" if error_class is None else str(error_class.message)


def is_error_name(name: str) -> bool:
    """Return whether a name belongs to an error of Kafka or of kdeclare's client."""
    names = {str(found.message) for found in client_errors.kafka_errors.values()} | set(_JAVA_NAMES.values())
    return name in names or name == "NETWORK_EXCEPTION" or re.fullmatch(r"ERROR_-?\d+", name) is not None


def build_fault_from_code(code: int, message: str | None, *, changes: bool, throttle_ms: int = 0) -> Fault:
    """Build the Fault for an error code in a response.

    changes: whether the request changes anything.
    throttle_ms: the throttle time in the response, in milliseconds.
    """
    name = get_error_name(code)
    if name == QUOTA_EXCEEDED:
        wait_s = max(0, throttle_ms) / 1000
        wait_text = f"; brokers accept more changes in {wait_s:.1f} s" if wait_s else ""
        return Fault(name, message or f"{_QUOTA_MESSAGE}{wait_text}", FaultKind.RETRIABLE, wait_s)
    if name in _RETRIABLE:
        kind = FaultKind.RETRIABLE
    elif name in _UNKNOWN_OUTCOME:
        kind = FaultKind.UNKNOWN if changes else FaultKind.RETRIABLE
    else:
        kind = FaultKind.REFUSED
    return Fault(
        name,
        _PERMISSION_MESSAGE.sub(r"the request needs the \1 permission on the cluster", message or ""),
        kind,
    )


def build_fault_from_exception(exc: BaseException, *, sent: bool, changes: bool) -> Fault:
    """Build the Fault for an exception of the client.

    The fault is RETRIABLE if the request changes nothing or was not sent.
    sent: whether any byte of the request may have been sent.
    changes: whether the request changes anything.
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
    """Build the Fault, with an unknown outcome, for an item that is missing from the response."""
    return Fault(
        "UNKNOWN_SERVER_ERROR",
        "the response of the broker contains no result for this item",
        FaultKind.UNKNOWN,
    )


def _get_exception_message(exc: BaseException) -> str:
    return "; ".join(str(arg) for arg in exc.args) or type(exc).__name__
