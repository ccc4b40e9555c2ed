"""The arguments that kafka-python's producers and consumers share, and a time limit for their methods."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka.consumer import KafkaConsumer
from kafka.producer import KafkaProducer

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client.connect import build_connection_arguments
from kdeclare.providers.kafka.client.faults import build_fault_from_exception

T = TypeVar("T")

RecordClientArguments = Mapping[str, Any]
"""Arguments for `KafkaProducer` and `KafkaConsumer`. They can contain passwords."""

MIN_TIMEOUT_S = 1.0
"""The shortest request timeout, in seconds. It must exceed the 0.5 s that consumers wait for records."""

SHARED_NAMES = KafkaProducer.DEFAULT_CONFIG.keys() & KafkaConsumer.DEFAULT_CONFIG.keys()
"""The names of the arguments that both `KafkaProducer` and `KafkaConsumer` accept.

``socket_connection_setup_timeout_ms`` is not one of these arguments.
"""


def build_record_client_arguments(
    bootstrap_servers: str, client_config: Mapping[str, str], timeout_s: float
) -> RecordClientArguments:
    """Return the arguments for producers and consumers of a cluster.

    The first two parameters are those of `connect`. timeout_s: the time limit of each request, unless
    ``request.timeout.ms`` is set. Raises KdeclareError like `build_connection_arguments`.
    """
    arguments, _ = build_connection_arguments(bootstrap_servers, client_config)
    timeout_ms = int(1000 * max(MIN_TIMEOUT_S, timeout_s))
    return {
        "client_id": "kdeclare",
        "request_timeout_ms": timeout_ms,
        "bootstrap_timeout_ms": timeout_ms,
        # kafka-python's default backoff grows to 30 s
        "reconnect_backoff_max_ms": 1000,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
        **{name: value for name, value in arguments.items() if name in SHARED_NAMES},
    }


def call_within(timeout_s: float, function: Callable[[], T], action: str) -> T:
    """Call a method of kafka-python with a time limit, and return its result.

    Several methods of `KafkaProducer` wait forever if the cluster does not respond: ``commit_transaction``
    and ``abort_transaction`` wait for an event without a limit. After the time limit, the call is abandoned:
    it continues in a daemon thread, and the client must be closed.

    action: a description of the call, for the error message if the time limit is exceeded. Raises Fault.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as exc:  # noqa: BLE001  raised again in the calling thread
            failures.append(exc)

    thread = threading.Thread(target=run, name="kafka-call", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if failures:
        raise build_fault_from_exception(failures[0], sent=True, changes=True) from failures[0]
    if not results:
        raise Fault("REQUEST_TIMED_OUT", f"{action} took more than {timeout_s:.0f} s", FaultKind.UNKNOWN)
    return results[0]
