"""Send requests through kafka-python's connections, from any thread and in batches of limited size.

Only this module uses internals of kafka-python (connection manager and event loop), so the version of
kafka-python is pinned. KafkaAdminClient is not used, because it drops the errors and messages of individual
items, hides the cause of a failed bootstrap, and rejects a sixth in-flight request.
"""

import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from kafka import errors as client_errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.operations.send_permit import SendCheck, get_send_check
from kdeclare.providers.kafka.client.faults import (
    build_fault_from_code,
    build_fault_from_exception,
    build_unanswered_fault,
)

K = TypeVar("K")
T = TypeVar("T")
Request: TypeAlias = Any
"""An ApiMessage of kafka-python, which has no type annotations."""
Response: TypeAlias = Any

_UNREADABLE_FAULT_KINDS = {True: FaultKind.UNKNOWN, False: FaultKind.REFUSED}
"""The fault kind for an unreadable response, keyed by whether the request changes anything."""
_UNREADABLE_ERRORS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, struct.error)
"""The exceptions that kafka-python or kdeclare can raise when they decode an unreadable response.

`MalformedResponse` is a ValueError.
"""
MAX_THROTTLE_S = 600.0
"""The longest wait for a throttled connection, in seconds.

During the throttle time, the broker does not process requests from the connection.
"""
_PAUSE_POLL_S = 0.005
"""The interval in seconds between checks of a connection that a quota or a full buffer has paused."""
ITEMS_PER_REQUEST = 500
RECORDS_PER_REQUEST = 5000
"""The maximum number of metadata records per request.

It is half the limit of a KRaft controller (QuorumController.MAX_RECORDS_PER_USER_OP).
"""


class _ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """A connection manager whose connections process all received data before they close.

    kafka-python drops data that arrives together with the end of a connection, such as a broker's response to
    a failed authentication.
    """

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        receive = transport._sock_recv

        def receive_first() -> tuple[bytes, BaseException | None]:
            data, end = receive()
            return data, None if data else end  # the next read detects the end of the connection again

        transport._sock_recv = receive_first
        return transport


