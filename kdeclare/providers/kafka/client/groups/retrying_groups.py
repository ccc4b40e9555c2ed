"""`RetryingGroups`, which adds retries to `Groups`."""

from collections.abc import Mapping, Sequence
from typing import Any

from kdeclare.core.live.faults import Result
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.providers.kafka.client.item_retries import send_with_retries
from kdeclare.providers.kafka.consumer_group.group import (
    DescribedGroup,
    GroupOffsets,
    GroupPartition,
    ListedGroup,
)
from kdeclare.providers.kafka.consumer_group.port import Groups, OffsetChanges


class RetryingGroups:
    """Retries requests, and items of requests, that fail with a RETRIABLE fault. Implements `Groups`."""

    def __init__(self, groups: Groups, policy: RetryPolicy) -> None:
        self._groups = groups
        self._policy = policy

    def list_groups(self) -> Mapping[str, ListedGroup]:
        """See `Groups.list_groups`."""
        return self._policy.whole("list_groups", self._groups.list_groups)

    def describe_groups(self, ids: Sequence[str]) -> Mapping[str, DescribedGroup]:
        """See `Groups.describe_groups`."""
        return self._policy.whole("describe_groups", lambda: self._groups.describe_groups(ids))

    def fetch_offsets(self, ids: Sequence[str]) -> Mapping[str, GroupOffsets]:
        """See `Groups.fetch_offsets`."""
        return self._policy.whole("fetch_offsets", lambda: self._groups.fetch_offsets(ids))

    def alter_offsets(self, changes: Mapping[str, OffsetChanges]) -> Mapping[GroupPartition, Result]:
        """See `Groups.alter_offsets`."""

        def send(rest: Sequence[GroupPartition]) -> Mapping[GroupPartition, Result]:
            remaining: dict[str, dict[Any, Any]] = {}
            for id_, where in rest:
                remaining.setdefault(id_, {})[where] = changes[id_][where]
            return self._groups.alter_offsets(remaining)

        items = [(id_, where) for id_, group_changes in changes.items() for where in group_changes]
        return send_with_retries(self._policy, "alter_offsets", items, lambda item: item, send)

    def delete_groups(self, ids: Sequence[str]) -> Mapping[str, Result]:
        """See `Groups.delete_groups`."""
        return send_with_retries(
            self._policy, "delete_groups", ids, lambda id_: id_, self._groups.delete_groups
        )
