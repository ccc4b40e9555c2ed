"""Requests over kafka-python's connections, from any thread; many items in requests of bounded size.

The one module that drives kafka-python's private parts (connection manager and event loop); its
version is pinned. KafkaAdminClient is passed by: it loses per-item errors and messages, hides why
a bootstrap fails, and refuses a sixth request in flight instead of letting it wait.
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
from kdeclare.providers.kafka.client.faults import (
    build_fault_from_code,
    build_fault_from_exception,
    build_unanswered_fault,
)

K = TypeVar("K")
T = TypeVar("T")
Request: TypeAlias = Any
"""An ApiMessage of kafka-python, which has no types."""
Response: TypeAlias = Any

_UNREADABLE_FAULT_KINDS = {True: FaultKind.UNKNOWN, False: FaultKind.REFUSED}
"""What an unreadable answer means, by whether the request was to change anything."""
_UNREADABLE_ERRORS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, struct.error)
"""What reading a bad answer raises: our decoders ValueError, kafka-python's objects whatever they lack."""
MAX_THROTTLE_S = 600.0
"""How long to wait for a throttled connection: until its time is over, brokers do not answer on it."""
_PAUSE_POLL_S = 0.005
"""How often a paused connection (a quota, a full buffer) is looked at again."""
ITEMS_PER_REQUEST = 500
RECORDS_PER_REQUEST = 5000
"""Half of what a KRaft controller writes for one request (QuorumController.MAX_RECORDS_PER_USER_OP)."""


class _ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """With connections that give their last words before they end.

    kafka-python drops what comes together with the end of a connection, and so the very answer of a
    broker that refuses a login.
    """

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        transport = await super()._build_transport(node, timeout_at=timeout_at)
        receive = transport._sock_recv

        def receive_first() -> tuple[bytes, BaseException | None]:
            data, end = receive()
            return data, None if data else end  # the end is met again by the next read

        transport._sock_recv = receive_first
        return transport


