"""The one place where what may work the second time is tried a second time."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

from kdeclare.cluster.connect.port import Changes, ConnectWorkers, Validation
from kdeclare.cluster.port import (
    Alteration,
    Cluster,
    ConfigQuery,
    Configs,
    Fault,
    FaultKind,
    LogDir,
    NewPartitions,
    NewTopic,
    Result,
)
from kdeclare.model.ids import ConfigResource, TopicPartition
from kdeclare.model.live import ClusterInfo, Move, Topic
from kdeclare.model.workers import Certificate, WorkerGroup, WorkerStatus

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """One retry that is about to be made.

    call: the method of the port; attempt: the number of the attempt that failed, from 1;
    items: how many are sent again, None for a whole request; delay_s: how long it waits before.
    """

    call: str
    attempt: int
    items: int | None
    fault: Fault
    delay_s: float


class Retrying:
    """A `Cluster` that sends again what failed with a RETRIABLE fault: whole requests, or the failed items.

    UNKNOWN and REFUSED faults pass through, as does a RETRIABLE one when the attempts are used up.
    Waits double from ``base_delay_s`` up to ``max_delay_s``, each cut by up to a half at random, so
    that many clients do not come back at the same time. Safe to use from several threads if
    ``cluster`` is.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        attempts: int = 6,
        base_delay_s: float = 0.1,
        max_delay_s: float = 5.0,
        sleep: Callable[[float], None] = time.sleep,
        on_retry: Callable[[Retry], None] = lambda _: None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """``attempts`` counts the first one; ``jitter`` gives numbers from 0 to 1."""
        if attempts < 1:
            raise ValueError("at least one attempt is needed")
        self._cluster = cluster
        self._attempts = attempts
        self._base_delay_s = base_delay_s
        self._max_delay_s = max_delay_s
        self._sleep = sleep
        self._on_retry = on_retry
        self._jitter = jitter

    def describe(self) -> ClusterInfo:
        """As the port says."""
        return self._whole("describe", self._cluster.describe)

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        """As the port says."""
        return self._whole("topics", lambda: self._cluster.topics(names))

    def configs(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs]:
        """As the port says."""
        return self._whole("configs", lambda: self._cluster.configs(queries))

    def configs_in_part(self, queries: Sequence[ConfigQuery]) -> Mapping[ConfigResource, Configs | Fault]:
        """As the port says."""
        return self._items(
            "configs_in_part", queries, lambda query: query.resource, self._cluster.configs_in_part
        )

    def moves(self, topics: Sequence[str] | None = None) -> Mapping[TopicPartition, Move]:
        """As the port says."""
        return self._whole("moves", lambda: self._cluster.moves(topics))

    def record_counts(self, topics: Sequence[str]) -> Mapping[str, int]:
        """As the port says."""
        return self._whole("record_counts", lambda: self._cluster.record_counts(topics))

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """As the port says."""
        return self._items(
            "create_topics",
            topics,
            lambda topic: topic.name,
            lambda items: self._cluster.create_topics(items, validate_only=validate_only),
        )

    def delete_topics(self, names: Sequence[str]) -> Mapping[str, Result]:
        """As the port says."""
        return self._items("delete_topics", names, lambda name: name, self._cluster.delete_topics)

    def create_partitions(
        self, items: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        """As the port says."""
        return self._items(
            "create_partitions",
            items,
            lambda item: item.topic,
            lambda rest: self._cluster.create_partitions(rest, validate_only=validate_only),
        )

    def alter_configs(
        self, items: Sequence[Alteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        """As the port says."""
        return self._items(
            "alter_configs",
            items,
            lambda item: item.resource,
            lambda rest: self._cluster.alter_configs(rest, validate_only=validate_only),
        )

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_replication_factor_change: bool,
        unguarded: bool = False,
    ) -> Mapping[TopicPartition, Result]:
        """As the port says."""
        return self._items(
            "reassign",
            list(targets),
            lambda partition: partition,
            lambda rest: self._cluster.reassign(
                {partition: targets[partition] for partition in rest},
                allow_replication_factor_change=allow_replication_factor_change,
                unguarded=unguarded,
            ),
        )

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        """As the port says."""
        return self._items(
            "elect_leaders", partitions, lambda partition: partition, self._cluster.elect_leaders
        )

    def log_dirs(self, topics: Sequence[str] | None = None) -> Mapping[int, tuple[LogDir, ...]]:
        """As the port says."""
        return self._whole("log_dirs", lambda: self._cluster.log_dirs(topics))

    def move_log_dirs(
        self, targets: Mapping[tuple[TopicPartition, int], str]
    ) -> Mapping[tuple[TopicPartition, int], Result]:
        """As the port says."""
        return self._items(
            "move_log_dirs",
            list(targets),
            lambda replica: replica,
            lambda rest: self._cluster.move_log_dirs({replica: targets[replica] for replica in rest}),
        )

    def workers(self, group: WorkerGroup) -> ConnectWorkers:
        """As the port says."""
        return _RetryingWorkers(self._cluster.workers(group), self._whole)

    def close(self) -> None:
        """As the port says."""
        self._cluster.close()

    def _whole(self, call: str, send: Callable[[], T]) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                return send()
            except Fault as fault:
                if not self._again(call, attempt, None, fault):
                    raise

    def _items(
        self,
        call: str,
        items: Sequence[T],
        key: Callable[[T], K],
        send: Callable[[Sequence[T]], Mapping[K, R | Fault]],
    ) -> Mapping[K, R | Fault]:
        results: dict[K, R | Fault] = {}
        rest = items
        attempt = 0
        while True:
            attempt += 1
            try:
                results.update(send(rest))
            except Fault as fault:
                if self._again(call, attempt, None if not results else len(rest), fault):
                    continue
                if not results:
                    raise
                # Others have their results already: this fault is that of the items only.
                results.update({key(item): fault for item in rest})
                return results
            failed = {name: result for name, result in results.items() if _is_retriable(result)}
            if not failed:
                return results
            rest = [item for item in rest if key(item) in failed]
            if not self._again(call, attempt, len(rest), next(iter(failed.values()))):
                return results

    def _again(self, call: str, attempt: int, items: int | None, fault: Fault) -> bool:
        """Whether to go on, after waiting."""
        if fault.kind is not FaultKind.RETRIABLE or attempt >= self._attempts:
            return False
        delay_s = min(self._max_delay_s, self._base_delay_s * 2 ** (attempt - 1))
        delay_s *= 1 - self._jitter() / 2
        self._on_retry(Retry(call, attempt, items, fault, delay_s))
        self._sleep(delay_s)
        return True


def _is_retriable(result: object) -> TypeGuard[Fault]:
    return isinstance(result, Fault) and result.kind is FaultKind.RETRIABLE


class _RetryingWorkers:
    """Workers that are told again what they were not ready for.

    Who only looks asks once: either they look again anyway, or they want to know who is silent.
    """

    def __init__(self, workers: ConnectWorkers, whole: Callable[[str, Callable[[], Any]], Any]) -> None:
        self.urls = workers.urls
        self._workers = workers
        self._whole = whole

    def overrides(self, url: str) -> Mapping[str, str]:
        return self._workers.overrides(url)

    def status(self, url: str) -> WorkerStatus:
        return self._workers.status(url)

    def handshake(self, url: str) -> Certificate | None:
        return self._workers.handshake(url)

    def validate(self, url: str, changes: Changes) -> Validation:
        return self._workers.validate(url, changes)

    def patch(self, url: str, changes: Changes) -> Mapping[str, str]:
        found: Mapping[str, str] = self._whole("patch", lambda: self._workers.patch(url, changes))
        return found

    def delete(self, url: str, key: str) -> None:
        self._whole("delete", lambda: self._workers.delete(url, key))

    def close(self) -> None:
        self._workers.close()
