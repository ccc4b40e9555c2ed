"""How the in-process cluster takes a request: its fault plan, the log, and a result an item."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from kdeclare.core.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import Partition, Topic
from kdeclare.providers.kafka.testing.controls import Controls
from kdeclare.providers.kafka.testing.faults import Call
from kdeclare.testing.faults import run_request

if TYPE_CHECKING:
    from kdeclare.providers.kafka.testing.cluster import MemoryCluster

Item = TypeVar("Item")
Answer = TypeVar("Answer")
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Requests(Controls):
    """The state, and how requests get to it; the requests themselves are those of `MemoryCluster`."""

    def _read(self, method: str, items: Iterable[str], answer: Callable[[], Answer]) -> Answer:
        return self._request(Call(method, tuple(items)), lambda _: answer())

    def _change(
        self,
        method: str,
        items: Sequence[Item],
        key: Callable[[Item], K],
        text: Callable[[K], str],
        act: Callable[[Item], R],
        twice: str,
        validate_only: bool = False,
    ) -> dict[K, Fault | R]:
        """Do ``act`` item by item; what stands in a request twice is refused each time."""
        counts = Counter(key(item) for item in items)

        def answer(refused: Mapping[str, Fault]) -> dict[K, Fault | R]:
            results: dict[K, Fault | R] = {}
            for item in items:
                name = key(item)
                if counts[name] > 1:
                    results[name] = Fault("INVALID_REQUEST", twice)
                elif text(name) in refused:
                    results[name] = refused[text(name)]
                else:
                    results[name] = _attempt(act, item)
            return results

        call = Call(method, tuple(text(key(item)) for item in items), validate_only)
        with self._lock:
            before = self._all_topics() if call.mutating and self.stale_reads else None
            configs = self._broker_overrides() if call.mutating and self.stale_configs else None
            try:
                return self._request(call, answer)
            finally:
                if configs is not None and configs != self._broker_overrides():
                    self._stale_configs, self._stale_configs_left = configs, self.stale_configs
                if before is not None and before != self._all_topics():
                    self._stale, self._stale_left = before, self.stale_reads

    def _request(self, call: Call, answer: Callable[[Mapping[str, Fault]], Answer]) -> Answer:
        def elsewhere() -> "MemoryCluster":
            return cast("MemoryCluster", self.elsewhere())

        return run_request(self.faults, self.calls, call, answer, elsewhere)

    def _broker_overrides(self) -> dict[ConfigResource, dict[str, str]]:
        found = self._state.configs.overrides
        return {r: dict(values) for r, values in found.items() if r.scope is ConfigScope.BROKER}

    def _all_topics(self, names: Sequence[str] | None = None) -> dict[str, Topic]:
        state = self._state.topics
        return {
            name: Topic(
                name,
                state[name].topic_id if self.topic_ids else "",
                tuple(Partition(p.replicas, p.leader, p.isr) for p in state[name].partitions),
                state[name].internal,
            )
            for name in (state if names is None else names)
            if name in state
        }


def _attempt(act: Callable[[Item], R], item: Item) -> Fault | R:
    try:
        return act(item)
    except Fault as fault:
        return fault
