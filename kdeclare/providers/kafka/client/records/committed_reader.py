"""Read the last committed record of each key of a compacted topic with one partition."""

import time
from collections.abc import Iterator
from contextlib import suppress

from kafka.consumer import KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.client.faults import build_fault_from_exception
from kdeclare.providers.kafka.client.records.client_arguments import RecordClientArguments, call_within

_FETCH_BYTES = 16 * 1024 * 1024
_RECORDS_PER_POLL = 10_000
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class CommittedRecord:
    """The last committed record of a key."""

    offset: int
    value: bytes


class CommittedReader:
    """A reader that keeps in memory the last committed record of each key with a given prefix and suffix.

    After a Fault, only `close` can be called. Not thread-safe.
    """

    def __init__(
        self, arguments: RecordClientArguments, topic: str, prefix: bytes, suffix: bytes = b""
    ) -> None:
        """Connect to the topic, and start at its first record. Raises Fault."""
        self._prefix = prefix
        self._suffix = suffix
        self._partition = TopicPartition(topic, 0)
        self._timeout_s = arguments["request_timeout_ms"] / 1000
        self._records: dict[bytes, CommittedRecord] = {}

        def start() -> KafkaConsumer:
            consumer = KafkaConsumer(
                **arguments,
                isolation_level="read_committed",
                auto_offset_reset="none",  # a position outside the log is an error, not a reason to skip
                enable_auto_commit=False,
                max_partition_fetch_bytes=_FETCH_BYTES,
                max_poll_records=_RECORDS_PER_POLL,
            )
            consumer.assign([self._partition])
            consumer.seek_to_beginning(self._partition)
            return consumer

        self._consumer = call_within(2 * self._timeout_s, start, "connecting a consumer")

    def read_to(self, end: int, timeout_s: float) -> bool:
        """Read all committed records before the offset ``end``, and return whether they could be read.

        Waits up to ``timeout_s`` while a transaction that wrote records before this offset is open, because
        its outcome is not known yet. Also waits while the leader does not respond. Raises Fault.
        """
        deadline = time.monotonic() + timeout_s
        try:
            position = self._find_position()
            if position is not None and position > end:
                raise Fault("OFFSET_OUT_OF_RANGE", f"the log ends at {end}, before the position {position}")
            while (position := self._find_position()) is None or position < end:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    return False
                polled = self._consumer.poll(int(1000 * min(_POLL_S, remaining_s)) + 1)
                for record in polled.get(self._partition, ()):
                    self._apply(record.key, record.offset, record.value)
        except KafkaError as exc:
            raise build_fault_from_exception(exc, sent=True, changes=False) from exc
        return True

    def get(self, key: bytes) -> CommittedRecord | None:
        """Return the last record that was read for a key; None if there is none or if the key is deleted."""
        return self._records.get(key)

    def iterate_keys(self) -> Iterator[bytes]:
        """Yield the keys that are not deleted."""
        return iter(self._records)

    def close(self) -> None:
        """Close the connections."""
        with suppress(Fault):  # a consumer without a group leaves nothing behind
            call_within(self._timeout_s, self._consumer.close, "closing a consumer")

    def _find_position(self) -> int | None:
        position: int | None = self._consumer.position(
            self._partition, timeout_ms=int(1000 * self._timeout_s)
        )
        return position

    def _apply(self, key: bytes | None, offset: int, value: bytes | None) -> None:
        if key is None or not (key.startswith(self._prefix) and key.endswith(self._suffix)):
            return
        if value is None:
            self._records.pop(key, None)
        else:
            self._records[key] = CommittedRecord(offset, value)
