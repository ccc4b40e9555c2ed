"""Retries: which requests are sent again, and after which delay."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.core.operations.retry import Retry, RetryPolicy
from kdeclare.providers.connect.client.port import ConnectWorkers
from kdeclare.providers.connect.client.workers_retry import RetryingWorkers
from kdeclare.providers.kafka.client.retrying_cluster import RetryingCluster
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import NO_TOPICS, Topic
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, Configs, LogDir, NewTopic

RETRIABLE = Fault("NOT_CONTROLLER", "", FaultKind.RETRIABLE)
REFUSED = Fault("INVALID_CONFIG", "")
UNKNOWN = Fault("REQUEST_TIMED_OUT", "", FaultKind.UNKNOWN)


class ScriptedCluster:
    """A cluster that plays a script: each call takes the next entry, a response or a Fault to raise."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def _next(self, asked: Any) -> Any:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, Fault):
            raise answer
        return answer

    def topics(self, names: Sequence[str] | None = None) -> Mapping[str, Topic]:
        return cast(Mapping[str, Topic], self._next(names))

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        found = self._next([query.resource.name for query in queries])
        return cast(Mapping[ConfigResource, Configs | Fault], found)

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Result]:
        return cast(Mapping[str, Result], self._next(([topic.topic for topic in topics], validate_only)))

    def elect_leaders(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Result]:
        return cast(Mapping[TopicPartition, Result], self._next(list(partitions)))

    def log_dirs(
        self, topics: Sequence[str] | None = None, *, known: Mapping[str, Topic] = NO_TOPICS
    ) -> Mapping[int, tuple[LogDir, ...]]:
        return cast(Mapping[int, tuple[LogDir, ...]], self._next(topics))

    def move_log_dirs(self, targets: Any) -> Mapping[tuple[TopicPartition, int], Result]:
        return cast(Mapping[tuple[TopicPartition, int], Result], self._next(targets))

    def reassign(self, targets: Any, **options: bool) -> Mapping[TopicPartition, Result]:
        return cast(Mapping[TopicPartition, Result], self._next((targets, options)))


class RecordedDelays(list[float]):
    """Record the requested delays instead of waiting."""

    def __init__(self) -> None:
        self.retries: list[Retry] = []

    def make_cluster(self, script: ScriptedCluster, attempts: int = 3) -> RetryingCluster:
        return RetryingCluster(
            cast(Cluster, script),
            RetryPolicy(attempts, 1.0, 5.0, self.append, self.retries.append, jitter=lambda: 0.0),
        )


def make_topics(*names: str) -> list[NewTopic]:
    return [NewTopic(name, 1, 1, None, {}) for name in names]


def test_read_is_retried_until_success() -> None:
    script, waits = ScriptedCluster(RETRIABLE, RETRIABLE, {}), RecordedDelays()
    assert waits.make_cluster(script).topics(["a"]) == {}
    assert script.asked == [["a"]] * 3
    assert waits == [1.0, 2.0]


def test_last_fault_is_raised_after_all_attempts() -> None:
    script, waits = ScriptedCluster(RETRIABLE, RETRIABLE, RETRIABLE, {}), RecordedDelays()
    with pytest.raises(Fault) as raised:
        waits.make_cluster(script).topics()
    assert raised.value is RETRIABLE
    assert len(script.asked) == 3
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize("fault", [REFUSED, UNKNOWN])
def test_other_faults_are_raised_at_once(fault: Fault) -> None:
    script, waits = ScriptedCluster(fault, {}), RecordedDelays()
    with pytest.raises(Fault) as raised:
        waits.make_cluster(script).create_topics(make_topics("a"))
    assert raised.value is fault
    assert len(script.asked) == 1
    assert waits == []


def test_only_failed_items_are_retried() -> None:
    script = ScriptedCluster(
        {"a": None, "b": RETRIABLE, "c": REFUSED, "d": UNKNOWN, "e": RETRIABLE},
        {"b": None, "e": RETRIABLE},
        {"e": None},
    )
    waits = RecordedDelays()
    results = waits.make_cluster(script).create_topics(
        make_topics("a", "b", "c", "d", "e"), validate_only=True
    )
    assert results == {"a": None, "b": None, "c": REFUSED, "d": UNKNOWN, "e": None}
    assert script.asked == [(["a", "b", "c", "d", "e"], True), (["b", "e"], True), (["e"], True)]
    assert [(retry.call, retry.attempt, retry.items) for retry in waits.retries] == [
        ("create_topics", 1, 2),
        ("create_topics", 2, 1),
    ]


def test_items_that_always_fail_keep_fault() -> None:
    script, waits = ScriptedCluster(*[{"a": RETRIABLE}] * 3), RecordedDelays()
    assert waits.make_cluster(script).create_topics(make_topics("a")) == {"a": RETRIABLE}
    assert len(script.asked) == 3


def test_request_fault_after_results_affects_only_remaining_items() -> None:
    script, waits = ScriptedCluster({"a": None, "b": RETRIABLE}, UNKNOWN), RecordedDelays()
    assert waits.make_cluster(script).create_topics(make_topics("a", "b")) == {"a": None, "b": UNKNOWN}


def test_retriable_request_fault_counts_as_attempt() -> None:
    script, waits = (
        ScriptedCluster(RETRIABLE, {"a": RETRIABLE, "b": None}, {"a": RETRIABLE}),
        RecordedDelays(),
    )
    assert waits.make_cluster(script).create_topics(make_topics("a", "b")) == {"a": RETRIABLE, "b": None}
    assert [names for names, _ in script.asked] == [["a", "b"], ["a", "b"], ["a"]]


