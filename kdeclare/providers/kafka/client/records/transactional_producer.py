"""Write records in transactions (KIP-98).

A transactional id has at most one active producer. A new producer with the same id fences the previous one:
the transaction coordinator aborts a transaction that is still open, completes one whose commit it has
accepted, and refuses all later requests of the previous producer.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from kafka.producer import KafkaProducer

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.client.records.client_arguments import RecordClientArguments, call_within

T = TypeVar("T")

MAX_REQUEST_BYTES = 1_048_576
"""kafka-python's size limit for a record, in bytes. It is below the default of ``max.message.bytes``."""

_DELIVERY_MARGIN_S = 1.0
_RETRY_BACKOFF_MS = 5
"""How long the producer sleeps before it repeats a request, in milliseconds.

After a commit, the coordinator refuses the next transaction (CONCURRENT_TRANSACTIONS) until it has written
the transaction markers, which takes a few milliseconds. kafka-python has a shorter backoff for this case, but
ignores it. With kafka-python's default backoff of 100 ms, a write would take 80 ms.
"""


class TransactionalProducer:
    """The producer of one transactional id, from its initialization until its first failure.

    After a Fault, only `close` can be called: the outcome of the last transaction is unknown until a new
    producer with the same id has been initialized. Not thread-safe.
    """

    def __init__(
        self, arguments: RecordClientArguments, transactional_id: str, transaction_timeout_s: float
    ) -> None:
        """Connect, and fence all earlier producers with the same id.

        When this returns, each transaction of an earlier producer is committed or aborted. A transaction of
        this producer that is still open after ``transaction_timeout_s`` is aborted. Raises Fault.
        """
        timeout_s = arguments["request_timeout_ms"] / 1000
        self._delivery_timeout_s = timeout_s + _DELIVERY_MARGIN_S
        delivery_timeout_ms = int(1000 * self._delivery_timeout_s)

        def start() -> KafkaProducer:
            return KafkaProducer(
                **{**arguments, "retry_backoff_ms": _RETRY_BACKOFF_MS},
                transactional_id=transactional_id,
                transaction_timeout_ms=int(1000 * transaction_timeout_s),
                acks="all",
                enable_idempotence=True,
                compression_type="gzip",
                max_request_size=MAX_REQUEST_BYTES,
                max_block_ms=delivery_timeout_ms,
                delivery_timeout_ms=delivery_timeout_ms,
            )

        self._producer = call_within(2 * timeout_s, start, "connecting a producer")
        try:
            self._call(self._producer.init_transactions, "initializing transactions")
        except BaseException:
            self.close()
            raise

    def send(self, topic: str, records: Mapping[bytes, bytes | None]) -> dict[bytes, int]:
        """Begin a transaction, write records to partition 0, and return their offsets by key.

        When this method returns, all in-sync replicas have the records, but consumers that read only
        committed records see them only after `commit`. A value of None is a tombstone. Raises Fault.
        """

        def send() -> dict[bytes, int]:
            self._producer.begin_transaction()
            futures = {
                key: self._producer.send(topic, key=key, value=value, partition=0)
                for key, value in records.items()
            }
            return {
                key: future.get(self._delivery_timeout_s + _DELIVERY_MARGIN_S).offset
                for key, future in futures.items()
            }

        offsets = self._call(send, "writing records")
        if min(offsets.values()) < 0:
            # kafka-python takes the broker's answer that it already has these records for a success
            raise Fault("DUPLICATE_SEQUENCE_NUMBER", "the offsets of the records are unknown")
        return offsets

    def commit(self) -> None:
        """Commit the transaction. After a Fault, it is unknown whether the transaction was committed."""
        self._call(self._producer.commit_transaction, "committing a transaction")

    def abort(self) -> None:
        """Abort the transaction. Raises Fault."""
        self._call(self._producer.abort_transaction, "aborting a transaction")

    def close(self) -> None:
        """Close the connections in the background. An open transaction stays open until it times out.

        kafka-python's ``close`` waits for unfinished records first, and gives up without closing anything if
        they are not finished in the given time. Unfinished records fail after the delivery timeout at the
        latest.
        """
        timeout_s = 2 * self._delivery_timeout_s
        threading.Thread(
            target=lambda: self._producer.close(timeout=timeout_s), name="kafka-close", daemon=True
        ).start()

    def _call(self, function: Callable[[], T], action: str) -> T:
        return call_within(self._delivery_timeout_s + 2 * _DELIVERY_MARGIN_S, function, action)
