"""Answer requests for records, with batches like those of the in-memory cluster."""

from collections.abc import Callable
from typing import Any

import kafka.protocol.consumer as consumer
from kafka.record.default_records import DefaultRecordBatchBuilder

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import LATEST, RecordBatch
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.served.results import get_code

_UNLIMITED = 2**31 - 1


class RecordApis:
    """The answers of all brokers to requests for records."""

    def __init__(self, memory: MemoryCluster) -> None:
        self._memory = memory
        self.answers: dict[int, Callable[[Any], Any]] = {1: self._fetch}

    def _fetch(self, request: Any) -> Any:
        kind = consumer.FetchResponse
        return kind(
            throttle_time_ms=0,
            error_code=0,
            session_id=0,
            responses=[
                kind.FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[self._fetch_partition(topic.topic, item) for item in topic.partitions],
                )
                for topic in request.topics
            ],
        )

    def _fetch_partition(self, topic: str, item: Any) -> Any:
        where = TopicPartition(topic, item.partition)
        try:
            fetched = self._memory.fetch_batches(
                {where: item.fetch_offset}, max_bytes=_UNLIMITED, max_records=_UNLIMITED
            )[where]
        except Fault as fault:
            fetched = fault
        encoded = [] if isinstance(fetched, Fault) else [encode_batch(batch) for batch in fetched]
        limit = max(item.partition_max_bytes, len(encoded[0]) if encoded else 0)
        return consumer.FetchResponse.FetchableTopicResponse.PartitionData(
            partition_index=where.partition,
            error_code=get_code(fetched if isinstance(fetched, Fault) else None),
            high_watermark=self._find_end(where),
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            preferred_read_replica=-1,
            records=b"".join(encoded)[:limit],
        )

    def _find_end(self, where: TopicPartition) -> int:
        return self._memory.elsewhere().list_offsets([where.topic], [LATEST]).get(where, (-1,))[0]


def encode_batch(batch: RecordBatch, compression: int = 0, value: bytes = b"") -> bytes:
    """Return a batch of this size, of which the first records have keys.

    value: of each record. The last record is padded to reach the size, unless the batch is compressed.
    """
    padding = 0
    while True:
        builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, -1, _UNLIMITED)
        for number in range(batch.records):
            key = b"key" if number < batch.keyed else None
            is_last = number == batch.records - 1
            assert builder.append(number, number, key, value + b"x" * (padding * is_last), [])
        encoded = bytes(builder.build())
        if compression or len(encoded) == batch.size:
            return encoded
        padding += batch.size - len(encoded)
        assert padding >= 0, f"a batch of {batch.records} records is larger than {batch.size} bytes"
