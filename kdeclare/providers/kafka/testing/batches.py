"""Return the record batches of the in-memory cluster as brokers return them in response to Fetch."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.request_values import RecordBatch

RECORD_BYTES = 1000
"""The size in bytes of each record for which a test has not set a batch."""
_SINGLE_BATCH = RecordBatch(size=RECORD_BYTES, records=1, inspected=1)
_HEADER_BYTES = 61
"""The size of the header of a batch, in bytes.

Brokers can return an incomplete last batch. Clients know its full size if the response includes its header.
"""


def fetch_batches(
    last: Sequence[RecordBatch], bounds: tuple[int, int], position: int, max_bytes: int, max_records: int
) -> tuple[RecordBatch, ...]:
    """Return the batches of a partition, beginning with the batch at ``position``. Raises Fault.

    last: the last batches of the partition. Each earlier record is a batch of its own, without a key.
    bounds: the start and the end of the log.
    """
    start, end = bounds
    if not start <= position <= end:
        raise Fault("OFFSET_OUT_OF_RANGE", f"offset {position}")
    found: list[RecordBatch] = []
    free_bytes, free_records = max_bytes, max_records
    for batch in _list_batches(last, end, position):
        if found and free_bytes < _HEADER_BYTES:
            break
        is_complete = not found or batch.size <= free_bytes
        inspected = min(batch.inspected, free_records) if is_complete else 0
        problem = batch.problem if is_complete and free_records else None
        found.append(replace(batch, inspected=inspected, keyed=min(batch.keyed, inspected), problem=problem))
        free_bytes -= batch.size
        free_records -= inspected
    return tuple(found)


def _list_batches(last: Sequence[RecordBatch], end: int, position: int) -> Iterator[RecordBatch]:
    offset = end - sum(batch.records for batch in last)
    for _ in range(position, offset):
        yield _SINGLE_BATCH
    for batch in last:
        offset += batch.records
        if offset > position:
            yield batch
