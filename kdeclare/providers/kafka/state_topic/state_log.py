"""The committed records of one project and environment in a topic that stores states."""

import time
from collections.abc import Iterator

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client.records.client_arguments import RecordClientArguments
from kdeclare.providers.kafka.client.records.committed_reader import CommittedReader, CommittedRecord
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import LATEST
from kdeclare.providers.kafka.state_topic.problems import build_blocked_error, build_recreated_error
from kdeclare.providers.kafka.state_topic.topic_settings import (
    TOMBSTONE_AGE_S,
    TopicRequirements,
    check_state_topic,
    create_state_topic,
)

TRANSACTION_TIMEOUT_S = 10.0
"""The maximum time for which a transaction can be open. kdeclare's transactions take only milliseconds."""

OPEN_TRANSACTION_S = TRANSACTION_TIMEOUT_S + 10.0 + 5.0
"""How long a transaction whose process died can stay open, in seconds.

The coordinator looks for such transactions every 10 s
(``transaction.abort.timed.out.transaction.cleanup.interval.ms``).
"""

_TOPIC_CHECK_S = 1.0
"""How long the topic is considered unchanged after a check of its id, in seconds."""


class StateLog:
    """A topic that stores states, and the last committed record of each key with a given prefix and suffix.

    Not thread-safe.

    All methods raise Fault if a request fails, and KdeclareError if the topic cannot be used.
    """

    def __init__(
        self,
        cluster: Cluster,
        arguments: RecordClientArguments,
        requirements: TopicRequirements,
        prefix: bytes,
        suffix: bytes = b"",
    ) -> None:
        """Create the object without sending a request."""
        self._cluster = cluster
        self._arguments = arguments
        self._requirements = requirements
        self._prefix = prefix
        self._suffix = suffix
        self._topic_id: str | None = None
        self._checked_at = float("-inf")
        self._reader: CommittedReader | None = None
        self._read_at = float("-inf")

    @property
    def topic_id(self) -> str:
        """The id of the topic; empty until the topic has been found."""
        return self._topic_id or ""

    def find_topic(self) -> bool:
        """Return whether the topic exists. When the topic is first found, check its settings.

        Raises KdeclareError if the topic could lose records, or if it has been deleted since it was first
        found.
        """
        if time.monotonic() - self._checked_at < _TOPIC_CHECK_S:
            return True
        topic = self._describe_topic()
        if topic is None:
            if self._topic_id is not None:
                raise build_recreated_error(self._requirements.topic)
            return False
        if self._topic_id is None:
            check_state_topic(self._cluster, self._requirements, topic)
            self._topic_id = topic.topic_id
        elif topic.topic_id != self._topic_id:
            raise build_recreated_error(self._requirements.topic)
        self._checked_at = time.monotonic()
        return True

    def ensure_topic(self) -> None:
        """Create the topic if it does not exist."""
        if self.find_topic():
            return
        create_state_topic(self._cluster, self._requirements)
        if not self.find_topic():
            raise Fault("UNKNOWN_TOPIC_OR_PARTITION", "the topic is not visible yet", FaultKind.RETRIABLE)

    def read_to_end(self) -> None:
        """Read all records that were committed before this call.

        The method reads up to the leader's high watermark. Before this offset, there can be a transaction
        that is still open although the coordinator has accepted its commit. Therefore, the method waits until
        such transactions have ended.
        """
        if not self.find_topic():
            return
        topic = self._requirements.topic
        end = self._cluster.list_offsets([topic], [LATEST]).get(TopicPartition(topic, 0))
        if end is None:
            raise build_recreated_error(topic)
        if not self.read_to(end[0], OPEN_TRANSACTION_S):
            raise build_blocked_error(topic, OPEN_TRANSACTION_S)

    def read_to(self, end: int, timeout_s: float) -> bool:
        """Read all committed records before an offset. Return whether all of them could be read in time."""
        if not self.is_recent:
            self.close()
        try:
            if self._reader is None:
                self._reader = CommittedReader(
                    self._arguments, self._requirements.topic, self._prefix, self._suffix
                )
            is_complete = self._reader.read_to(end, timeout_s)
        except Fault:
            self.close()
            raise
        if is_complete:
            self._read_at = time.time()
        return is_complete

    @property
    def is_recent(self) -> bool:
        """Whether records were read so recently that no tombstone can have been removed since then.

        The system clock is used, because it keeps running while the machine is suspended. If the clock was
        changed, the records are read again.
        """
        return abs(time.time() - self._read_at) < TOMBSTONE_AGE_S / 2

    def get(self, key: bytes) -> CommittedRecord | None:
        """Return the last record of a key among the records that were read."""
        return self._reader.get(key) if self._reader else None

    def iterate_keys(self) -> Iterator[bytes]:
        """Yield the keys among the records that were read."""
        return self._reader.iterate_keys() if self._reader else iter(())

    def close(self) -> None:
        """Forget the records, and close the connection of the reader."""
        reader, self._reader = self._reader, None
        self._read_at = self._checked_at = float("-inf")
        if reader is not None:
            reader.close()

    def _describe_topic(self) -> Topic | None:
        name = self._requirements.topic
        topic = self._cluster.topics([name]).get(name)
        if topic is None and self._cluster.is_caught_up():
            # an earlier answer can come from a broker that did not know the topic yet
            topic = self._cluster.topics([name]).get(name)
        return topic