def test_reassign_retry_keeps_options() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    script = ScriptedCluster({one: None, two: RETRIABLE}, {two: None})
    results = (
        RecordedDelays()
        .make_cluster(script)
        .reassign({one: (1,), two: None}, allow_replication_factor_change=False, unguarded=True)
    )
    options = {"allow_replication_factor_change": False, "unguarded": True}
    assert results == {one: None, two: None}
    assert script.asked == [({one: (1,), two: None}, options), ({two: None}, options)]


def test_elections_are_retried_by_partition() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    script = ScriptedCluster({one: RETRIABLE, two: REFUSED}, {one: None})
    assert RecordedDelays().make_cluster(script).elect_leaders([one, two]) == {one: None, two: REFUSED}
    assert script.asked == [[one, two], [one]]


def test_log_dirs_request_is_retried_as_whole() -> None:
    script = ScriptedCluster(RETRIABLE, {1: ()})
    assert RecordedDelays().make_cluster(script).log_dirs(["t"]) == {1: ()}
    assert script.asked == [["t"], ["t"]]


def test_log_dir_moves_keep_paths_on_retry() -> None:
    one, two = (TopicPartition("t", 0), 1), (TopicPartition("t", 0), 2)
    script = ScriptedCluster({one: None, two: RETRIABLE}, {two: None})
    assert RecordedDelays().make_cluster(script).move_log_dirs({one: "/a", two: "/b"}) == {
        one: None,
        two: None,
    }
    assert script.asked == [{one: "/a", two: "/b"}, {two: "/b"}]


def test_only_failed_configs_are_requested_again() -> None:
    a, b, c, gone = (ConfigResource(ConfigScope.TOPIC, name) for name in ("a", "b", "c", "gone"))
    script = ScriptedCluster({a: {}, b: RETRIABLE, c: REFUSED}, {b: {}})
    found = (
        RecordedDelays()
        .make_cluster(script)
        .describe_configs_partially([ConfigQuery(r) for r in (a, b, c, gone)])
    )
    assert found == {a: {}, b: {}, c: REFUSED}
    assert script.asked == [["a", "b", "c", "gone"], ["b"]]


def test_delays_grow_to_limit_with_jitter() -> None:
    script, waits = ScriptedCluster(*[RETRIABLE] * 6), RecordedDelays()
    with pytest.raises(Fault):
        waits.make_cluster(script, attempts=6).topics()
    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0]

    halved: list[float] = []
    retrying = RetryingCluster(
        cast(Cluster, ScriptedCluster(RETRIABLE, {})),
        RetryPolicy(base_delay_s=1.0, sleep=halved.append, jitter=lambda: 1.0),
    )
    retrying.topics()
    assert halved == [0.5]


def test_retry_policy_requires_one_attempt() -> None:
    with pytest.raises(ValueError, match="attempt"):
        RetryPolicy(attempts=0)


class Worker:
    """A worker that is not ready for the first requests."""

    urls = ("https://w",)

    def __init__(self, faults: int) -> None:
        self.left = faults
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def ask(*_: object) -> str:
            self.asked.append(name)
            if self.left:
                self.left -= 1
                raise RETRIABLE
            return name

        return ask


@pytest.mark.parametrize("call", ["patch", "delete"])
def test_change_of_worker_not_ready_is_retried(call: str) -> None:
    worker, slept = Worker(2), list[float]()
    workers = RetryingWorkers(cast(ConnectWorkers, worker), RetryPolicy(sleep=slept.append))
    getattr(workers, call)("https://w", {})
    assert worker.asked == [call] * 3
    assert len(slept) == 2


@pytest.mark.parametrize("call", ["status", "read_served_certificate", "overrides", "validate"])
def test_read_of_worker_is_not_retried(call: str) -> None:
    worker = Worker(1)
    policy = RetryPolicy(sleep=lambda _: pytest.fail("waited"))
    workers = RetryingWorkers(cast(ConnectWorkers, worker), policy)
    with pytest.raises(Fault):
        getattr(workers, call)("https://w", *([{}] if call == "validate" else []))
    assert worker.asked == [call]


def make_quota_fault(seconds: float) -> Fault:
    return Fault("THROTTLING_QUOTA_EXCEEDED", "the quota is used up", FaultKind.RETRIABLE, seconds)


def test_quota_fault_waits_for_throttle_time_without_using_attempt() -> None:
    names = [f"t{i}" for i in range(9)]
    # One topic is accepted at a time; for the others, brokers report how long to wait.
    answers = [
        {name: None if name == names[taken] else make_quota_fault(taken + 0.5) for name in names[taken:]}
        for taken in range(9)
    ]
    script, waits = ScriptedCluster(*answers), RecordedDelays()
    assert waits.make_cluster(script, attempts=3).create_topics(make_topics(*names)) == dict.fromkeys(names)
    assert list(waits) == [taken + 1.5 for taken in range(8)]  # never less than brokers report
    assert [retry.items for retry in waits.retries] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_quota_without_progress_ends_with_quota_fault() -> None:
    script, waits = ScriptedCluster(*[{"a": make_quota_fault(100.0)}] * 9), RecordedDelays()
    fault = waits.make_cluster(script).create_topics(make_topics("a"))["a"]
    assert isinstance(fault, Fault)
    assert fault.error == "THROTTLING_QUOTA_EXCEEDED"
    assert list(waits) == [101.0, 101.0]  # at most 300 s without progress


def test_quota_fault_is_not_retried_with_one_attempt() -> None:
    script, waits = ScriptedCluster({"a": make_quota_fault(1.0)}), RecordedDelays()
    assert waits.make_cluster(script, attempts=1).create_topics(make_topics("a")).keys() == {"a"}
    assert waits == []
