"""The steps that all requests to the in-memory cluster have in common: faults, recording, stale reads."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.send_permit import check_send_permit
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.testing.controls import Call, ClusterControls
from kdeclare.testing.faults import run_request

if TYPE_CHECKING:
    from kdeclare.providers.kafka.testing.cluster import MemoryCluster

Item = TypeVar("Item")
Answer = TypeVar("Answer")
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class RequestHandler(ClusterControls):
    """The base class of `MemoryCluster`: its state, and the steps that all requests have in common."""

    def _handle_read(self, method: str, items: Iterable[str], respond: Callable[[], Answer]) -> Answer:
        return self._run_request(Call(method, tuple(items)), lambda _: respond())

    def _handle_change(
        self,
        method: str,
        items: Sequence[Item],
        get_key: Callable[[Item], K],
        format_key: Callable[[K], str],
        change_item: Callable[[Item], R],
        duplicate_message: str,
        validate_only: bool = False,
        *,
        duplicate_error: str = "INVALID_REQUEST",
    ) -> dict[K, Fault | R]:
        """Call ``change_item`` for each item. If an item is listed twice, both occurrences are rejected."""
        counts = Counter(get_key(item) for item in items)

        def respond(refused: Mapping[str, Fault]) -> dict[K, Fault | R]:
            results: dict[K, Fault | R] = {}
            for item in items:
                name = get_key(item)
                if counts[name] > 1:
                    results[name] = Fault(duplicate_error, duplicate_message)
                elif format_key(name) in refused:
                    results[name] = refused[format_key(name)]
                else:
                    results[name] = _try_item(change_item, item)
            return results

        call = Call(method, tuple(format_key(get_key(item)) for item in items), validate_only)
        if call.is_mutating:
            check_send_permit()
        with self._lock:
            topics_before = self._copy_topics() if call.is_mutating and self.stale_reads else None
            configs_before = (
                self._copy_broker_overrides() if call.is_mutating and self.stale_configs else None
            )
            try:
                return self._run_request(call, respond)
            finally:
                if configs_before is not None and configs_before != self._copy_broker_overrides():
                    self._stale_configs, self._stale_configs_left = configs_before, self.stale_configs
                if topics_before is not None and topics_before != self._copy_topics():
                    self._stale_topics, self._stale_reads_left = topics_before, self.stale_reads

    def _run_request(self, call: Call, respond: Callable[[Mapping[str, Fault]], Answer]) -> Answer:
        def open_other_client() -> "MemoryCluster":
            return cast("MemoryCluster", self.elsewhere())

        def respond_if_allowed(refused_items: Mapping[str, Fault]) -> Answer:
            self.restrictions.check_method(call.method)
            return respond(refused_items)

        return run_request(self.faults, self.calls, call, respond_if_allowed, open_other_client)

    def _copy_broker_overrides(self) -> dict[ConfigResource, dict[str, str]]:
        overrides = self._state.configs.overrides
        return {r: dict(values) for r, values in overrides.items() if r.scope is ConfigScope.BROKER}

    def _copy_topics(self, names: Sequence[str] | None = None) -> dict[str, Topic]:
        topic_states = self._state.topics
        return {
            name: Topic(
                name,
                topic_states[name].topic_id if self.topic_ids else "",
                tuple(Partition(p.replicas, p.leader, p.isr) for p in topic_states[name].partitions),
                topic_states[name].internal,
            )
            for name in (topic_states if names is None else names)
            if name in topic_states
        }


def _try_item(change_item: Callable[[Item], R], item: Item) -> Fault | R:
    try:
        return change_item(item)
    except Fault as fault:
        return fault