class Wire:
    """Open connections to one cluster."""

    def __init__(self, arguments: Mapping[str, Any], *, request_timeout_s: float) -> None:
        """Start the event loop's thread. ``arguments`` are kafka-python's; nothing is sent yet."""
        self._net = NetworkSelector(**arguments)
        self._manager = _ConnectionManager(self._net, **arguments)
        self._timeout_s = request_timeout_s
        self._closed = False
        self._net.start()

    @property
    def request_timeout_ms(self) -> int:
        """How long a broker may work on a request: somewhat less than the client waits for it."""
        return max(1, int(self._timeout_s * 900))

    def brokers(self) -> list[int]:
        """Ids of the brokers that are up, as the last metadata had them."""
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def cluster_id(self) -> str:
        """The cluster's id, as the last metadata had it."""
        return self._manager.cluster.cluster_id or ""

    def request_refresh(self) -> None:
        """Have the metadata read again, in the background."""
        if not self._closed:
            self._net.call_soon_threadsafe(lambda: self._manager.cluster.request_update() and None)

    def run(self, coroutine: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run a coroutine on the event loop and wait for what it gives."""
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
        """Send requests, a ``window`` of them in flight a broker; answers in the order of requests.

        nodes: brokers that share the requests between them, whoever is free first; one that cannot
            be reached leaves its share to the others. None is the controller, or with KRaft any
            broker, which forwards.
        read: makes a value of a response, on the event loop as soon as it is in; may raise Fault.
        changes: whether the requests are to change something, and so must never be sent twice.
        """
        if not requests:
            return []
        return self.run(self._send, requests, read, changes, nodes, window)

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
        """Send requests to the very broker they are for, all brokers at the same time."""
        if not requests:
            return {}
        return self.run(self._send_each, requests, read_response, changes)

    def get_max_version(self, api_key: int) -> int:
        """The highest version of an API that a broker has, -1 if it has none. Raises Fault."""
        return self.versions().get(api_key, -1)

    def versions(self) -> dict[int, int]:
        """The highest version of each API that a broker has, by key. Raises Fault."""
        return self.run(self._get_max_versions)

    def close(self) -> None:
        """Close connections and end the thread."""
        if self._closed:
            return
        self._closed = True
        try:
            self._manager.run(self._manager.close)
        finally:
            self._net.stop(timeout_ms=1000)
            self._net.close()

    async def bootstrap(self, node: str, timeout_at: float) -> None:
        """Read the metadata from one bootstrap address. Raises what went wrong, as it was seen."""
        connection = await self._connect(node, timeout_at)
        try:
            metadata_read = self._manager.call_soon(self._manager.cluster.refresh_metadata, node)
            await self._manager.wait_for(metadata_read, _compute_remaining_ms(timeout_at))
            if not self.brokers():
                raise client_errors.MetadataEmptyBrokerList("its metadata lists no brokers")
        finally:
            connection.close()
        # kafka-python's own loop keeps the metadata fresh from here on, once it believes this.
        self._manager._bootstrap_future = Future().success(True)
        self._manager.cluster.start_refresh_loop()

    def list_bootstrap_addresses(self) -> dict[str, str]:
        """``host:port`` by kafka-python's name for a bootstrap address."""
        brokers = self._manager.cluster.bootstrap_brokers()
        return {broker.node_id: f"{broker.host}:{broker.port}" for broker in brokers}

    def get_address(self, node: int | str) -> str:
        """``host:port`` that a broker advertises."""
        broker = self._manager.cluster.broker_metadata(node)
        return f"{broker.host}:{broker.port}" if broker else f"broker {node}"

    async def connect_to_any(self, timeout_at: float) -> None:
        """Connect to one broker at the address that it advertises. Raises what the last one met."""
        await self._get_any_connection(timeout_at)

    def spawn(self, coroutine: Callable[..., Awaitable[T]], *args: Any) -> "Future":
        """Begin a coroutine on the event loop; a Future to await there."""
        return self._manager.call_soon(coroutine, *args)

    async def sleep(self, seconds: float) -> None:
        """Wait, on the event loop."""
        await self._net.sleep(seconds)

    # What follows runs on the event loop.

    async def _send(
        self,
        requests: Sequence[Request],
        read_response: Callable[[Response], T],
        changes: bool,
        nodes: Sequence[int] | None,
        window: int,
    ) -> list[T | Fault]:
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
                    answers[index] = await self._exchange(connection, requests[index], read_response, changes)
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
        self, requests: Mapping[int, Sequence[Request]], read_response: Callable[[Response], T], changes: bool
    ) -> dict[int, list[T | Fault]]:
        running = {
            node: self.spawn(self._send, batch, read_response, changes, [node], 2)
            for node, batch in requests.items()
        }
        return {node: await future for node, future in running.items()}

    async def _exchange(
        self, connection: Any, request: Request, read_response: Callable[[Response], T], changes: bool
    ) -> T:
        future = connection.send_request(request, request_timeout_ms=self._timeout_s * 1000)
        if future.failed():  # at once, so it has not left
            raise build_fault_from_exception(future.exception, sent=False, changes=changes)
        try:
            response = await future
        except client_errors.KafkaError as exc:
            raise build_fault_from_exception(exc, sent=True, changes=changes) from exc
        try:
            return read_response(response)
        except _UNREADABLE_ERRORS as exc:
            raise Fault(
                "CORRUPT_MESSAGE", f"unreadable answer: {exc}", _UNREADABLE_FAULT_KINDS[changes]
            ) from exc

    async def _get_any_connection(self, timeout_at: float) -> Any:
        """The controller's connection, else any broker's. Raises what the last one met."""
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
        """A connection that takes a request now. Raises a KafkaError that names the address."""
        timeout_at = timeout_at or self._compute_setup_deadline()
        try:
            connection = await self._connect(node, timeout_at)
        except client_errors.BrokerResponseError:
            raise  # an answer, with a code: authentication
        except client_errors.KafkaError as exc:
            text = "; ".join(str(arg) for arg in exc.args)
            raise type(exc)(f"broker {node} at {self.get_address(node)}: {text}") from exc
        timeout_at = max(timeout_at, _compute_throttle_end(connection))
        while connection.paused:
            if time.monotonic() > timeout_at:
                raise client_errors.NodeNotReadyError(
                    f"broker {node} is paused by {sorted(connection.paused)}"
                )
            await self._net.sleep(_PAUSE_POLL_S)
        return connection

    async def _connect(self, node: int | str, timeout_at: float) -> Any:
        delay = self._manager.connection_delay(node)
        if delay:  # kafka-python refuses during its own back-off; it is short, see `properties`
            await self._net.sleep(min(delay, max(0.0, timeout_at - time.monotonic())))
        connection = self._manager.get_connection(node, timeout_ms=_compute_remaining_ms(timeout_at))
        try:
            await self._manager.wait_for(connection.init_future, _compute_remaining_ms(timeout_at))
        except client_errors.KafkaTimeoutError as exc:
            connection.close(exc)  # a TLS handshake has no time limit of its own
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


def _compute_throttle_end(connection: Any) -> float:
    """Just after the time until which a broker throttles a connection; 0 if it does not."""
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
    """The items in lists of at most ``size`` and of a bounded number of metadata records.

    count_metadata_records: how many of them an item makes; an item with too many stands alone.
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
    """Send items to the controller, or to ``nodes``, and give a result for each.

    get_key: what names an item; read_codes: key, error code and message of each item in a response.
    has_quota: the requests count against the quota of controller mutations. They are sent one after the
        other: a broker that refuses one leaves the next on its connection unanswered for the throttle time.
    Raises Fault when there was one request and it failed; of several, the failed ones count by item.
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
        wire.request_refresh()  # NOT_CONTROLLER and the like: know better next time
    return results


def _build_fault(response: Any, code: int, text: str | None, *, changes: bool) -> Fault:
    throttle_ms = getattr(response, "throttle_time_ms", None) or 0
    return build_fault_from_code(code, text, changes=changes, throttle_ms=throttle_ms)
