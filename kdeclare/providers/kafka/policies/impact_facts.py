"""The data about the impact of a request, for policies. A value is read only when a policy uses it.

Numbers are upper bounds. If a value is unknown, reading it raises PolicyViolation, so that the request is
denied: an unknown number must not look like 0.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NoReturn, TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.policies.policy_request import PolicyViolation
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.impact.deletable_records import (
    LogLimits,
    PartitionLog,
    compute_deletable_bytes,
    count_unread,
)
from kdeclare.providers.kafka.impact.record_loss import (
    Loss,
    compute_deleted,
    find_losses,
    merge_limits,
)
from kdeclare.providers.kafka.impact.topic_logs import (
    Readers,
    ReadingGroup,
    TopicLogs,
    explain_missing_leader,
)
from kdeclare.providers.kafka.impact.topic_settings import TopicChange, TopicSettings
from kdeclare.providers.kafka.impact.wording import (
    DESCRIBE,
    HIDDEN_GROUPS,
    READ,
    UNKNOWN_READERS,
    format_reason,
)
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.operations.kafka_operation_type import TopicEffect
from kdeclare.providers.kafka.policies.cluster_reader import ClusterReader

_T = TypeVar("_T")
_TOPIC = "Topic"
_MAX_NAMED_GROUPS = 5
_TIERED = "the topic has tiered storage, and brokers report only the size of the local log"


def build_effect_change(topic: str, effects: Iterable[TopicEffect]) -> TopicChange:
    """Combine several effects on an existing topic into one change, and return it."""
    configs: dict[str, str | None] = {}
    is_deletion = False
    for effect in effects:
        is_deletion = is_deletion or effect.deleted
        configs |= effect.configs
    return TopicChange(str(ResourceId(_TOPIC, topic)), is_deletion, configs)


@dataclass(frozen=True)
class ImpactSource:
    """The changes for which policies can request the impact. The impact of similar changes is read together.

    planned: the evaluated changes to existing topics, by topic.
    """

    facts: ClusterReader
    planned: Mapping[str, TopicChange] = field(default_factory=dict)
    _claimed: set[tuple[str, bool, bool]] = field(default_factory=set)

    def claim_batch(
        self, purpose: str, topic: str, change: TopicChange, among: Collection[str]
    ) -> Mapping[str, TopicChange]:
        """Return, by topic, the changes whose impact is read together.

        The first call for a purpose returns all planned changes that are similar to ``change``, and an empty
        change for each topic in ``among``. Later calls for similar changes return only ``change``.
        """
        key = (purpose, change.is_deletion, change.can_lose_records)
        if key in self._claimed:
            return {topic: change}
        self._claimed.add(key)
        others = {name: TopicChange(str(ResourceId(_TOPIC, name))) for name in among}
        similar = {
            name: other
            for name, other in self.planned.items()
            if (other.is_deletion, other.can_lose_records) == key[1:]
        }
        return {**others, **similar, topic: change}

    def find_broker_id(self) -> int | None:
        """Return the id of the broker from which config defaults are read."""
        return next(iter(sorted(self.facts.info.serving_broker_ids)), None)


class _UnknownFactError(Exception):
    """Raised if a value is unknown. The message is the reason, without a period."""


@dataclass(frozen=True)
class TopicImpactFacts:
    """The impact of the change to one topic; see `TopicImpact` in `kdeclare.policy.interface`.

    among: other topics whose impact may be requested later and is therefore read in the same requests.
    """

    topic: str
    change: TopicChange
    source: ImpactSource
    among: Collection[str] = ()

    @property
    def records(self) -> int:
        """The number of records of the topic."""
        return self._determine("records", lambda: sum(log.count for log in self._read_logs().values()))

    @property
    def bytes(self) -> int:
        """The size of the topic on the leaders of its partitions, in bytes."""
        return self._determine("bytes", lambda: sum(self._find_sizes().values()))

    @property
    def deleted_records(self) -> int:
        """The number of records that the change deletes."""
        return self._determine("deletedRecords", lambda: sum(self._find_deleted()[1].values()))

    @property
    def deleted_bytes(self) -> int:
        """The number of bytes that the change deletes."""
        return self._determine("deletedBytes", self._sum_deleted_bytes)

    @property
    def unread_records(self) -> int:
        """The number of records that the change deletes and that at least one group has not read."""
        return self._determine("unreadRecords", lambda: sum(self._find_unread().values()))

    @property
    def unread_groups(self) -> Sequence[str]:
        """The groups that have not read all records that the change deletes."""
        return self._determine("unreadGroups", self._find_unread_groups)

    @property
    def active_consumers(self) -> int:
        """The number of group members that have partitions of the topic."""
        return self._determine(
            "activeConsumers", lambda: sum(group.members for group in self._require_groups())
        )

    @property
    def active_groups(self) -> Sequence[str]:
        """The groups with members that have partitions of the topic."""

        def find() -> Sequence[str]:
            return tuple(group.id for group in self._require_groups() if group.members)

        return self._determine("activeGroups", find)

    @property
    def active_producers(self) -> int:
        """The number of producers that wrote within the last hour or have an open transaction."""
        return self._determine("activeProducers", self._read_producers)

    @property
    def last_write_ms(self) -> int | None:
        """The timestamp of the newest record in milliseconds since 1970; None if there are no records."""
        return self._determine("lastWriteMs", self._read_last_write)

    def _determine(self, name: str, find: Callable[[], _T]) -> _T:
        """Return a value of the impact. Raises PolicyViolation with the reason if the value is unknown."""
        try:
            return find()
        except _UnknownFactError as unknown:
            resource = ResourceId(_TOPIC, self.topic)
            text = f"'impact.{name}' of {resource} is unknown, so the policy cannot be evaluated: {unknown}."
            raise PolicyViolation(text) from None

    # The methods below raise _UnknownFactError.

    def _claim_batch(self, purpose: str) -> Mapping[str, TopicChange]:
        self._find_readable([self.topic])  # otherwise, this topic would claim the batch of all others
        return self.source.claim_batch(purpose, self.topic, self.change, self.among)

    def _find_readable(self, names: Iterable[str]) -> Mapping[str, Topic]:
        """Return the named topics that exist and whose partitions have leaders.

        Raises _UnknownFactError if the topic of this impact is not one of them.
        """
        found = {name: self.source.facts.topic(name) for name in sorted(names)}
        topic = found[self.topic]
        reason = "the topic no longer exists" if topic is None else explain_missing_leader(topic)
        if reason is not None:
            _refuse(reason)
        return {
            name: other
            for name, other in found.items()
            if other is not None and explain_missing_leader(other) is None
        }

    def _find_losses(self, changes: Mapping[str, TopicChange]) -> Mapping[str, tuple[Loss, ...]]:
        """Return, by topic, the changes that delete records."""
        topics = self._find_readable(changes)
        altered = {name: changes[name] for name in topics if not changes[name].is_deletion}
        settings = self._read_settings(altered)
        losses: dict[str, tuple[Loss, ...]] = {}
        for name, topic in topics.items():
            found = tuple(find_losses(changes[name], topic, settings.get(name)))
            unknown = [loss for loss in found if not isinstance(loss, Loss)]
            if unknown and name == self.topic:
                _refuse(unknown[0].reason)
            losses[name] = tuple(loss for loss in found if isinstance(loss, Loss))
        return losses

    def _read_settings(self, changes: Mapping[str, TopicChange]) -> Mapping[str, TopicSettings | Fault]:
        if not changes:
            return {}
        return self.source.facts.impact_reader.read_settings(changes, self.source.find_broker_id)

    def _read_logs(self, *, after_groups: bool = False) -> TopicLogs:
        """Return the logs of the topic."""
        changes = self._claim_batch(f"logs {after_groups}")
        limits: Mapping[str, LogLimits | None] = {}
        if self.change.can_lose_records:
            losses = self._find_losses(changes)
            limits = merge_limits(loss for found in losses.values() for loss in found)
            changes = {name: changes[name] for name in {*limits, self.topic}}
        topics = self._find_readable(changes)
        reader = self.source.facts.impact_reader
        after_groups = after_groups or (self.change.can_lose_records and reader.reads_groups_first)
        logs = reader.read_logs(topics, limits, after_groups=after_groups)[self.topic]
        return _refuse(logs) if isinstance(logs, Fault) else logs

    def _find_own_losses(self) -> tuple[Loss, ...]:
        if not self.change.can_lose_records:
            return ()
        return self._find_losses(self._claim_batch("losses"))[self.topic]

    def _find_deleted(self, *, after_groups: bool = False) -> tuple[TopicLogs, Mapping[int, int]]:
        """Return the logs, and the number of records that the change deletes, by partition.

        If the change deletes nothing, nothing is read.
        """
        losses = self._find_own_losses()
        if not losses:
            return {}, {}
        logs = self._read_logs(after_groups=after_groups)
        if any(loss.is_tiered for loss in losses):
            logs = {number: log.without_size() for number, log in logs.items()}
        return logs, {n: max(compute_deleted(loss, log).most for loss in losses) for n, log in logs.items()}

    def _find_sizes(self) -> Mapping[int, int]:
        logs = self._read_logs()
        names = self._claim_batch("sizes")
        settings = self._read_settings({name: TopicChange(name) for name in names}).get(self.topic)
        if not isinstance(settings, TopicSettings):
            _refuse(settings or "the topic no longer exists")
        if settings.is_tiered:
            _refuse(_TIERED)
        return {number: self._require_size(number, log) for number, log in logs.items()}

    def _require_size(self, number: int, log: PartitionLog) -> int:
        if log.size is not None:
            return log.size
        fault = self.source.facts.impact_reader.sizes_fault
        return _refuse(fault or f"no broker reports the size of partition {number}")

    def _sum_deleted_bytes(self) -> int:
        logs, deleted = self._find_deleted()
        if not any(deleted.values()):
            return 0
        sizes, losses = self._find_sizes(), self._find_own_losses()
        return sum(
            max(_bound_deleted_bytes(loss, logs[number], size) for loss in losses)
            for number, size in sizes.items()
        )

    def _find_unread(self) -> Mapping[int, int]:
        """Return the number of unread records by partition.

        A record counts if the change deletes it and at least one group has not read it.
        """
        logs, deleted, groups = self._find_readers_of_deleted()
        return {
            number: max((_count_group(group, number, log, deleted[number]) for group in groups), default=0)
            for number, log in logs.items()
        }

    def _find_unread_groups(self) -> Sequence[str]:
        logs, deleted, groups = self._find_readers_of_deleted()
        return tuple(
            group.id
            for group in groups
            if any(_count_group(group, number, log, deleted[number]) for number, log in logs.items())
        )

    def _find_readers_of_deleted(
        self,
    ) -> tuple[TopicLogs, Mapping[int, int], Sequence[ReadingGroup]]:
        logs, deleted = self._find_deleted(after_groups=True)
        # If nothing is deleted, it does not matter which groups are hidden.
        return logs, deleted, self._require_groups() if any(deleted.values()) else ()

    def _require_groups(self) -> Sequence[ReadingGroup]:
        readers = self.source.facts.impact_reader.read_readers()
        if not isinstance(readers, Readers):
            _refuse(readers)
        if not readers.is_complete:
            _refuse(HIDDEN_GROUPS)
        if readers.unknown:
            _refuse(_explain_unknown_groups(readers.unknown))
        return readers.groups.get(self.topic, ())

    def _read_producers(self) -> int:
        topics = self._find_readable(self._claim_batch("producers"))
        producers = self.source.facts.impact_reader.read_producers(topics)[self.topic]
        return _refuse(producers, right=READ) if isinstance(producers, Fault) else producers

    def _read_last_write(self) -> int | None:
        topics = self._find_readable(self._claim_batch("last writes"))
        last_write = self.source.facts.impact_reader.read_last_writes(topics)[self.topic]
        return _refuse(last_write) if isinstance(last_write, Fault) else last_write


def _refuse(reason: Fault | str, *, right: str = DESCRIBE) -> NoReturn:
    raise _UnknownFactError(format_reason(reason, right=right))


def _count_group(group: ReadingGroup, number: int, log: PartitionLog, deleted: int) -> int:
    return count_unread(log, deleted, group.committed.get(number))


def _bound_deleted_bytes(loss: Loss, log: PartitionLog, size: int) -> int:
    bounds = compute_deletable_bytes(log, loss.limits) if loss.limits is not None else None
    return size if bounds is None else bounds.most


def _explain_unknown_groups(groups: Sequence[str]) -> str:
    named = ", ".join(f"'{group}'" for group in groups[:_MAX_NAMED_GROUPS])
    more = f" and {len(groups) - _MAX_NAMED_GROUPS} more" if len(groups) > _MAX_NAMED_GROUPS else ""
    noun, verb = ("group", "reads") if len(groups) == 1 else ("groups", "read")
    return (
        f"kdeclare does not know whether the {noun} {named}{more} {verb} the topic: kdeclare cannot "
        f"determine the topics of {UNKNOWN_READERS}"
    )