class Wire:
    """The open connections to one cluster."""

    def __init__(self, arguments: Mapping[str, Any], *, request_timeout_s: float) -> None:
        """Start the event loop's thread without sending anything. arguments: passed to kafka-python."""
        self._net = NetworkSelector(**arguments)
        self._manager = _ConnectionManager(self._net, **arguments)
        self._timeout_s = request_timeout_s
        self._closed = False
        self._net.start()

    @property
    def request_timeout_ms(self) -> int:
        """The timeout in requests to brokers, in milliseconds. The client itself waits longer."""
        return max(1, int(self._timeout_s * 900))

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that are up, according to the latest metadata."""
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def cluster_id(self) -> str:
        """Return the cluster id, according to the latest metadata."""
        return self._manager.cluster.cluster_id or ""

    def request_refresh(self) -> None:
        """Request a refresh of the metadata in the background."""
        if not self._closed:
            self._net.call_soon_threadsafe(lambda: self._manager.cluster.request_update() and None)

    def run(self, coroutine: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run a coroutine on the event loop and wait until it returns."""
        if self._closed:
            raise Fault("NETWORK_EXCEPTION", "the connection to the cluster is closed")
        return self._manager.run(coroutine, *args)  # type: ignore[no-any-return]

    def ask(
        self,
        requests: Sequence[Request],
        read: Callable[[Response], T],
        *,
        changes: bool,
        nodes: Sequence[int] | None = None,
        window: int = 2,
    ) -> list[T | Fault]:
        """Send requests and return the responses in the order of the requests.

        nodes: the brokers that share the requests. Each request goes to the first free broker. If a broker is
            unreachable, other brokers get its requests. None means the controller or, with KRaft, any broker,
            because brokers forward requests to the controller.
        read: converts each response to a value. Runs on the event loop; can raise Fault.
        changes: whether the requests change anything. Such requests are never sent twice.
        window: the maximum number of requests in flight per broker.
        """
        if not requests:
            return []
        return self.run(self._send, requests, read, _find_check(changes), nodes, window)

    def send_one(
        self,
        request: Request,
        read_response: Callable[[Response], T],
        *,
        changes: bool = False,
        nodes: Sequence[int] | None = None,
    ) -> T:
        """Send one request. Raises Fault."""
        answer = self.ask([request], read_response, changes=changes, nodes=nodes)[0]
        if isinstance(answer, Fault):
            raise answer
        return answer

    def send_each(
        self,
        requests: Mapping[int, Sequence[Request]],
        read_response: Callable[[Response], T],
        *,
        changes: bool = False,
    ) -> dict[int, list[T | Fault]]:
        """Send requests to specific brokers in parallel; return the responses by broker."""
        if not requests:
            return {}
        return self.run(self._send_each, requests, read_response, _find_check(changes))

    def get_max_version(self, api_key: int) -> int:
        """Return the highest version of an API that a broker supports, or -1 if it does not support the API.

        Raises Fault.
        """
        return self.versions().get(api_key, -1)

    def versions(self) -> dict[int, int]:
        """Return the highest version of each API that a broker supports, by API key. Raises Fault."""
        return self.run(self._get_max_versions)

    def close(self) -> None:
        """Close the connections and end the event loop's thread."""
        if self._closed:
            return
        self._closed = True
        try:
            self._manager.run(self._manager.close)
        finally:
            self._net.stop(timeout_ms=1000)
            self._net.close()

    async def bootstrap(self, node: str, timeout_at: float) -> None:
        """Read the metadata from one bootstrap address. Raises kafka-python's exceptions unchanged."""
        connection = await self._connect(node, timeout_at)
        try:
            metadata_read = self._manager.call_soon(self._manager.cluster.refresh_metadata, node)
            await self._manager.wait_for(metadata_read, _compute_remaining_ms(timeout_at))
            if not self.brokers():
                raise client_errors.MetadataEmptyBrokerList("the metadata lists no brokers")
        finally:
            connection.close()
        # from here on, kafka-python refreshes the metadata itself
        self._manager._bootstrap_future = Future().success(True)
        self._manager.cluster.start_refresh_loop()

    def list_bootstrap_addresses(self) -> dict[str, str]:
        """Return the ``host:port`` of each bootstrap address, by its node id in kafka-python."""
        brokers = self._manager.cluster.bootstrap_brokers()
        return {broker.node_id: f"{broker.host}:{broker.port}" for broker in brokers}

    def get_address(self, node: int | str) -> str:
        """Return the ``host:port`` that a broker advertises."""
        broker = self._manager.cluster.broker_metadata(node)
        return f"{broker.host}:{broker.port}" if broker else f"broker {node}"

    async def connect_to_any(self, timeout_at: float) -> None:
        """Connect to any broker at its advertised address. Raises the error of the last attempt."""
        await self._get_any_connection(timeout_at)

    def spawn(self, coroutine: Callable[..., Awaitable[T]], *args: Any) -> "Future":
        """Start a coroutine on the event loop and return a Future that code on the event loop can await."""
        return self._manager.call_soon(coroutine, *args)

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await self._net.sleep(seconds)

    # All methods below run on the event loop.

    async def _send(
        self,
        requests: Sequence[Request],
        read_response: Callable[[Response], T],
        check: SendCheck | None,
        nodes: Sequence[int] | None,
        window: int,
    ) -> list[T | Fault]:
        """Send requests.

        check: raises KdeclareError if this process is no longer allowed to change the cluster; None for
            requests that change nothing.
        """
        changes = check is not None
        answers: list[Any] = [None] * len(requests)
        queue = deque(range(len(requests)))
        if nodes is None:
            try:
                nodes = [(await self._get_any_connection(self._compute_setup_deadline())).node_id]
            except client_errors.KafkaError as exc:
                return [build_fault_from_exception(exc, sent=False, changes=changes) for _ in requests]

        async def send_queued(node: int) -> BaseException | None:
            while queue:
                index = queue.popleft()
                try:
                    connection = await self._get_ready_connection(node)
                except client_errors.KafkaError as exc:
                    queue.appendleft(index)
                    failure: BaseException = exc
                    return failure
                try:
                    answers[index] = await self._exchange(connection, requests[index], read_response, check)
                except Fault as fault:
                    answers[index] = fault
            return None

        lanes = min(window, -(-len(requests) // len(nodes))) if nodes else 0
        workers = [self.spawn(send_queued, node) for node in nodes for _ in range(lanes)]
        last_error: BaseException = client_errors.NodeNotReadyError("no broker is known")
        for worker in workers:
            last_error = await worker or last_error
        for index in queue:
            answers[index] = build_fault_from_exception(last_error, sent=False, changes=changes)
        return answers

    async def _send_each(
        self,
        requests: Mapping[int, Sequence[Request]],
        read_response: Callable[[Response], T],
        check: SendCheck | None,
    ) -> dict[int, list[T | Fault]]:
        running = {
            node: self.spawn(self._send, batch, read_response, check, [node], 2)
            for node, batch in requests.items()
        }
        return {node: await future for node, future in running.items()}

    async def _exchange(
        self,
        connection: Any,
        request: Request,
        read_response: Callable[[Response], T],
        check: SendCheck | None,
    ) -> T:
        changes = check is not None
        if check is not None:
            check()  # the last step before the request: connecting and waiting for a quota can take minutes
        future = connection.send_request(request, request_timeout_ms=self._timeout_s * 1000)
        if future.failed():  # failed immediately, so the request was not sent
            raise build_fault_from_exception(future.exception, sent=False, changes=changes)
        try:
            response = await future
        except client_errors.KafkaError as exc:
            raise build_fault_from_exception(exc, sent=True, changes=changes) from exc
        try:
            return read_response(response)
        except _UNREADABLE_ERRORS as exc:
            raise Fault(
                "CORRUPT_MESSAGE", f"unreadable response: {exc}", _UNREADABLE_FAULT_KINDS[changes]
            ) from exc

    async def _get_any_connection(self, timeout_at: float) -> Any:
        """Return a connection to the controller or, if the controller is unreachable, to any broker.

        Raises the error of the last attempt.
        """
        cluster = self._manager.cluster
        nodes = self.brokers()
        controller_id = cluster.controller.node_id if cluster.controller else None
        last_error: client_errors.KafkaError = client_errors.NodeNotReadyError("no broker is known")
        for node in sorted(nodes, key=lambda node: node != controller_id):
            try:
                return await self._get_ready_connection(node, timeout_at)
            except client_errors.KafkaError as exc:
                last_error = exc
        raise last_error

    async def _get_ready_connection(self, node: int, timeout_at: float | None = None) -> Any:
        """Return a connection to a broker once the connection accepts requests.

        Raises KafkaError with the address of the broker.
        """
        timeout_at = timeout_at or self._compute_setup_deadline()
        try:
            connection = await self._connect(node, timeout_at)
        except client_errors.BrokerResponseError:
            raise  # the broker responded with an error code for authentication
        except client_errors.KafkaError as exc:
            text = "; ".join(str(arg) for arg in exc.args)
            raise type(exc)(f"broker {node} at {self.get_address(node)}: {text}") from exc
        timeout_at = max(timeout_at, _compute_throttle_end(connection))
        while connection.paused:
            if time.monotonic() > timeout_at:
                raise client_errors.NodeNotReadyError(
                    f"the connection to broker {node} is paused by {sorted(connection.paused)}"
                )
            await self._net.sleep(_PAUSE_POLL_S)
        return connection

    async def _connect(self, node: int | str, timeout_at: float) -> Any:
        delay = self._manager.connection_delay(node)
        if delay:  # kafka-python does not connect during its backoff, which `connect` keeps short
            await self._net.sleep(min(delay, max(0.0, timeout_at - time.monotonic())))
        connection = self._manager.get_connection(node, timeout_ms=_compute_remaining_ms(timeout_at))
        try:
            await self._manager.wait_for(connection.init_future, _compute_remaining_ms(timeout_at))
        except client_errors.KafkaTimeoutError as exc:
            connection.close(exc)  # kafka-python does not limit the time of a TLS handshake
            raise
        return connection

    async def _get_max_versions(self) -> dict[int, int]:
        try:
            connection = await self._get_any_connection(self._compute_setup_deadline())
        except client_errors.KafkaError as exc:
            raise build_fault_from_exception(exc, sent=False, changes=False) from exc
        version_ranges: Mapping[int, tuple[int, int]] = connection.broker_version_data.api_versions
        return {key: highest for key, (_, highest) in version_ranges.items()}

    def _compute_setup_deadline(self) -> float:
        return time.monotonic() + min(10.0, self._timeout_s)


def _find_check(changes: bool) -> SendCheck | None:
    """Return the `SendCheck` of the calling thread; None for requests that change nothing.

    The event loop's thread sends the requests, but cannot look up the `SendCheck` of another thread.
    """
    return get_send_check() if changes else None


def _compute_throttle_end(connection: Any) -> float:
    """Return the monotonic time until which a broker throttles a connection; 0 if it is not throttled."""
    throttle_end: float = connection._throttle_time
    return min(throttle_end, time.monotonic() + MAX_THROTTLE_S) + 0.1 if throttle_end else 0.0


def _compute_remaining_ms(timeout_at: float) -> float:
    return max(1.0, (timeout_at - time.monotonic()) * 1000)


def batch_items(
    items: Iterable[T],
    size: int = ITEMS_PER_REQUEST,
    *,
    count_metadata_records: Callable[[T], int] = lambda _: 1,
) -> list[list[T]]:
    """Split items into batches of at most ``size`` items and `RECORDS_PER_REQUEST` metadata records.

    count_metadata_records: a function that returns the number of metadata records of an item. An item with
        more records than the limit gets its own batch.
    """
    batches: list[list[T]] = []
    batch_records = RECORDS_PER_REQUEST
    for item in items:
        record_count = count_metadata_records(item)
        if not batches or len(batches[-1]) >= size or batch_records + record_count > RECORDS_PER_REQUEST:
            batches.append([])
            batch_records = 0
        batches[-1].append(item)
        batch_records += record_count
    return batches


def send_batches(
    wire: Wire,
    items: Sequence[T],
    *,
    get_key: Callable[[T], K],
    build_request: Callable[[list[T]], Any],
    read_codes: Callable[[Any], Iterable[tuple[K, int, str | None]]],
    count_metadata_records: Callable[[T], int] = lambda _: 1,
    validate_only: bool = False,
    nodes: Sequence[int] | None = None,
    has_quota: bool = False,
) -> dict[K, Result]:
    """Send items to the controller, or to ``nodes``, and return a result for each item.

    get_key: returns the key of an item.
    read_codes: returns the key, error code and message of each item in a response.
    has_quota: whether the requests count against the controller mutation quota. Such requests are sent one
        after the other, because a broker that rejects a request delays the next request for the throttle
        time.
    Raises Fault if exactly one request is sent and the request fails. If one of several requests fails, the
    result of each item in that request is the Fault of the request.
    """

    def read_results(response: Any) -> Mapping[K, Result]:
        return {
            name: _build_fault(response, code, text, changes=not validate_only) if code else None
            for name, code, text in read_codes(response)
        }

    batches = batch_items(items, count_metadata_records=count_metadata_records)
    requests = [build_request(part) for part in batches]
    window = 1 if has_quota else 2
    answers = wire.ask(requests, read_results, changes=not validate_only, nodes=nodes, window=window)
    if len(answers) == 1 and isinstance(answers[0], Fault):
        raise answers[0]
    results: dict[K, Result] = {}
    for batch, answer in zip(batches, answers, strict=True):
        for item in batch:
            name = get_key(item)
            results[name] = (
                answer if isinstance(answer, Fault) else answer.get(name, build_unanswered_fault())
            )
    if any(fault is not None and fault.kind is FaultKind.RETRIABLE for fault in results.values()):
        wire.request_refresh()  # errors such as NOT_CONTROLLER mean that the metadata is outdated
    return results


def _build_fault(response: Any, code: int, text: str | None, *, changes: bool) -> Fault:
    throttle_ms = getattr(response, "throttle_time_ms", None) or 0
    return build_fault_from_code(code, text, changes=changes, throttle_ms=throttle_ms)
