"""Read the data that determines the impact of changes, once for both policies and observations."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import SharedReads
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact.deletable_records import LogLimits
from kdeclare.providers.kafka.impact.group_members import (
    GroupMembers,
    UnknownGroupsError,
    read_group_members,
)
from kdeclare.providers.kafka.impact.reading_order import ReadingOrder
from kdeclare.providers.kafka.impact.record_sample import RecordSample, read_samples
from kdeclare.providers.kafka.impact.topic_logs import (
    TOO_SLOW,
    Readers,
    TopicLogs,
    read_last_writes,
    read_logs,
    read_producers,
    read_readers,
    read_sizes,
    require_every_partition,
)
from kdeclare.providers.kafka.impact.topic_settings import (
    TopicChange,
    TopicSettings,
    build_settings,
    read_configs,
    read_defaults,
)
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.port import Cluster

Found = TypeVar("Found")
_TIME_LIMIT_S = 10.0
"""The maximum time that kdeclare spends on reading the data for the impact of a plan, in seconds.

After this time, kdeclare sends no further requests for such data.
"""


@dataclass(frozen=True, slots=True)
class _KnownLogs:
    """The logs of a topic, and how they were read.

    window: the ``retention.ms`` and ``segment.ms`` for which offsets were requested; empty if none were.
    follows_groups: whether the groups were read before the logs.
    """

    logs: TopicLogs | Fault
    window: tuple[int, ...]
    follows_groups: bool


class ImpactReader:
    """Reads configs, logs, groups and producers on demand, and caches them until the plan is complete.

    If something cannot be read, the result contains a Fault; no exception is raised.
    """

    def __init__(self, cluster: Cluster, *, reads_groups_first: bool = False) -> None:
        """Create the reader.

        reads_groups_first: whether the groups will be needed for each change that can delete records. If so,
            policies must read the groups before the logs.
        """
        self._cluster = cluster
        self.reads_groups_first = reads_groups_first
        self._remaining_s = _TIME_LIMIT_S
        self._reads: set[object] = set()
        self._configs: dict[str, Mapping[str, str] | Fault] = {}
        self._defaults: dict[str, str | None] | Fault = {}
        self._logs: dict[str, _KnownLogs] = {}
        self._members: GroupMembers | Fault | str | None = None
        self._readers: Readers | Fault | str | None = None
        self._producers: dict[str, int | Fault] = {}
        self._last_writes: dict[str, int | Fault | None] = {}
        self.sizes_fault: Fault | None = None

    @property
    def is_busy(self) -> bool:
        """Whether the reader is currently reading from the cluster. Thread-safe."""
        return bool(self._reads)

    def read_settings(
        self, changes: Mapping[str, TopicChange], find_broker_id: Callable[[], int | None]
    ) -> Mapping[str, TopicSettings | Fault]:
        """Return the configs of topics before and after the change of each topic.

        The result has a Fault for each topic whose configs cannot be described. find_broker_id: returns the
        id of the broker that the defaults are read from.
        """
        reset_keys = {key for change in changes.values() for key in change.reset_keys}
        self._read_defaults(reset_keys, find_broker_id)
        self._read_configs([name for name in changes if name not in self._configs])
        settings: dict[str, TopicSettings | Fault] = {}
        for name, change in changes.items():
            before = self._configs.get(name)
            if isinstance(before, Fault):
                settings[name] = before
            elif change.reset_keys and isinstance(self._defaults, Fault):
                settings[name] = self._defaults
            elif before is not None:
                defaults = {} if isinstance(self._defaults, Fault) else self._defaults
                settings[name] = build_settings(before, change, defaults)
        return settings

    def _read_defaults(self, keys: set[str], find_broker_id: Callable[[], int | None]) -> None:
        if isinstance(self._defaults, Fault) or keys <= self._defaults.keys():
            return
        if self._remaining_s <= 0:
            self._defaults = TOO_SLOW
            return
        with self._measure_time():
            try:
                found = read_defaults(self._cluster, keys, find_broker_id())
            except Fault as fault:
                self._defaults = fault
            else:
                self._defaults |= dict.fromkeys(keys) | dict(found)

    def _read_configs(self, names: Sequence[str]) -> None:
        if not names:
            return
        if self._remaining_s <= 0:
            self._configs |= dict.fromkeys(names, TOO_SLOW)
            return
        with self._measure_time():
            try:
                self._configs |= read_configs(self._cluster, names)
            except Fault as fault:
                self._configs |= dict.fromkeys(names, fault)

    def attempt(self, read: Callable[[Cluster], Found]) -> Found | Fault:
        """Return the result of ``read``, or a Fault if it fails or if the time limit has been reached."""
        if self._remaining_s <= 0:
            return TOO_SLOW
        with self._measure_time():
            try:
                return read(self._cluster)
            except Fault as fault:
                return fault

    def read_members(self) -> GroupMembers | Fault | str:
        """Return the groups of the cluster with their members, or the reason why the groups are unknown."""
        if self._members is None:
            self._members = self._attempt_groups(read_group_members)
        return self._members

    def read_readers(self) -> Readers | Fault | str:
        """Return the topics that groups read, with committed offsets, or the reason why they are unknown."""
        if self._readers is None:
            members = self.read_members()
            self._readers = (
                self._attempt_groups(lambda cluster: read_readers(cluster, members))
                if isinstance(members, GroupMembers)
                else members
            )
        return self._readers

    def _attempt_groups(self, read: Callable[[Cluster], Found]) -> Found | Fault | str:
        try:
            return self.attempt(read)
        except UnknownGroupsError as error:
            return str(error)

    def read_logs(
        self,
        topics: Mapping[str, Topic],
        limits: Mapping[str, LogLimits | None],
        *,
        after_groups: bool = False,
    ) -> Mapping[str, TopicLogs | Fault]:
        """Return the logs of topics, or the reason why they cannot be read.

        topics: topics whose partitions all have leaders. limits: the limits that cause records to be
            deleted, by topic; None if the times of records are not needed.
        after_groups: whether the groups have to be read before the logs. Records that groups read in the
            meantime then count as unread, which errs on the safe side.
        """
        if after_groups:
            self.read_readers()
        wanted = {name: limits.get(name) for name in topics if not self._is_known(name, limits, after_groups)}
        if wanted:
            with self._measure_time():
                self._read_new_logs({name: topics[name] for name in wanted}, wanted)
        return {name: self._logs[name].logs for name in topics}

    def _is_known(self, name: str, limits: Mapping[str, LogLimits | None], after_groups: bool) -> bool:
        known, window = self._logs.get(name), _get_window(limits.get(name))
        if known is None or (after_groups and not known.follows_groups):
            return False
        return not window or window == known.window

    def _read_new_logs(self, topics: Mapping[str, Topic], limits: Mapping[str, LogLimits | None]) -> None:
        sizes: Mapping[TopicPartition, int] = {}
        try:
            if self._remaining_s > 0:
                sizes = read_sizes(self._cluster, topics)
        except Fault as fault:
            self.sizes_fault = fault
        logs = read_logs(self._cluster, topics, limits, sizes, self.compute_deadline())
        for name, found in require_every_partition(logs, topics).items():
            self._logs[name] = _KnownLogs(found, _get_window(limits[name]), self._readers is not None)

    def read_producers(self, topics: Mapping[str, Topic]) -> Mapping[str, int | Fault]:
        """Return the number of active producers of each topic.

        The result has a Fault for a topic if the principal is not permitted to see its producers.
        """
        unread = {name: topic for name, topic in topics.items() if name not in self._producers}
        if unread:
            with self._measure_time():
                self._producers |= read_producers(self._cluster, unread, self.compute_deadline())
        return {name: self._producers[name] for name in topics}

    def read_last_writes(self, topics: Mapping[str, Topic]) -> Mapping[str, int | Fault | None]:
        """Return the latest timestamp in each topic, in milliseconds since 1970.

        None means that the topic has no records.
        """
        unread = {name: topic for name, topic in topics.items() if name not in self._last_writes}
        if unread:
            with self._measure_time():
                self._last_writes |= read_last_writes(self._cluster, unread, self.compute_deadline())
        return {name: self._last_writes[name] for name in topics}

    def read_samples(self, topics: Mapping[str, Topic]) -> Mapping[str, RecordSample | Fault | str]:
        """Return samples of the recent records of topics, or the reason why there is no sample."""
        if not topics:
            return {}
        with self._measure_time():
            return read_samples(self._cluster, topics, self.compute_deadline())

    def compute_deadline(self) -> float:
        """Return the deadline for all further reads, as a value of `time.monotonic`."""
        return time.monotonic() + self._remaining_s

    @contextmanager
    def _measure_time(self) -> Iterator[None]:
        """Mark the reader as busy in the ``with`` block. Deduct the elapsed time from the time limit."""
        token, started_s = object(), time.monotonic()
        self._reads.add(token)
        try:
            yield
        finally:
            self._reads.discard(token)
            self._remaining_s -= time.monotonic() - started_s


def get_impact_reader(shared_reads: SharedReads, cluster: Cluster) -> ImpactReader:
    """Return the reader that the policies and observations of a plan share."""
    order = shared_reads.get(ReadingOrder, ReadingOrder)
    return shared_reads.get(
        ImpactReader, lambda: ImpactReader(cluster, reads_groups_first=order.groups_first)
    )


def _get_window(limits: LogLimits | None) -> tuple[int, ...]:
    """Return the ``retention.ms`` and ``segment.ms`` to request offsets for; empty if none are needed."""
    if limits is None or not limits.deletes or limits.retention_ms is None:
        return ()
    return limits.retention_ms, limits.segment_ms
