"""Determine from a small sample whether recent records of topics have keys, and how large batches are.

kdeclare neither stores nor shows keys and values, and a sample does not contain them.
"""

import time
from collections.abc import Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact.topic_logs import (
    TOO_SLOW,
    explain_missing_leader,
    read_log_bounds,
    require_every_partition,
)
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import RecordBatch

PARTITIONS_PER_TOPIC = 4
"""The largest number of partitions of a topic that are sampled."""
RECORDS_PER_PARTITION = 2000
"""The sample of a partition begins this many offsets before the end, and has at most this many records."""
BYTES_PER_PARTITION = 1024 * 1024
"""The maximum size of the sample of a partition, in bytes. A single batch can be larger."""
BYTES_PER_PLAN = 32 * 1024 * 1024
"""The maximum number of sampled bytes per plan. Once it is reached, no further topics are sampled."""

_TOO_MUCH = f"kdeclare samples at most {BYTES_PER_PLAN // 1024**2} MiB of records for a plan"


@dataclass(frozen=True, slots=True)
class RecordSample:
    """A sample of the recent records of a topic.

    batches: the sampled batches. partitions: the number of partitions that they are from; 0 if the topic
        holds no records.
    """

    batches: Sequence[RecordBatch] = ()
    partitions: int = 0

    @property
    def records(self) -> int:
        """The number of records for which it is known whether they have a key."""
        return sum(batch.inspected for batch in self.batches)

    @property
    def keyed(self) -> int:
        """The number of records that are known to have a key."""
        return sum(batch.keyed for batch in self.batches)

    @property
    def largest_batch(self) -> int:
        """The size of the largest sampled batch, in bytes."""
        return max((batch.size for batch in self.batches), default=0)

    @property
    def missing(self) -> str | None:
        """The reason why it is unknown whether some or all recent records have keys; None if it is known."""
        problem = next((batch.problem for batch in self.batches if batch.problem), None)
        return problem or ("the sample contains no records" if self.partitions and not self.records else None)

    @property
    def is_empty(self) -> bool:
        """Whether the topic holds no records."""
        return self.partitions == 0


def read_samples(
    cluster: Cluster, topics: Mapping[str, Topic], deadline: float
) -> Mapping[str, RecordSample | Fault | str]:
    """Return a sample of the recent records of each topic, or the reason why they cannot be read.

    deadline: no request begins after this time (`time.monotonic`).
    """
    reasons = {name: explain_missing_leader(topic) for name, topic in topics.items()}
    samples: dict[str, RecordSample | Fault | str] = {
        name: reason for name, reason in reasons.items() if reason
    }
    readable = {name: topics[name] for name in sorted(topics.keys() - samples.keys())}
    if not readable:
        return samples
    received = 0
    for name, bounds in require_every_partition(read_log_bounds(cluster, readable, deadline), topics).items():
        if isinstance(bounds, Fault):
            samples[name] = bounds
        elif received >= BYTES_PER_PLAN:
            samples[name] = _TOO_MUCH
        else:
            sample = _read_sample(cluster, _choose_positions(bounds), deadline)
            samples[name] = sample
            received += sum(b.size for b in sample.batches) if isinstance(sample, RecordSample) else 0
    return samples


def _choose_positions(bounds: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, int]:
    """Choose some of the partitions that hold records. Return the first offset of each partition's sample."""
    filled = sorted(where for where, (start, end) in bounds.items() if end > start)
    count = min(len(filled), PARTITIONS_PER_TOPIC)
    chosen = [filled[index * len(filled) // count] for index in range(count)]
    return {where: max(bounds[where][0], bounds[where][1] - RECORDS_PER_PARTITION) for where in chosen}


def _read_sample(
    cluster: Cluster, positions: Mapping[TopicPartition, int], deadline: float
) -> RecordSample | Fault:
    """Read batches of several partitions, starting at the given offsets.

    If only some of the partitions can be read, the sample contains only their batches.
    """
    if not positions:
        return RecordSample()
    if time.monotonic() > deadline:
        return TOO_SLOW
    try:
        fetched = cluster.fetch_batches(
            positions, max_bytes=BYTES_PER_PARTITION, max_records=RECORDS_PER_PARTITION
        )
    except Fault as fault:
        return fault
    read = [batches for batches in fetched.values() if not isinstance(batches, Fault)]
    if not read:
        return next(fault for fault in fetched.values() if isinstance(fault, Fault))
    return RecordSample(tuple(batch for batches in read for batch in batches), len(read))
